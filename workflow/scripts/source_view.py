"""The images of a study's pairs, and its calibration images."""

from stamp.errors import run
from stamp.io import read_table, write_table
from stamp.pairs import pool
from stamp.views import calibration_rows, keep, select, source_view


def main(smk):
    params, study = smk.params, smk.wildcards.study
    where = f"study '{study}': calibration"
    index = select(read_table(smk.input.index), {**params.images, "split": None}, where)
    chosen = select(index, {"split": params.split}, where)
    calibration = calibration_rows(chosen, params.number, params.seed, where)
    images = pool(read_table(smk.input.pairs, study=study))
    rows = source_view(
        keep(index, params.task, params.classes, f"study '{study}': source"),
        images,
        keep(calibration, params.task, params.classes, where),
        where,
    )
    write_table(smk.output[0], rows, {"study": study, "view": "source"})


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
