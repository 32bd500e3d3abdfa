"""How much the number of pairs matters: the headline score at each N, all from the same logits."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from stamp.report import analysis
from stamp.report.analysis import AnalysisData
from stamp.report.main_table import target_title
from stamp.report.outcomes import MEAN, by_model, shown_outcomes, values
from stamp.report.wording import RHO, number

TABLE = {
    "models": pl.String,
    "number": pl.Int64,
    "outcome": pl.String,
    "title": pl.String,
    **analysis.AGREEMENT,
    "mean_difference": pl.Float64,
    "rank_correlation": pl.Float64,
    "mean_width": pl.Float64,
    "reason": pl.String,
}
MODELS = {
    **analysis.DESCRIBED,
    "number": pl.Int64,
    "stamp": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "width": pl.Float64,
    "difference": pl.Float64,
    "within": pl.Float64,
    "total": pl.Float64,
    "reason": pl.String,
}
NOTHING = "the study gives no numbers of pairs to compare (pairs.n_pairs_sweep)"


def numbers(data: AnalysisData) -> list[int]:
    """The numbers of pairs, the largest last."""
    return data.n_pairs["number"].unique().sort().to_list() if len(data.n_pairs) else []


def models(data: AnalysisData) -> pl.DataFrame:
    """Every model's score at each N, its interval's width, and how far it is from the last N's."""
    at = numbers(data)
    if not at:
        return analysis.nothing(MODELS, NOTHING)
    largest = data.n_pairs.filter(pl.col("number") == at[-1]).select("model", last="stamp")
    found = (
        analysis.describe(data)
        .drop("stamp")
        .join(data.n_pairs.sort("number"), on="model", maintain_order="left_right")
        .join(largest, on="model", how="left", maintain_order="left")
        .with_columns(
            width=pl.col("high") - pl.col("low"), difference=pl.col("stamp") - pl.col("last")
        )
    )
    return analysis.frame(found.rows(named=True), MODELS)


def table(data: AnalysisData) -> pl.DataFrame:
    """Rho of STAMP at N with each outcome, and how STAMP at N compares with that at the largest N.

    ``mean_difference`` is the mean over models of |STAMP_N - STAMP_largest|, ``rank_correlation``
    Spearman's rho of the two, ``mean_width`` the mean width of the scores' intervals.
    """
    at, names = numbers(data), shown_outcomes(data.outcomes)
    if not at:
        return analysis.nothing(TABLE, NOTHING)
    rows = [
        _row(data, which, number, outcome, at[-1])
        for which in analysis.filters(data)
        for number in at
        for outcome in names or [""]
    ]
    return analysis.frame(rows, TABLE)


def _row(data: AnalysisData, which: str, number: int, outcome: str, largest: int) -> dict[str, Any]:
    keys = analysis.kept(data, which, outcome or MEAN)["model"]
    column = "raw" if which == "all" else "stamp"
    here, last = (data.n_pairs.filter(pl.col("number") == one) for one in (number, largest))
    score, reference = by_model(here, keys, column), by_model(last, keys, column)
    width = by_model(here, keys, "high") - by_model(here, keys, "low")
    row: dict[str, Any] = {
        "models": which,
        "number": number,
        "mean_difference": analysis.mean_known(np.abs(score - reference)),
        "rank_correlation": analysis.rank_correlation(score, reference),
        "mean_width": analysis.mean_known(width),
        "reason": analysis.NO_TARGETS,
    }
    if not outcome:
        return row
    truth = values(data.outcomes, outcome, keys.to_list())
    row |= {"outcome": outcome, "title": target_title(outcome, data.texts)}
    return row | analysis.agreement(data, outcome, keys.to_list(), score, truth)


def sentence(table: pl.DataFrame) -> str:
    """What the fewest pairs lose against the most."""
    if reason := analysis.why(table):
        return f"No analysis of the number of pairs: {reason}."
    rows = table.filter(pl.col("models") == "declared")
    few, many = (rows.filter(pl.col("number") == end) for end in _ends(rows))
    start = few.row(0, named=True)
    first, last = start["number"], many["number"][0]
    words = (
        f"With {first:,} pairs instead of {last:,}, scores differ by "
        f"{number(start['mean_difference'])} in the mean, their intervals are "
        f"{number(start['mean_width'])} wide instead of {number(many['mean_width'][0])}, and the "
        f"rank correlation of the two is {number(start['rank_correlation'])}."
    )
    joined = few.join(many, on="outcome", suffix="_many").drop_nulls(["rho", "rho_many"])
    mean = joined.filter(pl.col("outcome") == MEAN)
    for one in (mean if len(mean) else joined).iter_rows(named=True):
        words += (
            f" {one['title']}: {RHO} is {number(one['rho'])} with {first:,} pairs and "
            f"{number(one['rho_many'])} with {last:,}."
        )
    if len(joined):
        moved = float((joined["rho"] - joined["rho_many"]).abs().max())  # type: ignore[arg-type]
        words += f" No outcome's {RHO} differs by more than {number(moved)} between the two."
    return words


def _ends(rows: pl.DataFrame) -> tuple[int, int]:
    found = rows["number"].unique().sort()
    return found[0], found[-1]
