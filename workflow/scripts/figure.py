"""Draw one figure of a study as PNG and PDF, and write the table that it was drawn from."""

from importlib import import_module

import polars as pl

from stamp.core.artifacts import read_table, write_table
from stamp.core.errors import run
from stamp.report.plot.figure_data import CORRELATIONS, RANKS, FigureData
from stamp.report.plot.style import save


def main(smk):
    study = smk.wildcards.study
    data = FigureData(
        scores=read_table(smk.input.scores, study=study),
        outcomes=read_table(smk.input.outcomes, study=study),
        correlations=pl.read_csv(smk.input.correlations, schema_overrides=CORRELATIONS),
        ranks=pl.read_csv(smk.input.ranks, schema_overrides=RANKS),
        outranks=pl.read_csv(smk.input.outranks, schema_overrides={"model": pl.String}),
        models=smk.params.models,
        texts=smk.params.texts,
    )
    figure, table = import_module(f"stamp.report.figures.{smk.wildcards.figure}").draw(data)
    write_table(smk.output.csv, table, {})
    save(figure, smk.output.png, smk.output.pdf)


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
