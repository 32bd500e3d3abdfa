"""The images of a study's pairs, and its calibration images."""

from stamp.core.artifacts import read_table, write_table
from stamp.core.errors import run
from stamp.data.source_view import SourceViewSettings, source_view


def main(smk):
    study, settings = smk.wildcards.study, SourceViewSettings.from_params(smk.params)
    index, pairs = read_table(smk.input.index), read_table(smk.input.pairs, study=study)
    rows = source_view(index, pairs, settings, f"study '{study}'")
    write_table(smk.output[0], rows, {"study": study, "view": "source"})


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
