"""What several analyses start from: a score, an outcome and the source metric of the same models.

Every outcome comes under every filter with STAMP, and with class-matched STAMP where a target is
labeled for some of the classes only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from stamp.config.view_names import SOURCE
from stamp.report import analysis
from stamp.report.analysis import AnalysisData
from stamp.report.main_table import SCORES, target_title
from stamp.report.outcomes import (
    MEAN,
    shown_outcomes,
    source_covariance,
    source_outcome,
    values,
)

ABOUT: dict[str, Any] = {
    "models": pl.String,
    "outcome": pl.String,
    "title": pl.String,
    "score": pl.String,
}
OF_MODEL: dict[str, Any] = {
    **analysis.DESCRIBED,
    **{name: kind for name, kind in ABOUT.items() if name != "title"},
}
SPOKEN = 6  # outcomes of which a sentence speaks one by one; of more, of their mean alone
CONTROL = "control:"  # columns of the scores that a user asks to control for


@dataclass(frozen=True, slots=True)
class Paired:
    """One filter, outcome and score: one number per model in each array, NaN where it has none.

    ``source`` is the source metric on the classes that the outcome is scored on, ``plain`` that on
    all where it is another, and ``source_errors`` the covariance of ``source``'s errors between
    the models; ``n_source`` and ``n_target``
    are the fewest images behind a model's values, None where that is not known.
    """

    models: str
    outcome: str
    title: str
    score: str
    keys: list[str]
    x: np.ndarray
    y: np.ndarray
    source: np.ndarray
    source_errors: np.ndarray
    parameters: np.ndarray
    temperature: np.ndarray
    others: dict[str, np.ndarray]
    n_source: int | None
    n_target: int | None
    plain: np.ndarray | None = None

    @property
    def about(self) -> dict[str, str]:
        """Which row of a table this is."""
        return {name: getattr(self, name) for name in ABOUT}

    def known(self, *more: np.ndarray) -> np.ndarray:
        """Which models have a score, an outcome and all of these."""
        return ~np.isnan(np.stack([self.x, self.y, *more])).any(axis=0)


def pairings(data: AnalysisData, matched: bool = True) -> Iterator[Paired]:
    """Every filter, outcome and score of a study; ``matched``: class-matched scores too."""
    for which in analysis.filters(data):
        for outcome in shown_outcomes(data.outcomes):
            board = analysis.kept(data, which, outcome)
            found = {"stamp": board["score"].to_numpy()}
            column = f"matched:{outcome}"
            rows = data.scores.filter(pl.col("model").is_in(board["model"].implode()))
            if matched and column in rows.columns:
                found["stamp_matched"] = _numbers(rows, column)
            for name, score in found.items():
                yield _paired(data, which, outcome, SCORES[name], rows, score)


def described(data: AnalysisData) -> dict[str, dict[str, Any]]:
    """What is said of each model, by its key."""
    return {row["model"]: row for row in analysis.describe(data).iter_rows(named=True)}


def of_model(said: Mapping[str, dict[str, Any]], one: Paired, at: int) -> dict[str, Any]:
    """The columns ``OF_MODEL`` of the model at one place."""
    about = {name: one.about[name] for name in ("models", "outcome", "score")}
    return {**said[one.keys[at]], **about}


def _paired(
    data: AnalysisData, which: str, outcome: str, name: str, rows: pl.DataFrame, score: np.ndarray
) -> Paired:
    keys = rows["model"].to_list()
    source = source_outcome(data.outcomes, outcome)
    return Paired(
        models=which,
        outcome=outcome,
        title=target_title(outcome, data.texts),
        score=name,
        keys=keys,
        x=score,
        y=values(data.outcomes, outcome, keys),
        source=values(data.outcomes, source, keys),
        source_errors=source_covariance(data.outcomes, outcome, keys),
        parameters=_numbers(rows, "parameters"),
        temperature=_numbers(rows, "temperature"),
        others={
            column.removeprefix(CONTROL): _numbers(rows, column)
            for column in rows.columns
            if column.startswith(CONTROL)
        },
        n_source=images(data, source),
        n_target=images(data, outcome),
        plain=None if source == SOURCE else values(data.outcomes, SOURCE, keys),
    )


def _numbers(rows: pl.DataFrame, column: str) -> np.ndarray:
    if column not in rows.columns:
        return np.full(len(rows), np.nan)
    return rows[column].cast(pl.Float64).fill_null(np.nan).to_numpy()


def images(data: AnalysisData, outcome: str) -> int | None:
    """The fewest images behind a model's value of an outcome."""
    found = data.outcomes.filter(pl.col("outcome") == outcome)["n"].drop_nulls()
    return int(found.min()) if len(found) else None  # type: ignore[arg-type]


def spoken(table: pl.DataFrame) -> pl.DataFrame:
    """The rows that a sentence is about: declared rule, STAMP, each outcome or the mean."""
    rows = table.filter((pl.col("models") == "declared") & (pl.col("score") == SCORES["stamp"]))
    many = rows["outcome"].n_unique() > SPOKEN and (rows["outcome"] == MEAN).any()
    return rows.filter(pl.col("outcome") == MEAN) if many else rows
