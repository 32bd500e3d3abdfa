"""Several models: how sure their ranking is, and how well scores predict outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from stamp.api import arrays
from stamp.api.score import ScoredModel
from stamp.core.errors import UserError
from stamp.report import correlate as tables
from stamp.stats.correlations import correlation_summary, noisy_control
from stamp.stats.correlations.correlation_summary import Correlation, CorrelationSettings
from stamp.stats.correlations.noisy_control import NoisyControlPartial
from stamp.stats.correlations.partial_correlation import Partial
from stamp.stats.rank_intervals import outranks
from stamp.stats.ranks import Array

CONTROL = "control"


@dataclass(frozen=True, slots=True)
class Ranking:
    """Models by score, the best first; one without a score comes last and has NaN.

    ``rank`` is the median over joint bootstrap resamples, ``low`` to ``high`` its interval.
    ``outranks[i, j]`` is the share of resamples in which model i scores above model j.
    """

    models: tuple[str, ...]
    stamp: Array
    rank: Array
    low: Array
    high: Array
    outranks: Array


@dataclass(frozen=True, slots=True)
class Association:
    """How scores and outcomes go together: over all, and with a control held fixed.

    ``partial`` takes the control as it was measured and is biased towards the score where the
    control has an error; ``corrected`` takes that error into account. None where not asked for.
    """

    correlation: Correlation
    partial: Partial | None = None
    corrected: NoisyControlPartial | None = None


def rank(scored: Mapping[str, ScoredModel]) -> Ranking:
    """The models by score, with intervals of their ranks.

    They must have been scored on the same images with the same settings: their bootstrap resamples
    are then the same, so that what moves all models alike moves no rank.
    """
    if not scored:
        raise UserError("rank needs at least one model")
    first, one = next(iter(scored.items()))
    for name, other in scored.items():
        if (other.sample, other.kind, other.level) != (one.sample, one.kind, one.level):
            raise UserError(
                f"'{first}' and '{name}' were scored on other pairs or with other settings: "
                "give all models the same images and settings"
            )
    values = np.array([found.stamp for found in scored.values()])
    order = np.argsort(np.where(np.isnan(values), np.inf, -values), kind="stable")
    models = [list(scored)[place] for place in order]
    draws = np.stack([scored[name].score.draws for name in models])
    table = tables.ranks(models, draws, one.level)
    median, low, high = (table[name].to_numpy() for name in ("rank", "low", "high"))
    return Ranking(tuple(models), values[order], median, low, high, outranks(draws))


def correlate(
    scores: Any,
    outcomes: Any,
    control: Any = None,
    control_error: Any = None,
    settings: CorrelationSettings = correlation_summary.DEFAULT_SETTINGS,
) -> Association:
    """Spearman's rho of scores and outcomes, one of each per model, with tests and intervals.

    ``control`` is what a score has to beat, such as the accuracy on the source. ``control_error``
    has its standard errors [n], or their covariance [n, n] where all models were measured on the
    same images. Models with NaN are left out.
    """
    x, y = arrays.numbers(scores), arrays.numbers(outcomes)
    if x.ndim != 1 or x.shape != y.shape:
        raise UserError(f"scores {x.shape} and outcomes {y.shape} are one number per model each")
    if control is None:
        if control_error is not None:
            raise UserError("control_error needs a control")
        return Association(correlation_summary.correlate(x, y, None, settings))
    z = arrays.numbers(control)
    if z.shape != x.shape:
        raise UserError(f"control {z.shape} has one number per model: {x.shape}")
    found = correlation_summary.correlate(x, y, {CONTROL: z}, settings)
    if control_error is None:
        return Association(found, found.partials[CONTROL])
    error = arrays.numbers(control_error)
    if error.shape not in (x.shape, (len(x), len(x))):
        raise UserError(f"control_error is [n] or [n, n] for {len(x)} models, not {error.shape}")
    how = noisy_control.SimulationSettings(seed=settings.seed, level=settings.level)
    corrected = noisy_control.partial_given_noisy_control(x, y, z, error, how)
    return Association(found, found.partials[CONTROL], corrected)
