"""The images of a target, of the training split, or the labeled source images beyond the pool."""

import polars as pl

from stamp.core.artifacts import read_table, write_table
from stamp.core.errors import run
from stamp.data.views import keep, select


def main(smk):
    params, study, view = smk.params, smk.wildcards.study, smk.wildcards.view
    where = f"study '{study}': view '{view}'"
    parts = [
        keep(read_table(path), params.task, params.classes, where) for path in smk.input.indexes
    ]
    index = pl.concat(parts, how="diagonal")
    rows = select(index, params.images, where)
    if smk.input.get("without"):
        known = read_table(smk.input.without, study=study)["image"]
        rows = rows.filter(~pl.col("image").is_in(known.implode()))
    write_table(smk.output[0], rows, {"study": study, "view": view})


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
