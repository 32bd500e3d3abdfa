"""Decode and resize a view's images into the pixel cache."""

from pathlib import Path

from stamp.config.preprocessing import Preprocessing
from stamp.core.artifacts import read_table
from stamp.core.errors import run
from stamp.images.pixels import write_cache


def main(smk):
    study, view = smk.wildcards.study, smk.wildcards.view
    rows = read_table(smk.input.view, study=study, view=view)
    write_cache(
        Path(smk.output.pixels),
        Path(smk.output.record),
        rows["image"].to_list(),
        rows["path"].to_list(),
        Preprocessing(**smk.params.preprocessing),
        smk.threads,
        f"study '{study}': view '{view}'",
        smk.params.border,
    )


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
