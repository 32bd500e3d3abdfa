"""Whether the result holds between families: one model per family, and families drawn as wholes."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from stamp.report import analysis
from stamp.report.analysis import AnalysisData
from stamp.report.main_table import target_title
from stamp.report.outcomes import MEAN, shown_outcomes, values
from stamp.report.wording import RHO, number, p_text
from stamp.stats.correlations.correlation import FEWEST, percentile_interval
from stamp.stats.permutations import CHUNK
from stamp.stats.ranks import Sorted, resampled_spearman, spearman

TABLE = {
    "models": pl.String,
    "outcome": pl.String,
    "title": pl.String,
    "families": pl.Int64,
    "step": pl.Float64,
    "first_rho": pl.Float64,
    "first_low": pl.Float64,
    "first_high": pl.Float64,
    "first_p": pl.Float64,
    "first_partial": pl.Float64,
    "first_partial_reason": pl.String,
    "first_partial_corrected": pl.Float64,
    "first_partial_corrected_reason": pl.String,
    "first_source_metric_rho": pl.Float64,
    "choices": pl.Int64,
    "choices_kind": pl.String,
    "choices_median": pl.Float64,
    "choices_low": pl.Float64,
    "choices_high": pl.Float64,
    "n": pl.Int64,
    "rho": pl.Float64,
    "cluster_low": pl.Float64,
    "cluster_high": pl.Float64,
    "cluster_valid": pl.Int64,
    "reason": pl.String,
}
MODELS = {
    **analysis.DESCRIBED,
    "family_size": pl.Int64,
    "first_all": pl.Boolean,
    "first_declared": pl.Boolean,
    "reason": pl.String,
}
CHOICES = 1_000
CHOOSE, CLUSTER = 11, 12  # tags that keep the random streams of one seed apart
FIRST = (
    "rho", "low", "high", "p", "partial", "partial_reason", "partial_corrected",
    "partial_corrected_reason", "source_metric_rho",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Choices:
    """Positions of one member per family, [choices, families], and whether these are all."""

    members: np.ndarray
    exhaustive: bool


def step(families: int) -> float:
    """The distance between neighbouring values of rho without ties: 12 / (n (n^2 - 1)).

    rho = 1 - 6 S / (n (n^2 - 1)), and the sum S of squared rank differences of two orders of n is
    even.
    """
    return 12 / (families * (families**2 - 1)) if families > 1 else math.nan


def one_each(families: np.ndarray, seed: int, most: int = CHOICES) -> Choices:
    """All choices of one member per family if those are at most ``most``, else as many random ones.

    ``families`` has the family's number of each member. A random choice takes each member of a
    family with the same chance.
    """
    groups = [np.flatnonzero(families == one) for one in np.unique(families)]
    if math.prod(len(group) for group in groups) <= most:
        return Choices(np.array(list(itertools.product(*groups)), dtype=np.intp), True)
    sizes = np.array([len(group) for group in groups])
    picked = np.random.default_rng([seed, CHOOSE]).integers(sizes, size=(most, len(groups)))
    chosen = [group[picked[:, at]] for at, group in enumerate(groups)]
    return Choices(np.stack(chosen, axis=1), False)


def cluster_bootstrap(
    x: np.ndarray, y: np.ndarray, families: np.ndarray, resamples: int, seed: int
) -> np.ndarray:
    """Spearman's rho over resamples of whole families, drawn with replacement; NaN if constant.

    All members of a family come with it, as often as it is drawn; mid-ranks are those of the
    resample (Field & Welsh 2007, the cluster bootstrap).
    """
    count, member = np.unique(families, return_inverse=True)
    rng = np.random.default_rng([seed, CLUSTER])
    x_sorted, y_sorted = Sorted.of(x), Sorted.of(y)
    draws, rows = np.empty(resamples), max(128, CHUNK // x.size)
    for start in range(0, resamples, rows):
        size = min(rows, resamples - start)
        picked = rng.multinomial(len(count), np.full(len(count), 1 / len(count)), size=size)
        found = resampled_spearman(x_sorted, y_sorted, picked[:, member])
        draws[start : start + size] = found[:, 0, 0]
    return draws


def models(data: AnalysisData) -> pl.DataFrame:
    """Every model with its family, and whether it is the one that stands for it."""
    known = pl.col("stamp").is_not_null()
    first = {
        f"first_{name}": pl.col("model").eq_missing(
            pl.col("model").filter(keep).min().over("family")
        )
        for name, keep in (("all", known), ("declared", known & pl.col("counted")))
    }
    found = analysis.describe(data).with_columns(family_size=pl.len().over("family"), **first)
    return analysis.frame(found.rows(named=True), MODELS)


def table(data: AnalysisData) -> pl.DataFrame:
    """For each outcome, rho with one model per family and over resampled families.

    ``first_`` takes of each family the model that is first by its key, which no score or outcome
    had a part in. ``choices_`` are median and percentile interval of rho over all choices of one
    model a family, or over 1,000 random ones where there are more. ``cluster_`` is the percentile
    interval of rho over all models when families are resampled as wholes. Without ties, rho over n
    families takes only values that are ``step`` apart.
    """
    names = shown_outcomes(data.outcomes)
    rows = [_row(data, which, outcome) for which in analysis.filters(data) for outcome in names]
    return analysis.frame(rows, TABLE) if rows else analysis.nothing(TABLE, analysis.NO_TARGETS)


def _row(data: AnalysisData, which: str, outcome: str) -> dict[str, Any]:
    board = analysis.kept(data, which, outcome).sort("model")
    truth = values(data.outcomes, outcome, board["model"].to_list())
    score = board["score"].to_numpy()
    known = ~(np.isnan(score) | np.isnan(truth))
    keys = board.filter(pl.Series(known))["model"].to_list()
    score, truth = score[known], truth[known]
    names = np.array([data.models[key]["family"] for key in keys], dtype=str)
    families, first = np.unique(names, return_index=True)
    row: dict[str, Any] = {
        "models": which,
        "outcome": outcome,
        "title": target_title(outcome, data.texts),
        "families": len(families),
        "step": step(len(families)),
        "n": len(keys),
        "rho": analysis.rank_correlation(score, truth),
    }
    if len(families) < FEWEST:
        few = f"families: {len(families)}, and at least {FEWEST} are needed"
        return {**row, "reason": few}
    found = analysis.agreement(
        data, outcome, [keys[at] for at in first], score[first], truth[first]
    )
    row |= {f"first_{name}": found[name] for name in FIRST} | {"reason": found["reason"]}
    chosen = one_each(names, data.seed)
    spread = spearman(score[chosen.members], truth[chosen.members])
    middle = percentile_interval(spread, data.settings["level"])
    draws = cluster_bootstrap(score, truth, names, data.settings["resamples"], data.seed)
    cluster = percentile_interval(draws, data.settings["level"])
    return row | {
        "choices": len(chosen.members),
        "choices_kind": "all" if chosen.exhaustive else "random",
        "choices_median": float(np.nanmedian(spread)) if not np.isnan(spread).all() else None,
        "choices_low": float(middle.low),
        "choices_high": float(middle.high),
        "cluster_low": float(cluster.low),
        "cluster_high": float(cluster.high),
        "cluster_valid": int((~np.isnan(draws)).sum()),
    }


def sentence(table: pl.DataFrame) -> str:
    """What is left of rho with one model per family, for the mean outcome or the only one."""
    if reason := analysis.why(table):
        return f"No analysis of families: {reason}."
    declared = table.filter(pl.col("models") == "declared")
    wanted = declared.filter(pl.col("outcome") == MEAN)
    rows = wanted if len(wanted) else declared
    return " ".join(_words(row) for row in rows.iter_rows(named=True))


def _words(row: dict[str, Any]) -> str:
    if row["first_rho"] is None:
        return f"{row['title']}: {row['reason']}."
    choices = (
        f"{row['choices']:,} random" if row["choices_kind"] == "random" else f"all {row['choices']}"
    )
    return (
        f"{row['title']}: with one model per family, the first by its key, {RHO} is "
        f"{number(row['first_rho'])} ({p_text(row['first_p'])}, n = {row['families']} families), "
        f"the source metric's {number(row['first_source_metric_rho'])}; over "
        f"{choices} choices of one model per family the median is "
        f"{number(row['choices_median'])}, the interval {number(row['choices_low'])} to "
        f"{number(row['choices_high'])}. Over all {row['n']} models {RHO} is "
        f"{number(row['rho'])}, {number(row['cluster_low'])} to {number(row['cluster_high'])} when "
        f"families are resampled as wholes. With {row['families']} families and no ties {RHO} "
        f"moves in steps of {row['step']:.2g}."
    )
