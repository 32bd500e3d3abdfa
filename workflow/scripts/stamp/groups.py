"""Whether groups of models differ: rank tests, and intervals of what sets two groups apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtrc, ndtr

from stamp.correlation import CHUNK, percentile_interval
from stamp.ranks import Array, centred_ranks, mid_ranks

NAN = float("nan")
LARGEST = 2_500  # n m up to which all ways to choose the first group are counted
KRUSKAL, MEANS = 21, 22  # tags that keep the random streams of one seed apart


@dataclass(frozen=True, slots=True)
class Kruskal:
    """H with its degrees of freedom, and p by chi-squared and by permutations."""

    h: float
    df: int
    p_asymptotic: float
    p_permutation: float


@dataclass(frozen=True, slots=True)
class MannWhitney:
    """U of the first group, and p: two-sided, and for the side that the first is greater."""

    u: float
    p: float
    p_greater: float
    method: str


@dataclass(frozen=True, slots=True)
class MeanDifference:
    """The mean of the first group minus that of the second, with a percentile interval."""

    difference: float
    low: float
    high: float


def kruskal_wallis(groups: Sequence[ArrayLike], permutations: int, seed: int = 0) -> Kruskal:
    """Kruskal and Wallis's test (1952); null hypothesis: all groups have the same distribution.

    H = (N - 1) sum_g n_g (rbar_g - rbar)^2 / sum_i (r_i - rbar)^2 with the mid-ranks r of all N
    values, which is the usual H corrected for ties. p by chi-squared with k - 1 degrees of freedom,
    and p = (1 + #{H_b >= H}) / (B + 1) over B random orders of the values, which holds for groups of
    any size. NaN where all values are the same.
    """
    sizes = np.array([len(np.atleast_1d(group)) for group in groups])
    ranks = centred_ranks(np.concatenate([np.asarray(group, np.float64) for group in groups]))
    n, scale, df = ranks.size, float(ranks @ ranks), len(sizes) - 1
    if scale == 0:
        return Kruskal(NAN, df, NAN, NAN)
    member = (np.repeat(np.arange(len(sizes)), sizes)[:, None] == np.arange(len(sizes))) * 1.0
    observed = _between(ranks[None], member, sizes)[0]
    rng, extreme, rows = np.random.default_rng([seed, KRUSKAL]), 0, max(128, CHUNK // n)
    for start in range(0, permutations, rows):
        block = np.tile(ranks, (min(rows, permutations - start), 1))
        found = _between(rng.permuted(block, axis=1), member, sizes)
        # sums of ranks are whole numbers, their squares over sizes are not: equal may differ by 1e-16
        extreme += int(np.count_nonzero(found >= observed * (1 - 1e-12)))
    h = (n - 1) * observed / scale
    return Kruskal(
        h=float(h),
        df=df,
        p_asymptotic=float(chdtrc(df, h)),
        p_permutation=(1 + extreme) / (1 + permutations),
    )


def _between(ranks: Array, member: Array, sizes: np.ndarray) -> Array:
    """The sum of squares between the groups of centred ranks [rows, N]."""
    return np.square(ranks @ member) @ (1 / sizes)


def mann_whitney(x: ArrayLike, y: ArrayLike) -> MannWhitney:
    """Mann and Whitney's test (1947); null hypothesis: both groups have the same distribution.

    U = #{x > y} + #{x = y} / 2. "exact": the share of all ways to choose n of the n + m mid-ranks
    whose sum is as large (``p_greater``), and twice the smaller of both sides, at most 1
    (``p``); with ties this is the conditional permutation test. Where n m is large, "normal":
    the approximation corrected for ties and continuity.
    """
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    n, m = x.size, y.size
    doubled = np.rint(2 * mid_ranks(np.concatenate([x, y]))).astype(np.int64)
    found = int(doubled[:n].sum())
    u = found / 2 - n * (n + 1) / 2
    if n * m > LARGEST:
        return _normal(u, doubled, n, m)
    # the sums of the smaller group determine those of the larger one
    swapped = m < n
    size, own = (m, int(doubled[n:].sum())) if swapped else (n, found)
    ways = _subset_sums(doubled, size)
    total = float(ways.sum())
    high, low = float(ways[own:].sum()) / total, float(ways[: own + 1].sum()) / total
    greater, less = (low, high) if swapped else (high, low)
    return MannWhitney(u, min(1.0, 2 * min(greater, less)), greater, "exact")


def _subset_sums(values: np.ndarray, size: int) -> Array:
    """How many ways there are to choose ``size`` of the values, by their sum."""
    most = int(np.sort(values)[-size:].sum()) if size else 0
    ways = np.zeros((size + 1, most + 1))
    ways[0, 0] = 1
    for value in values:
        ways[1:, value:] += ways[:-1, : most + 1 - value].copy()
    return ways[size]


def _normal(u: float, doubled: np.ndarray, n: int, m: int) -> MannWhitney:
    """The normal approximation with corrections for ties and continuity."""
    both = n + m
    ties = np.unique(doubled, return_counts=True)[1].astype(np.float64)
    variance = n * m / 12 * (both + 1 - (ties**3 - ties).sum() / (both * (both - 1)))
    if variance == 0:
        return MannWhitney(u, 1.0, 1.0, "normal")
    gap, scale = u - n * m / 2, math.sqrt(variance)
    greater = float(ndtr(-(gap - 0.5) / scale))
    two = min(1.0, 2 * float(ndtr(-(abs(gap) - 0.5) / scale)))
    return MannWhitney(u, two, greater, "normal")


def mean_differences(
    groups: Sequence[ArrayLike], resamples: int, level: float, seed: int = 0
) -> dict[tuple[int, int], MeanDifference]:
    """The difference of means of each two groups (i < j), with a percentile bootstrap interval.

    Every group is resampled by itself, with replacement; the draws of a group serve all its
    differences.
    """
    rng = np.random.default_rng([seed, MEANS])
    arrays = [np.asarray(group, dtype=np.float64) for group in groups]
    draws = [
        one[rng.integers(one.size, size=(resamples, one.size))].mean(axis=1) for one in arrays
    ]
    pairs = [(i, j) for i in range(len(arrays)) for j in range(i + 1, len(arrays))]
    if not pairs:
        return {}
    spread = np.stack([draws[i] - draws[j] for i, j in pairs], axis=1)
    interval = percentile_interval(spread, level)
    return {
        (i, j): MeanDifference(
            float(arrays[i].mean() - arrays[j].mean()), float(low), float(high)
        )
        for (i, j), low, high in zip(pairs, interval.low, interval.high, strict=True)
    }
