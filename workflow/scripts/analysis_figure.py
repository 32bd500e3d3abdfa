"""Draw the figure of one further analysis from its two tables."""

from importlib import import_module

import polars as pl

from stamp.core.errors import run
from stamp.report.plot.style import save


def main(smk):
    name = smk.wildcards.analysis
    schemas = import_module(f"stamp.report.analyses.{name}.table")
    table = pl.read_csv(smk.input.csv, schema=schemas.TABLE)
    models = pl.read_csv(smk.input.models, schema=schemas.MODELS)
    figure = import_module(f"stamp.report.analyses.{name}.figure").draw(
        table, models, smk.params.texts
    )
    save(figure, smk.output.png, smk.output.pdf)


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
