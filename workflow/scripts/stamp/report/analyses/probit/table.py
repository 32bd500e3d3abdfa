"""Accuracy on the line: outcomes against the source metric and against the score, probit scale.

Whether the score follows the line as closely as labeled source images do is asked twice: do the two
correlations differ (Williams, Steiger), and are they equivalent (two one-sided tests)? That a test
finds no difference does not answer the second question.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy.special import ndtr

from stamp.report import analysis
from stamp.report.analysis import AnalysisData
from stamp.report.comparison import paired
from stamp.report.comparison.paired import Paired
from stamp.report.wording import number, p_text
from stamp.stats.correlations.dependent_correlations import (
    FEWEST,
    difference_interval,
    steiger,
    tost,
    williams,
)
from stamp.stats.on_the_line import Line, accuracy_on_the_line, probit, probit_line

MARGIN = 0.1  # of r: closer than this the two are called equivalent, where a study does not say
UNCLIPPED = 10**9  # images where their number is not known: shares of 0 and 1 are left out then
TABLE = {
    **paired.ABOUT,
    "n": pl.Int64,
    **{
        f"{name}_{of}": pl.Float64
        for of in ("score", "source")
        for name in ("r", "slope", "intercept", "loo_error")
    },
    "r_between": pl.Float64,
    "difference": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "williams_t": pl.Float64,
    "williams_df": pl.Int64,
    "williams_p": pl.Float64,
    "steiger_z": pl.Float64,
    "steiger_p": pl.Float64,
    "margin": pl.Float64,
    "tost_low": pl.Float64,
    "tost_high": pl.Float64,
    "tost_p": pl.Float64,
    "equivalent": pl.Boolean,
    "equivalent_within": pl.Float64,
    "reason": pl.String,
}
MODELS = {
    **paired.OF_MODEL,
    "value_score": pl.Float64,
    "value_source": pl.Float64,
    "value_outcome": pl.Float64,
    "probit_source": pl.Float64,
    "probit_outcome": pl.Float64,
    **{
        f"{name}_{of}": pl.Float64
        for of in ("source", "score")
        for name in ("residual", "loo_residual", "loo_prediction")
    },
    "reason": pl.String,
}


@dataclass(frozen=True, slots=True)
class Lines:
    """The models that have all three values, and both lines through them.

    ``score`` is as it is, ``source`` and ``outcome`` are on the probit scale.
    """

    places: np.ndarray
    score: np.ndarray
    source: np.ndarray
    outcome: np.ndarray
    of_source: Line
    of_score: Line


def lines(one: Paired) -> Lines | str:
    """The two lines of an outcome, or why there are none.

    A share is clipped to [.5/n, 1 - .5/n] for n images; where n is not known, 0 and 1 have no
    probit and their models are left out.
    """
    shares = np.stack([one.source, one.y])
    if np.isnan(one.source).all():
        return "no model has the source metric"
    if (np.nanmin(shares, axis=1) < 0).any() or (np.nanmax(shares, axis=1) > 1).any():
        return "a value outside 0 to 1 has no probit"
    for row, images in zip(shares, (one.n_source, one.n_target), strict=True):
        if images is None:
            row[(row == 0) | (row == 1)] = np.nan
    places = np.flatnonzero(one.known(*shares))
    if len(places) < FEWEST:
        return f"{len(places)} models have all values: at least {FEWEST} are needed"
    score, (source, target) = one.x[places], shares[:, places]
    n = one.n_source or UNCLIPPED, one.n_target or UNCLIPPED
    y = probit(target, n[1])
    found = Lines(
        places,
        score,
        probit(source, n[0]),
        y,
        accuracy_on_the_line(source, target, *n),
        probit_line(score, y),
    )
    for name, line in (("source metric", found.of_source), ("score", found.of_score)):
        if line.reason:
            return f"{name}: {line.reason}"
        if np.isnan(line.r):
            return "the outcome is the same for all models"
    return found


def models(data: AnalysisData) -> pl.DataFrame:
    """Every model's values, its distances from both lines, and what the others' lines predict."""
    said = paired.described(data)
    rows = []
    for one in paired.pairings(data):
        found = lines(one)
        if isinstance(found, str):
            continue
        of = {"source": found.of_source, "score": found.of_score}
        rows += [
            {
                **paired.of_model(said, one, int(at)),
                "value_score": found.score[place],
                "value_source": one.source[at],
                "value_outcome": one.y[at],
                "probit_source": found.source[place],
                "probit_outcome": found.outcome[place],
                **{f"residual_{name}": line.residuals[place] for name, line in of.items()},
                **{f"loo_residual_{name}": line.loo_residuals[place] for name, line in of.items()},
                **{f"loo_prediction_{name}": line.loo[place] for name, line in of.items()},
            }
            for place, at in enumerate(found.places)
        ]
    return (
        analysis.frame(rows, MODELS) if rows else analysis.nothing(MODELS, "no outcome has a line")
    )


def table(data: AnalysisData) -> pl.DataFrame:
    """Both lines of each outcome, and the difference of their correlations.

    r is Pearson's, with the probit of the outcome; ``difference`` is the score's minus the source
    metric's, with Zou's interval at the study's level. ``tost_low`` and ``tost_high`` are its 90 %
    interval: equivalent where that lies within the margin (``statistics.equivalence``), and
    ``equivalent_within`` is the least margin for which it would. ``loo_error`` is the mean distance
    of the left-out models' outcomes from what the line through the others predicts.
    """
    margin = data.options.get("equivalence") or MARGIN
    rows = [
        {**one.about, **_row(one, data.settings["level"], margin)} for one in paired.pairings(data)
    ]
    return analysis.frame(rows, TABLE) if rows else analysis.nothing(TABLE, analysis.NO_TARGETS)


def _row(one: Paired, level: float, margin: float) -> dict[str, Any]:
    found = lines(one)
    if isinstance(found, str):
        return {"n": int(one.known(one.source).sum()), "reason": found}
    n = len(found.places)
    ours, theirs = found.of_score, found.of_source
    between = float(np.corrcoef(found.score, found.source)[0, 1])
    three = (ours.r, theirs.r, between, n)
    interval, same = difference_interval(*three, level), tost(*three, margin)
    by_t, by_z = williams(*three), steiger(*three)
    return {
        "n": n,
        **_of(ours, "score", ndtr(found.outcome)),
        **_of(theirs, "source", ndtr(found.outcome)),
        "r_between": between,
        "difference": interval.difference,
        "low": interval.low,
        "high": interval.high,
        "williams_t": by_t.statistic,
        "williams_df": by_t.df,
        "williams_p": by_t.p,
        "steiger_z": by_z.statistic,
        "steiger_p": by_z.p,
        "margin": margin,
        "tost_low": same.low,
        "tost_high": same.high,
        "tost_p": same.p,
        "equivalent": same.equivalent,
        "equivalent_within": max(abs(same.low), abs(same.high)),
    }


def _of(line: Line, name: str, outcome: np.ndarray) -> dict[str, float]:
    known = ~np.isnan(line.loo)
    error = np.abs(line.loo - outcome)[known]
    return {
        f"r_{name}": line.r,
        f"slope_{name}": line.slope,
        f"intercept_{name}": line.intercept,
        f"loo_error_{name}": float(error.mean()) if error.size else float("nan"),
    }


def sentence(table: pl.DataFrame) -> str:
    """Both correlations of each outcome, their difference, and both questions' answers."""
    if reason := analysis.why(table):
        return f"No lines on the probit scale: {reason}."
    return " ".join(_words(row) for row in paired.spoken(table).iter_rows(named=True))


def _words(row: dict[str, Any]) -> str:
    if row["r_score"] is None:
        return f"{row['title']}: {row['reason']}."
    answer = "are equivalent" if row["equivalent"] else "are not shown to be equivalent"
    return (
        f"{row['title']}: on the probit scale r = {number(row['r_score'])} for STAMP and "
        f"{number(row['r_source'])} for the source metric (n = {row['n']}), a difference of "
        f"{number(row['difference'])} ({number(row['low'])} to {number(row['high'])}; Steiger's "
        f"{p_text(row['steiger_p'])}, Williams' {p_text(row['williams_p'])}); within a margin of "
        f"{row['margin']:g} the two {answer} ({p_text(row['tost_p'])})."
    )
