"""Write the leaderboard as CSV and Parquet."""

import polars as pl

from stamp.core.artifacts import read_table, write_table
from stamp.core.errors import run
from stamp.report.leaderboard import leaderboard


def main(smk):
    study = smk.wildcards.study
    board = read_table(smk.input.scores, study=study)
    tidy = read_table(smk.input.outcomes, study=study)
    ranks = pl.read_csv(smk.input.ranks, schema_overrides={"model": pl.String})
    table = leaderboard(board, tidy, ranks, smk.params.models, smk.params.unavailable)
    write_table(smk.output.csv, table, {})
    write_table(smk.output.parquet, table, {"study": study})


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
