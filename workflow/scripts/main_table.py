"""Write the main table of a study as CSV and Markdown."""

import polars as pl

from stamp.core.artifacts import atomic_write, write_table
from stamp.core.errors import run
from stamp.report.main_table import main_table, markdown


def main(smk):
    correlations = pl.read_csv(smk.input[0], infer_schema_length=None)
    table = main_table(correlations, smk.params.texts)
    write_table(smk.output.csv, table, {})
    with atomic_write(smk.output.markdown) as part:
        part.write_text(markdown(table, smk.params.texts))


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
