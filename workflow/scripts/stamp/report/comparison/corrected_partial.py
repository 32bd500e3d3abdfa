"""What a score adds to the source metric, with that metric's measurement error taken into account.

The plain partial correlation is biased towards the score: a source metric from finitely many images
does not hold all of a model's quality fixed. Every partial given the source metric therefore stands
beside its corrected value (``stats.noisy_control``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from stamp.stats.correlations.noisy_control import (
    NoisyControlPartial,
    SimulationSettings,
    partial_given_noisy_control,
)

UNKNOWN = "the standard error of the source metric is not known: no correction is possible"
COLUMNS: dict[str, Any] = {
    "corrected": pl.Float64,
    "corrected_low": pl.Float64,
    "corrected_high": pl.Float64,
    "corrected_p": pl.Float64,
    "reliability": pl.Float64,
    "error": pl.Float64,
    "corrected_reason": pl.String,
}


def corrected_partial(
    score: np.ndarray,
    truth: np.ndarray,
    source: np.ndarray,
    covariance: np.ndarray,
    settings: SimulationSettings,
) -> dict[str, Any]:
    """``COLUMNS`` of a score and an outcome, given the source metric and its errors' covariance."""
    if np.isnan(np.diag(covariance)).all():
        return {"corrected_reason": UNKNOWN}
    return _columns(partial_given_noisy_control(score, truth, source, covariance, settings))


def _columns(found: NoisyControlPartial) -> dict[str, Any]:
    return {
        "corrected": found.corrected,
        "corrected_low": found.low,
        "corrected_high": found.high,
        "corrected_p": found.p,
        "reliability": found.reliability,
        "error": found.error,
        "corrected_reason": found.reason or None,
    }
