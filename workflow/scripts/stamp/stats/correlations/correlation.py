"""How well a score orders models as an outcome does: Spearman's rho, its tests and intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri, stdtr

from stamp.stats.permutations import p_value, permutation_method, shuffles
from stamp.stats.ranks import (
    Array,
    Sorted,
    centred_ranks,
    rank_correlation,
    resampled_spearman,
    spearman,
)

NAN = float("nan")
CHUNK = 1 << 19  # ranks held at once by the bootstrap
FEWEST = 4  # models below which no correlation is reported: no interval exists for n <= 3
RESAMPLE = 2  # a tag that keeps the random streams of one seed apart


@dataclass(frozen=True, slots=True)
class Permutation:
    """rho and its permutation p, each with one entry per target (a scalar for a one-column y)."""

    rho: Array
    p: Array
    method: str
    permutations: int


@dataclass(frozen=True, slots=True)
class Interval:
    """Lower and upper limit, with the shape of what they bound."""

    low: Array
    high: Array


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """rho [metrics, targets], its draws [resamples, metrics, targets] and how many are not NaN."""

    rho: Array
    draws: Array
    valid: np.ndarray


@dataclass(frozen=True, slots=True)
class Difference:
    """rho of one metric minus rho of another, one entry per target, with interval and p.

    ``draws`` [resamples, targets] are those of a bootstrap.
    """

    difference: Array
    low: Array
    high: Array
    p: Array
    draws: Array


@dataclass(frozen=True, slots=True)
class LeaveOneOut:
    """rho without each model, its range, and the model whose absence moves rho the most."""

    rho: Array
    low: float
    high: float
    most_influential: int | None


def known_spearman(x: ArrayLike, y: ArrayLike) -> float:
    """Spearman's rho over the models that have both values; NaN where those are too few."""
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    both = ~(np.isnan(x) | np.isnan(y))
    return float(spearman(x[both], y[both])) if both.sum() >= FEWEST else NAN


def permutation_p(
    x: ArrayLike, y: ArrayLike, permutations: int = 10_000, seed: int = 0
) -> Permutation:
    """Two-sided permutation test of Spearman's rho; null hypothesis: x and y are independent.

    ``y`` is [n], or [n, targets] for several targets that share the permutations of x.
    p = (1 + #{|rho_b| >= |rho|}) / (B + 1) with B random permutations ("monte-carlo"; Davison &
    Hinkley 1997, 4.2), or #{|rho_b| >= |rho|} / n! over all of them where n! <= ``permutations``
    ("exact"). Rank sums are whole numbers, so ties between rho_b and rho are decided exactly.
    NaN where x or y is constant.
    """
    x_ranks = centred_ranks(x)
    y_ranks = centred_ranks(np.asarray(y, dtype=np.float64).T)
    rho = rank_correlation(x_ranks, y_ranks)
    observed = np.abs(y_ranks @ x_ranks)
    extreme = np.zeros(observed.shape, dtype=np.int64)
    # y's ranks sum to zero, so x's may start at zero: codes that need no decoding.
    for shuffled in shuffles((x_ranks - x_ranks.min()).astype(np.int64), permutations, seed):
        sums = np.abs(shuffled.astype(np.float64) @ y_ranks.T)
        extreme += np.count_nonzero(sums >= observed, axis=0)
    method = permutation_method(x_ranks.size, permutations)
    used = math.factorial(x_ranks.size) if method == "exact" else permutations
    p = np.where(np.isnan(rho), NAN, p_value(extreme, used, method))
    return Permutation(rho=rho, p=p, method=method, permutations=used)


def asymptotic_p(rho: ArrayLike, n: int, controls: int = 0) -> Array:
    """Two-sided p of t = rho sqrt(df / (1 - rho^2)) with df = n - 2 - controls; NaN if df < 1.

    The usual approximation for Spearman's rho (Kendall & Stuart 1973, 31.18), with one degree of
    freedom less for each variable that a partial correlation controls for.
    """
    rho = np.asarray(rho, dtype=np.float64)
    df = n - 2 - controls
    if df < 1:
        return np.full(rho.shape, NAN)
    with np.errstate(divide="ignore"):
        t = np.abs(rho) * np.sqrt(df / (1 - rho**2))
    return np.asarray(2 * stdtr(df, -t))


def fisher_interval(rho: ArrayLike, n: int, level: float = 0.95) -> Interval:
    """tanh(atanh(rho) -+ z SE) with SE = 1 / sqrt(n - 3) (Fisher 1921), made for Pearson's r.

    Too short for Spearman's rho where rho is large: see ``bonett_wright_interval``. NaN for
    n <= 3; at |rho| = 1 the limit of the formula, the point rho itself.
    """
    rho = np.asarray(rho, dtype=np.float64)
    return _tanh_interval(rho, np.ones_like(rho), n, level)


def bonett_wright_interval(rho: ArrayLike, n: int, level: float = 0.95) -> Interval:
    """tanh(atanh(rho) -+ z SE) with SE = sqrt((1 + rho^2 / 2) / (n - 3)).

    Bonett & Wright 2000, Psychometrika 65:23-28, for Spearman's rho. NaN for n <= 3; at |rho| = 1
    the limit of the formula, the point rho itself.
    """
    rho = np.asarray(rho, dtype=np.float64)
    return _tanh_interval(rho, 1 + rho**2 / 2, n, level)


def paired_bootstrap(
    x: ArrayLike,
    y: ArrayLike,
    resamples: int = 10_000,
    seed: int = 0,
    members: np.ndarray | None = None,
) -> Bootstrap:
    """rho of each metric [metrics, n] with each target [targets, n] over resamples of the models.

    The n models are drawn with replacement, jointly for all metrics and targets, and mid-ranks
    are those of the resample. A resample in which a side is constant gives NaN. Where only some of
    the models are ``members`` [n], the others are drawn too and left out: bootstraps of the same n
    and seed draw the same models, whichever of them are members.
    """
    x, y = np.atleast_2d(np.asarray(x, np.float64)), np.atleast_2d(np.asarray(y, np.float64))
    n = x.shape[1]
    if n == 0 or y.shape[1] != n or resamples < 1:
        raise ValueError(f"cannot resample {x.shape} and {y.shape} {resamples} times")
    kept = np.ones(n, dtype=bool) if members is None else members
    x, y = x[:, kept], y[:, kept]
    draws = np.empty((resamples, len(x), len(y)))
    x_sorted, y_sorted = Sorted.of(x), Sorted.of(y)
    rows = max(128, CHUNK // (n * (len(x) + len(y))))
    rng = np.random.default_rng([seed, RESAMPLE])
    for start in range(0, resamples, rows):
        size = min(rows, resamples - start)
        drawn = rng.integers(n, size=(size, n)) + np.arange(0, size * n, n)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n)
        draws[start : start + size] = resampled_spearman(x_sorted, y_sorted, counts[:, kept])
    return Bootstrap(
        rho=spearman(x[:, None], y[None]), draws=draws, valid=(~np.isnan(draws)).sum(axis=0)
    )


def percentile_interval(draws: ArrayLike, level: float = 0.95) -> Interval:
    """Percentile interval over the first axis of the draws that are not NaN; NaN if none is.

    Quantiles interpolate linearly between order statistics, as numpy's do.
    """
    tail = _tail(level)
    low, high = quantiles(draws, (tail, 1 - tail))
    return Interval(low=low, high=high)


def quantiles(draws: ArrayLike, levels: ArrayLike) -> Array:
    """Linearly interpolated quantiles [levels, ...] over the first axis, NaN left out."""
    ordered = np.sort(np.asarray(draws, dtype=np.float64), axis=0)
    valid = (~np.isnan(ordered)).sum(axis=0)
    shape = (-1,) + (1,) * valid.ndim
    place = np.asarray(levels, dtype=np.float64).reshape(shape) * np.maximum(valid - 1, 0)
    below = np.floor(place).astype(np.intp)
    above = np.minimum(below + 1, np.maximum(valid - 1, 0))
    low = np.take_along_axis(ordered, below, axis=0)
    high = np.take_along_axis(ordered, above, axis=0)
    return low + (high - low) * (place - below)


def metric_difference(
    bootstrap: Bootstrap, first: int, second: int, level: float = 0.95
) -> Difference:
    """rho of metric ``first`` minus rho of metric ``second`` with every target, from shared draws.

    Percentile interval and two-sided bootstrap p of no difference,
    2 min(1 + #{d <= 0}, 1 + #{d >= 0}) / (B + 1), at most 1, over the B draws where both exist.
    """
    draws = bootstrap.draws[:, first] - bootstrap.draws[:, second]
    valid = (~np.isnan(draws)).sum(axis=0)
    tail = 1 + np.minimum((draws <= 0).sum(axis=0), (draws >= 0).sum(axis=0))
    interval = percentile_interval(draws, level)
    return Difference(
        difference=bootstrap.rho[first] - bootstrap.rho[second],
        low=interval.low,
        high=interval.high,
        p=np.where(valid > 0, np.minimum(1, 2 * tail / (valid + 1)), NAN),
        draws=draws,
    )


def leave_one_out(x: ArrayLike, y: ArrayLike) -> LeaveOneOut:
    """rho with each model left out in turn; leaving one out is the resample with counts 1 - I."""
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    rho = resampled_spearman(Sorted.of(x), Sorted.of(y), 1 - np.eye(x.size))
    rho = rho[:, 0, 0]
    moved = np.abs(rho - spearman(x, y))
    if np.isnan(moved).all():
        return LeaveOneOut(rho=rho, low=NAN, high=NAN, most_influential=None)
    return LeaveOneOut(
        rho=rho,
        low=float(np.nanmin(rho)),
        high=float(np.nanmax(rho)),
        most_influential=int(np.nanargmax(moved)),
    )


def _tail(level: float) -> float:
    """What an interval of that level leaves out on each side."""
    if not 0 < level < 1:
        raise ValueError(f"level {level}: must lie between 0 and 1")
    return (1 - level) / 2


def _tanh_interval(rho: Array, variance: Array, n: int, level: float) -> Interval:
    """Interval on Fisher's z scale where the standard error is sqrt(variance / (n - 3))."""
    half = -float(ndtri(_tail(level)))
    if n <= 3:
        return Interval(low=np.full(rho.shape, NAN), high=np.full(rho.shape, NAN))
    with np.errstate(divide="ignore"):
        z = np.arctanh(rho)
    reach = half * np.sqrt(variance / (n - 3))
    return Interval(low=np.tanh(z - reach), high=np.tanh(z + reach))


def unusable(rows: Array, fewest: int) -> str:
    """Why rows of (x, y, controls...) allow no correlation, or nothing."""
    if rows.shape[1] < fewest:
        return f"{rows.shape[1]} models are too few: at least {fewest} are needed"
    for row, name in zip(rows, ("the score", "the target"), strict=False):
        if np.all(row == row[0]):
            return f"{name} is the same for all {row.size} models"
    if any(np.all(row == row[0]) for row in rows[2:]):
        return f"a control is the same for all {rows.shape[1]} models"
    return ""
