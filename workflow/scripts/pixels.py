"""Decode and resize a view's images into the pixel cache."""

from pathlib import Path

from stamp.config.preprocessing import Preprocessing
from stamp.core.artifacts import read_table
from stamp.core.errors import run
from stamp.images.pixels import ImageFiles, write_cache


def main(smk):
    study, view = smk.wildcards.study, smk.wildcards.view
    rows = read_table(smk.input.view, study=study, view=view)
    images = ImageFiles(
        ids=rows["image"].to_list(),
        paths=rows["path"].to_list(),
        name=f"study '{study}': view '{view}'",
        border=smk.params.border,
    )
    how = Preprocessing(**smk.params.preprocessing)
    write_cache(Path(smk.output.pixels), Path(smk.output.record), images, how, smk.threads)


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
