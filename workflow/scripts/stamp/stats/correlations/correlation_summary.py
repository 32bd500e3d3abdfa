"""Everything that is reported about one score and one outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from stamp.stats.correlations import correlation
from stamp.stats.correlations.correlation import NAN
from stamp.stats.correlations.partial_correlation import Partial, partial_spearman


@dataclass(frozen=True, slots=True)
class CorrelationSettings:
    """How many permutations and resamples are drawn, and the level of intervals."""

    permutations: int = 10_000
    resamples: int = 10_000
    level: float = 0.95
    seed: int = 0


DEFAULT_SETTINGS = CorrelationSettings()


@dataclass(frozen=True, slots=True)
class Correlation:
    """Everything reported about one score and one target; NaN with the ``reason`` if undefined."""

    n: int
    rho: float = NAN
    p_permutation: float = NAN
    permutation_method: str = ""
    p_asymptotic: float = NAN
    fisher_low: float = NAN
    fisher_high: float = NAN
    bonett_wright_low: float = NAN
    bonett_wright_high: float = NAN
    bootstrap_low: float = NAN
    bootstrap_high: float = NAN
    bootstrap_valid: int = 0
    loo_low: float = NAN
    loo_high: float = NAN
    loo_most_influential: int | None = None
    partials: dict[str, Partial] = field(default_factory=dict)
    reason: str = ""


def correlate(
    x: ArrayLike,
    y: ArrayLike,
    controls: Mapping[str, ArrayLike] | None = None,
    settings: CorrelationSettings = DEFAULT_SETTINGS,
) -> Correlation:
    """All that is reported on one score x and one target y; models with NaN in either are dropped.

    ``controls`` maps a name to what a partial correlation controls for: [n], or [k, n] for
    several at once. ``loo_most_influential`` is a position in x as it was given. With fewer than
    four models, or a constant side, everything is NaN and ``reason`` says why.
    """
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    used = np.flatnonzero(~(np.isnan(x) | np.isnan(y)))
    partials = {
        name: partial_spearman(x, y, control, settings.permutations, settings.seed)
        for name, control in (controls or {}).items()
    }
    x, y = x[used], y[used]
    if reason := correlation.unusable(np.stack([x, y]), correlation.FEWEST):
        return Correlation(n=used.size, partials=partials, reason=reason)
    test = correlation.permutation_p(x, y, settings.permutations, settings.seed)
    rho = float(test.rho)
    fisher = correlation.fisher_interval(rho, used.size, settings.level)
    wide = correlation.bonett_wright_interval(rho, used.size, settings.level)
    bootstrap = correlation.paired_bootstrap(x, y, settings.resamples, settings.seed)
    percentile = correlation.percentile_interval(bootstrap.draws[:, 0, 0], settings.level)
    without = correlation.leave_one_out(x, y)
    culprit = without.most_influential
    return Correlation(
        n=used.size,
        rho=rho,
        p_permutation=float(test.p),
        permutation_method=test.method,
        p_asymptotic=float(correlation.asymptotic_p(rho, used.size)),
        fisher_low=float(fisher.low),
        fisher_high=float(fisher.high),
        bonett_wright_low=float(wide.low),
        bonett_wright_high=float(wide.high),
        bootstrap_low=float(percentile.low),
        bootstrap_high=float(percentile.high),
        bootstrap_valid=int(bootstrap.valid[0, 0]),
        loo_low=without.low,
        loo_high=without.high,
        loo_most_influential=None if culprit is None else int(used[culprit]),
        partials=partials,
    )
