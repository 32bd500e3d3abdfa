"""The images of a study's pairs, and its calibration images."""

from stamp.errors import run
from stamp.io import read_table, write_table
from stamp.sampling import source_rows


def main(smk):
    params, study = smk.params, smk.wildcards.study
    index, pairs = read_table(smk.input.index), read_table(smk.input.pairs, study=study)
    calibration = (params.split, params.number)
    how = (params.task, params.classes, params.seed, f"study '{study}'")
    rows = source_rows(index, pairs, params.images, calibration, *how)
    write_table(smk.output[0], rows, {"study": study, "view": "source"})


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
