"""Whether the score knows what the source metric leaves over: its rho with the residuals.

The paper's "average line" is not defined there. Here a residual is that of probit(outcome) from the
line on probit(source metric) through all other models (leave one out), one line per outcome. As a
partial correlation does, it favours the score where the source metric is measured with error.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from stamp.report import analysis
from stamp.report.analyses.probit.table import Lines, lines
from stamp.report.analysis import AnalysisData
from stamp.report.comparison import paired
from stamp.report.wording import RHO, number, p_text
from stamp.stats.correlations.correlation import (
    RESAMPLE,
    asymptotic_p,
    bonett_wright_interval,
    percentile_interval,
    permutation_p,
)
from stamp.stats.permutations import CHUNK
from stamp.stats.ranks import mid_ranks, rank_correlation, spearman

TABLE = {
    **paired.ABOUT,
    "n": pl.Int64,
    "line_r": pl.Float64,
    "line_slope": pl.Float64,
    "rho": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "bootstrap_low": pl.Float64,
    "bootstrap_high": pl.Float64,
    "bootstrap_valid": pl.Int64,
    "p": pl.Float64,
    "p_method": pl.String,
    "p_asymptotic": pl.Float64,
    "pearson": pl.Float64,
    "rho_in_sample": pl.Float64,
    "reason": pl.String,
}
MODELS = {
    **paired.OF_MODEL,
    "value_score": pl.Float64,
    "value_outcome": pl.Float64,
    "residual": pl.Float64,
    "in_sample": pl.Float64,
    "reason": pl.String,
}


def refitted(
    score: np.ndarray, source: np.ndarray, outcome: np.ndarray, resamples: int, seed: int
) -> np.ndarray:
    """rho of score and leave-one-out residual over resamples of the models, the line fitted anew.

    NaN where a resample has no line or one side is constant.
    """
    n, draws = len(score), np.full(resamples, np.nan)
    rng = np.random.default_rng([seed, RESAMPLE])
    rows = max(128, CHUNK // n)
    for start in range(0, resamples, rows):
        size = min(rows, resamples - start)
        drawn = rng.integers(n, size=(size, n))
        left, x = _residuals(source[drawn], outcome[drawn]), score[drawn]
        fine = np.flatnonzero(np.isfinite(left).all(axis=1))
        a, b = (2 * mid_ranks(side[fine]) - (n + 1) for side in (x, left))
        draws[start + fine] = rank_correlation(a, b)
    return draws


def _residuals(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Leave-one-out residuals e / (1 - h) of y on x along the last axis."""
    dx, dy = (side - side.mean(axis=-1, keepdims=True) for side in (x, y))
    with np.errstate(divide="ignore", invalid="ignore"):
        square = (dx**2).sum(axis=-1, keepdims=True)
        left = dy - dx * (dx * dy).sum(axis=-1, keepdims=True) / square
        free = 1 - 1 / x.shape[-1] - dx**2 / square
        return left / np.where(free > 1e-9, free, np.nan)


def models(data: AnalysisData) -> pl.DataFrame:
    """Every model's residual beside its score."""
    said = paired.described(data)
    rows = []
    for one in paired.pairings(data):
        found = lines(one)
        if isinstance(found, str):
            continue
        rows += [
            {
                **paired.of_model(said, one, int(at)),
                "value_score": found.score[place],
                "value_outcome": one.y[at],
                "residual": found.of_source.loo_residuals[place],
                "in_sample": found.of_source.residuals[place],
            }
            for place, at in enumerate(found.places)
        ]
    return (
        analysis.frame(rows, MODELS) if rows else analysis.nothing(MODELS, "no outcome has a line")
    )


def table(data: AnalysisData) -> pl.DataFrame:
    """Spearman's rho of each score with the leave-one-out residuals of each outcome.

    p is by permutation, ``low`` and ``high`` are Bonett and Wright's, and the bootstrap fits the
    line anew in every resample. ``rho_in_sample`` is with the residuals of the line through all
    models, ``pearson`` is r in the place of rho.
    """
    rows = []
    for one in paired.pairings(data):
        found = lines(one)
        if isinstance(found, str):
            n = int(one.known(one.source).sum())
            rows.append({**one.about, "n": n, "reason": found})
        else:
            rows.append({**one.about, **_row(data, found)})
    return analysis.frame(rows, TABLE) if rows else analysis.nothing(TABLE, analysis.NO_TARGETS)


def _row(data: AnalysisData, found: Lines) -> dict[str, Any]:
    settings, line = data.settings, found.of_source
    known = np.isfinite(line.loo_residuals)
    score, left, n = found.score[known], line.loo_residuals[known], int(known.sum())
    test = permutation_p(score, left, settings["permutations"], data.seed)
    rho = float(test.rho)
    ends = bonett_wright_interval(rho, n, settings["level"])
    draws = refitted(found.score, found.source, found.outcome, settings["resamples"], data.seed)
    percentiles = percentile_interval(draws, settings["level"])
    return {
        "n": n,
        "line_r": line.r,
        "line_slope": line.slope,
        "rho": rho,
        "low": float(ends.low),
        "high": float(ends.high),
        "bootstrap_low": float(percentiles.low),
        "bootstrap_high": float(percentiles.high),
        "bootstrap_valid": int((~np.isnan(draws)).sum()),
        "p": float(test.p),
        "p_method": test.method,
        "p_asymptotic": float(asymptotic_p(rho, n)),
        "pearson": float(np.corrcoef(score, left)[0, 1]),
        "rho_in_sample": float(spearman(score, line.residuals[known])),
        "reason": "the residuals or the scores are all equal" if np.isnan(rho) else None,
    }


def sentence(table: pl.DataFrame) -> str:
    """Rho with the residuals of each outcome, and what a residual is."""
    if reason := analysis.why(table):
        return f"No residuals: {reason}."
    lead = (
        "Residual: of probit(outcome) from its line on probit(source metric) through all other "
        "models. The measurement error of the source metric favours the score here, uncorrected."
    )
    return " ".join([lead, *(_words(row) for row in paired.spoken(table).iter_rows(named=True))])


def _words(row: dict[str, Any]) -> str:
    if row["rho"] is None:
        return f"{row['title']}: {row['reason']}."
    return (
        f"{row['title']}: {RHO} of STAMP with the residuals is {number(row['rho'])} "
        f"({p_text(row['p'])}, {number(row['low'])} to {number(row['high'])}, n = {row['n']})."
    )
