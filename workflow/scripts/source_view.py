"""The images of a study's pairs, and its calibration images."""

from stamp.core.artifacts import read_table, write_table
from stamp.core.errors import run
from stamp.data.pair_table import source_rows


def main(smk):
    params, study = smk.params, smk.wildcards.study
    index, pairs = read_table(smk.input.index), read_table(smk.input.pairs, study=study)
    calibration = (params.split, params.number)
    how = (params.task, params.classes, params.seed, f"study '{study}'")
    rows = source_rows(index, pairs, params.images, calibration, *how)
    write_table(smk.output[0], rows, {"study": study, "view": "source"})


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
