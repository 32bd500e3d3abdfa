"""What each of many predictors adds to the class-matched source metric, corrected for its error.

All predictors of one outcome are tested at once: their p are corrected together by Holm's method. A
small p is simulated again with more data sets, so that its correction can still be small.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from stamp.report.analysis import AnalysisData
from stamp.report.comparison.corrected_partial import corrected_partial
from stamp.report.outcomes import source_covariance, source_outcome, values
from stamp.stats.correlations.correlation import bonett_wright_interval
from stamp.stats.correlations.noisy_control import SimulationSettings
from stamp.stats.correlations.partial_correlation import partial_spearman
from stamp.stats.multiple_testing import holm

FINER_BELOW, FINER = 0.02, 9_999  # of p, and how many data sets are simulated then
COLUMNS: dict[str, Any] = {
    **{f"partial{end}": pl.Float64 for end in ("", "_low", "_high")},
    **{f"corrected{end}": pl.Float64 for end in ("", "_low", "_high", "_p", "_holm")},
    "corrected_reason": pl.String,
}


def predictor_partials(
    data: AnalysisData, outcome: str, keys: Sequence[str], scores: Mapping[str, np.ndarray]
) -> dict[str, dict[str, Any]]:
    """``COLUMNS`` of each predictor [n] of the models, oriented, given the source metric.

    ``partial`` has Bonett and Wright's interval with n - 1 in the place of n. ``corrected`` takes
    the error of the source metric into account (``stats.noisy_control``); ``corrected_holm`` is its
    p corrected for all of these predictors.
    """
    truth = values(data.outcomes, outcome, keys)
    source = values(data.outcomes, source_outcome(data.outcomes, outcome), keys)
    errors = source_covariance(data.outcomes, outcome, keys)
    level = data.settings["level"]
    wanted = SimulationSettings(seed=data.seed, level=level)
    rows: dict[str, dict[str, Any]] = {}
    for name, score in scores.items():
        plain = partial_spearman(score, truth, source, permutations=1)  # its p is not shown
        row: dict[str, Any] = {"partial": plain.rho}
        if not plain.reason:
            ends = bonett_wright_interval(plain.rho, plain.n - 1, level)
            row |= {"partial_low": float(ends.low), "partial_high": float(ends.high)}
        found = corrected_partial(score, truth, source, errors, wanted)
        if found.get("corrected_p", 1) <= FINER_BELOW:
            more = replace(wanted, resamples=FINER, interval=False)
            finer = corrected_partial(score, truth, source, errors, more)
            found["corrected_p"] = finer["corrected_p"]
        rows[name] = row | {key: value for key, value in found.items() if key in COLUMNS}
    tested = [row for row in rows.values() if not np.isnan(row.get("corrected_p", np.nan))]
    adjusted = holm(np.array([row["corrected_p"] for row in tested])) if tested else ()
    for row, p in zip(tested, adjusted, strict=True):
        row["corrected_holm"] = float(p)
    return rows
