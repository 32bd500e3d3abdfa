"""Quantities of the models' profiles, and how each goes with STAMP and with every outcome."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from stamp.report import analysis
from stamp.report.analysis import AnalysisData
from stamp.report.main_table import target_title
from stamp.report.outcomes import MEAN, by_model, shown_outcomes, values
from stamp.stats.correlations.correlation import FEWEST

STAMP, STAMP_TITLE = "stamp", "STAMP"
ASSOCIATION: dict[str, Any] = {
    "models": pl.String,
    "outcome": pl.String,
    "title": pl.String,
    "mean": pl.Float64,
    **analysis.AGREEMENT,
    "reason": pl.String,
}


@dataclass(frozen=True, slots=True)
class Quantity:
    """One number per model; ``about`` says in a table's columns what it is."""

    about: Mapping[str, Any]
    values: Mapping[str, float | None]
    reason: str | None = None

    def of(self, models: Iterable[str]) -> np.ndarray:
        """The numbers of some models, NaN where there is none."""
        found = [self.values.get(key) for key in models]
        return np.array([np.nan if one is None else one for one in found], dtype=float)

    def minus(self, other: Quantity, **about: Any) -> Quantity:
        """The difference from another quantity, of the models that have both."""
        both = {
            key: None if own is None or theirs is None else own - theirs
            for key, own in self.values.items()
            for theirs in [other.values.get(key)]
        }
        return Quantity({**self.about, **about}, both, self.reason or other.reason)


def quantity(data: AnalysisData, name: str, part: Any = None, /, **about: Any) -> Quantity:
    """A quantity of the profiles; the reason is that of the first model without it."""
    rows = data.profiles.filter(pl.col("quantity") == name)
    same = pl.col("part").is_null() if part is None else pl.col("part") == str(part)
    own = rows.filter(same)
    lost = own.filter(pl.col("value").is_null())["reason"].drop_nulls()
    reason = f"{len(lost)} of {len(own)} models: {lost[0]}" if len(lost) else None
    return Quantity(about, dict(own.select("model", "value").iter_rows()), reason)


def associate(
    data: AnalysisData, quantities: Sequence[Quantity], further: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """A row for each filter, outcome and quantity: rho over models with STAMP or the outcome.

    ``mean`` is the mean of the quantity over the row's models. The partial rho is given the source
    metric. ``further`` are columns of the scores, with their titles, that stand in an outcome's
    place too.
    """
    rows = []
    for which in analysis.filters(data):
        scores = {STAMP: STAMP_TITLE, **(further or {})}
        for outcome in (STAMP, *shown_outcomes(data.outcomes), *(further or ())):
            board = analysis.kept(data, which, MEAN if outcome in scores else outcome)
            keys = board["model"].to_list()
            if outcome == STAMP:
                truth = board["score"].to_numpy()
            elif outcome in scores:
                truth = by_model(data.scores, keys, outcome)
            else:
                truth = values(data.outcomes, outcome, keys)
            title = scores.get(outcome) or title_of(outcome, data)
            common = {"models": which, "outcome": outcome, "title": title}
            beside = MEAN if outcome in scores else outcome
            rows += [{**common, **_row(data, beside, keys, truth, one)} for one in quantities]
    return rows


def _row(
    data: AnalysisData, outcome: str, keys: list[str], truth: np.ndarray, one: Quantity
) -> dict[str, Any]:
    own = one.of(keys)
    found = analysis.agreement(data, outcome, keys, own, truth)
    if found["n"] < FEWEST and one.reason:
        found["reason"] = one.reason
    mean = analysis.mean_known(np.where(np.isnan(truth), np.nan, own))
    return {**one.about, "mean": mean, **found}


def title_of(outcome: str, data: AnalysisData) -> str:
    """An outcome's name for a reader, where STAMP may be one."""
    return STAMP_TITLE if outcome == STAMP else target_title(outcome, data.texts)


def by_part(data: AnalysisData, names: Sequence[str]) -> pl.DataFrame:
    """The rows of some quantities beside what is said of each model, in the models' order."""
    rows = data.profiles.filter(pl.col("quantity").is_in(list(names)))
    return analysis.describe(data).join(rows, on="model", maintain_order="left_right")


def first_reason(rows: pl.DataFrame) -> str:
    """Why there is nothing, by the first row that says so."""
    known = rows["reason"].drop_nulls()
    return known[0] if len(known) else "no model is counted"


def shown_outcome(data: AnalysisData) -> str | None:
    """The outcome that a figure shows: the mean of several, or the only one."""
    names = shown_outcomes(data.outcomes)
    return MEAN if MEAN in names else next(iter(names), None)


def with_outcome(data: AnalysisData, rows: pl.DataFrame) -> pl.DataFrame:
    """Rows by model with the shown outcome and each model's value of it."""
    shown = shown_outcome(data)
    keys = rows["model"].to_list()
    truth = values(data.outcomes, shown, keys) if shown else [None] * len(keys)
    return rows.with_columns(
        outcome=pl.lit(shown, dtype=pl.String),
        outcome_value=pl.Series(truth, dtype=pl.Float64),
    )


def headline(table: pl.DataFrame, further: Iterable[str] = ()) -> pl.DataFrame:
    """The rows that a sentence or a figure shows: counted models, the mean outcome or the only.

    ``further`` are scores in an outcome's place that are shown too.
    """
    rows = table.filter(pl.col("models") == "declared")
    scores = {STAMP, *further}
    outcomes = [name for name in rows["outcome"].unique(maintain_order=True) if name not in scores]
    shown = MEAN if MEAN in outcomes else next(iter(outcomes), None)
    return rows.filter(pl.col("outcome").is_in([*scores, *([shown] if shown else [])]))
