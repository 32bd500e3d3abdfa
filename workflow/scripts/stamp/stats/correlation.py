"""How well a score orders models as an outcome does: rho, its tests, intervals and robustness."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri, stdtr

from stamp.stats.ranks import (
    Array,
    centred_ranks,
    comparisons,
    rank_correlation,
    resampled_spearman,
    spearman,
)

NAN = float("nan")
FEWEST = 4  # models below which no correlation is reported: no interval exists for n <= 3
CHUNK = 1 << 15  # numbers held at once by a resampling loop: few enough for the cache
PERMUTE, RESAMPLE = 1, 2  # tags that keep the random streams of one seed apart
TOLERANCE = 1e-10  # residuals are not whole numbers: equal correlations may differ by rounding


@dataclass(frozen=True, slots=True)
class Permutation:
    """rho and its permutation p, each with one entry a target (a scalar for a one-column y)."""

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
    """rho of one metric minus rho of another, one entry a target, with interval and p."""

    difference: Array
    low: Array
    high: Array
    p: Array
    valid: np.ndarray


@dataclass(frozen=True, slots=True)
class Partial:
    """Partial Spearman correlation; NaN with the ``reason`` where it is undefined."""

    rho: float = NAN
    n: int = 0
    df: int = 0
    p_asymptotic: float = NAN
    p_permutation: float = NAN
    permutation_method: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class LeaveOneOut:
    """rho without each model, its range, and the model whose absence moves rho the most."""

    rho: Array
    low: float
    high: float
    most_influential: int | None


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
    for shuffled in _shuffles((x_ranks - x_ranks.min()).astype(np.int64), permutations, seed):
        sums = np.abs(shuffled.astype(np.float64) @ y_ranks.T)
        extreme += np.count_nonzero(sums >= observed, axis=0)
    method = permutation_method(x_ranks.size, permutations)
    used = math.factorial(x_ranks.size) if method == "exact" else permutations
    p = np.where(np.isnan(rho), NAN, _share(extreme, used, method))
    return Permutation(rho=rho, p=p, method=method, permutations=used)


def permutation_method(n: int, permutations: int) -> str:
    """How a p is found: "exact" where all n! orders are no more than the permutations asked for."""
    return "exact" if n <= 20 and math.factorial(n) <= permutations else "monte-carlo"


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
    x: ArrayLike, y: ArrayLike, resamples: int = 10_000, seed: int = 0
) -> Bootstrap:
    """rho of each metric [metrics, n] with each target [targets, n] over resamples of the models.

    The n models are drawn with replacement, jointly for all metrics and targets, and mid-ranks
    are those of the resample. A resample in which a side is constant gives NaN.
    """
    x, y = np.atleast_2d(np.asarray(x, np.float64)), np.atleast_2d(np.asarray(y, np.float64))
    n = x.shape[1]
    if n == 0 or y.shape[1] != n or resamples < 1:
        raise ValueError(f"cannot resample {x.shape} and {y.shape} {resamples} times")
    draws = np.empty((resamples, len(x), len(y)))
    x_signs, y_signs = comparisons(x), comparisons(y)
    rows = max(128, CHUNK // (n * (len(x) + len(y))))
    rng = np.random.default_rng([seed, RESAMPLE])
    for start in range(0, resamples, rows):
        size = min(rows, resamples - start)
        drawn = rng.integers(n, size=(size, n)) + np.arange(0, size * n, n)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n)
        draws[start : start + size] = resampled_spearman(x_signs, y_signs, counts)
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
        valid=valid,
    )


def partial_spearman(
    x: ArrayLike, y: ArrayLike, controls: ArrayLike, permutations: int = 10_000, seed: int = 0
) -> Partial:
    """Spearman's rho of x and y given the controls [k, n]; models with a NaN anywhere are dropped.

    The correlation of what is left of the mid-ranks of x and y after least squares on those of the
    controls. For one control z this is Kendall's (r_xy - r_xz r_yz) / sqrt((1 - r_xz^2)(1 -
    r_yz^2)); for any number, -P_xy / sqrt(P_xx P_yy) with P the inverse of the rank-correlation
    matrix (Kendall 1942; Whittaker 1990). t test with df = n - 2 - k. Permutation p after
    Freedman & Lane 1983: the residuals e of y's ranks are permuted, and e_b, freed again of the
    controls, is correlated with the residuals of x.
    """
    rows = np.vstack([np.atleast_2d(np.asarray(row, np.float64)) for row in (x, y, controls)])
    rows = rows[:, ~np.isnan(rows).any(axis=0)]
    n, k = rows.shape[1], len(rows) - 2
    df = n - 2 - k
    if reason := _too_poor(rows, k + 3):
        return Partial(n=n, df=df, reason=reason)
    ranks = centred_ranks(rows)
    basis, triangle = np.linalg.qr(ranks[2:].T)
    left = ranks[:2] - ranks[:2] @ basis @ basis.T
    scale = np.square(ranks).sum(axis=1)
    if reason := _dependence(np.square(left).sum(axis=1) / scale[:2], triangle, scale[2:]):
        return Partial(n=n, df=df, reason=reason)
    x_left, y_left = left / np.linalg.norm(left, axis=1, keepdims=True)
    rho = min(1.0, max(-1.0, float(x_left @ y_left)))
    method = permutation_method(n, permutations)
    return Partial(
        rho=rho,
        n=n,
        df=df,
        p_asymptotic=float(asymptotic_p(rho, n, k)),
        p_permutation=_freedman_lane(x_left, y_left, basis, permutations, seed),
        permutation_method=method,
    )


def leave_one_out(x: ArrayLike, y: ArrayLike) -> LeaveOneOut:
    """rho with each model left out in turn; leaving one out is the resample with counts 1 - I."""
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    rho = resampled_spearman(comparisons(x[None]), comparisons(y[None]), 1 - np.eye(x.size))
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


def correlate(
    x: ArrayLike,
    y: ArrayLike,
    controls: Mapping[str, ArrayLike] | None = None,
    permutations: int = 10_000,
    resamples: int = 10_000,
    level: float = 0.95,
    seed: int = 0,
) -> Correlation:
    """All that is reported on one score x and one target y; models with NaN in either are dropped.

    ``controls`` maps a name to what a partial correlation controls for: [n], or [k, n] for
    several at once. ``loo_most_influential`` is a position in x as it was given. With fewer than
    four models, or a constant side, everything is NaN and ``reason`` says why.
    """
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    used = np.flatnonzero(~(np.isnan(x) | np.isnan(y)))
    partials = {
        name: partial_spearman(x, y, control, permutations, seed)
        for name, control in (controls or {}).items()
    }
    x, y = x[used], y[used]
    if reason := _too_poor(np.stack([x, y]), FEWEST):
        return Correlation(n=used.size, partials=partials, reason=reason)
    test = permutation_p(x, y, permutations, seed)
    rho = float(test.rho)
    fisher = fisher_interval(rho, used.size, level)
    wide = bonett_wright_interval(rho, used.size, level)
    bootstrap = paired_bootstrap(x, y, resamples, seed)
    percentile = percentile_interval(bootstrap.draws[:, 0, 0], level)
    without = leave_one_out(x, y)
    culprit = without.most_influential
    return Correlation(
        n=used.size,
        rho=rho,
        p_permutation=float(test.p),
        permutation_method=test.method,
        p_asymptotic=float(asymptotic_p(rho, used.size)),
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


def _shuffles(codes: np.ndarray, permutations: int, seed: int) -> Iterator[np.ndarray]:
    """Blocks [rows, n] of permuted codes (whole numbers from 0): all n! orders where those are few.

    Random orders come from sorting words with random high bits and a code in the low ones, which
    numpy does with vector instructions: twice as fast as ``Generator.permuted``.
    """
    if permutations < 1:
        raise ValueError(f"{permutations} permutations: at least 1 is needed")
    rows = max(2, CHUNK // codes.size // 2 * 2)
    if permutation_method(codes.size, permutations) == "exact":
        orders = itertools.permutations(codes.tolist())
        while block := list(itertools.islice(orders, rows)):
            yield np.array(block)
        return
    rng = np.random.default_rng([seed, PERMUTE])
    low = (1 << int(codes.max()).bit_length()) - 1
    word = np.dtype("<u4" if low < 1024 else "<u8")
    # This common first shuffle makes every row uniform even where the random bits of two words tie.
    codes = np.tile(rng.permutation(codes).astype(word), (rows, 1))
    for start in range(0, permutations, rows):
        size = min(rows, permutations - start)
        words = _random_words(size * codes.shape[1], word, rng).reshape(size, -1)
        words &= word.type(np.iinfo(word).max - low)
        words |= codes[:size]
        words.sort(axis=1)
        words &= word.type(low)
        yield words


def _random_words(count: int, word: np.dtype, rng: np.random.Generator) -> np.ndarray:
    """``count`` words of random bits; 32-bit words come two from a draw."""
    draws = -(-count * word.itemsize // 8)
    bits = rng.integers(1 << 64, size=draws, dtype=np.uint64).astype("<u8", copy=False)
    return bits.view(word)[:count]


def _share(extreme: ArrayLike, used: int, method: str) -> Array:
    """p from the number of permutations at least as extreme as what was observed."""
    count = np.asarray(extreme, dtype=np.float64)
    return count / used if method == "exact" else (1 + count) / (used + 1)


def _freedman_lane(
    x_left: Array, y_left: Array, basis: Array, permutations: int, seed: int
) -> float:
    """Permutation p for unit residuals of x and y on the space spanned by ``basis`` [n, k].

    x's residuals are orthogonal to that space, so only the length of y's permuted residuals
    has to be freed of it: |M e_b|^2 = |e_b|^2 - |Q' e_b|^2.
    """
    observed = abs(float(x_left @ y_left))
    extreme = 0
    for order in _shuffles(np.arange(y_left.size), permutations, seed):
        shuffled = y_left.take(order.astype(np.intp))
        length = 1 - np.square(shuffled @ basis).sum(axis=1)
        reach = (observed - TOLERANCE) * np.sqrt(np.maximum(length, 0))
        # Nothing left of a permutation once freed of the controls: counted against us.
        beyond = (np.abs(shuffled @ x_left) >= reach) | (length <= TOLERANCE)
        extreme += int(np.count_nonzero(beyond))
    method = permutation_method(y_left.size, permutations)
    used = math.factorial(y_left.size) if method == "exact" else permutations
    return float(_share(extreme, used, method))


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


def _too_poor(rows: Array, fewest: int) -> str:
    """Why rows of (x, y, controls...) allow no correlation, or nothing."""
    if rows.shape[1] < fewest:
        return f"{rows.shape[1]} models are too few: at least {fewest} are needed"
    for row, name in zip(rows, ("the score", "the target"), strict=False):
        if np.all(row == row[0]):
            return f"{name} is the same for all {row.size} models"
    if any(np.all(row == row[0]) for row in rows[2:]):
        return f"a control is the same for all {rows.shape[1]} models"
    return ""


def _dependence(left: Array, triangle: Array, scale: Array) -> str:
    """Why a partial correlation is undefined: controls that determine each other, x or y."""
    if np.any(np.square(np.diag(triangle)) <= TOLERANCE * scale):
        return "the ranks of the controls determine each other"
    for share, name in zip(left, ("score", "target"), strict=True):
        if share <= TOLERANCE:
            return f"the ranks of the {name} are determined by the controls"
    return ""
