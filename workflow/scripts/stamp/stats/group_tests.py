"""Whether groups of models differ, for groups of a few: tests that count or draw orders of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from stamp.stats import effect_sizes as effect
from stamp.stats.effect_sizes import Effect, MannWhitney
from stamp.stats.permutations import CHUNK
from stamp.stats.ranks import Array, centred_ranks, mid_ranks

LARGEST = 2_500  # n m up to which all ways to choose the first group are counted
KRUSKAL, RESAMPLE = 21, 22  # tags that keep the random streams of one seed apart
SLACK = 1e-12  # squares over sizes are not whole numbers: equal statistics may differ by rounding


@dataclass(frozen=True, slots=True)
class Resampler:
    """Resamples of several groups, each by itself, that many comparisons of the groups share.

    Drawing takes most of the time of the effects in ``stamp.stats.effect_sizes``; here a group is
    drawn once, whatever is measured of it and whichever group it is compared with.
    """

    resamples: int
    level: float
    seed: int
    drawn: dict[tuple[int, int], Array] = field(default_factory=dict)

    def counts(self, group: int, size: int) -> Array:
        """How often each member is in each resample of a group, [resamples, size]."""
        if (group, size) not in self.drawn:
            rng = np.random.default_rng([self.seed, RESAMPLE, group])
            picked = rng.integers(size, size=(self.resamples, size))
            picked += np.arange(0, self.resamples * size, size)[:, None]
            found = np.bincount(picked.ravel(), minlength=self.resamples * size)
            self.drawn[group, size] = found.reshape(self.resamples, size).astype(np.float64)
        return self.drawn[group, size]

    def effects(self, groups: Sequence[Array], i: int, j: int) -> tuple[Effect, Effect]:
        """Cliff's delta and the difference of means of two groups, with percentile intervals.

        As ``stamp.stats.effect_sizes`` defines them. Where two groups do not overlap, no resample
        does: the interval of delta is then a point, which says nothing of its uncertainty.
        """
        a, b = groups[i], groups[j]
        of_a, of_b = self.counts(i, a.size), self.counts(j, b.size)
        return effect.effects(a, b, of_a, of_b, self.level)


def kruskal_permutation_p(groups: Sequence[ArrayLike], permutations: int, seed: int = 0) -> float:
    """p of Kruskal and Wallis's H over random orders, (1 + #{H_b >= H}) / (B + 1).

    Null hypothesis: all groups have the same distribution. Unlike chi-squared it holds for groups
    of any size. H grows with sum_g R_g^2 / n_g, R_g the sums of centred mid-ranks. NaN where all
    values are the same.
    """
    sizes = np.array([np.size(group) for group in groups])
    ranks = centred_ranks(np.concatenate([np.asarray(group, np.float64) for group in groups]))
    if not ranks.any():
        return float("nan")
    member = (np.repeat(np.arange(len(sizes)), sizes)[:, None] == np.arange(len(sizes))) * 1.0
    observed = _between(ranks[None], member, sizes)[0]
    rng, extreme, rows = np.random.default_rng([seed, KRUSKAL]), 0, max(128, CHUNK // ranks.size)
    for start in range(0, permutations, rows):
        block = np.tile(ranks, (min(rows, permutations - start), 1))
        found = _between(rng.permuted(block, axis=1), member, sizes)
        extreme += int(np.count_nonzero(found >= observed * (1 - SLACK)))
    return (1 + extreme) / (1 + permutations)


def _between(ranks: Array, member: Array, sizes: np.ndarray) -> Array:
    """The sum of squares between the groups of centred ranks [rows, N]."""
    return np.square(ranks @ member) @ (1 / sizes)


def mann_whitney(first: ArrayLike, second: ArrayLike) -> MannWhitney:
    """Mann and Whitney's U test, exact with ties too; null hypothesis: the same distribution.

    ``p_greater`` is the share of all ways to choose the first group's n of the n + m mid-ranks
    whose sum is as large, ``p_less`` as small, and the two-sided p twice the smaller of the two, at
    most 1. Where n m is large, as ``stamp.stats.effect_sizes`` has it.
    """
    x, y = np.asarray(first, np.float64), np.asarray(second, np.float64)
    n, m = x.size, y.size
    if n * m > LARGEST:
        return effect.mann_whitney(x, y)
    doubled = np.rint(2 * mid_ranks(np.concatenate([x, y]))).astype(np.int64)
    own = int(doubled[:n].sum())
    u = own / 2 - n * (n + 1) / 2
    # the smaller group has fewer sums, and each leaves one sum to the larger
    smaller, sum_of = (n, own) if n <= m else (m, int(doubled.sum()) - own)
    ways = _subset_sums(doubled, smaller)
    large, small = (float(part.sum() / ways.sum()) for part in (ways[sum_of:], ways[: sum_of + 1]))
    greater, less = (large, small) if n <= m else (small, large)
    return MannWhitney(u, min(1.0, 2 * min(greater, less)), greater, less, "exact")


def mann_whitney_log10_p(first: ArrayLike, second: ArrayLike) -> float:
    """log10 of Mann and Whitney's two-sided p by the normal approximation, for large groups.

    With the corrections for ties and continuity, as scipy has them, and as a logarithm, since p of
    thousands of values is soon below the least number that a computer has. 0 where all values are
    the same.
    """
    x, y = np.asarray(first, np.float64), np.asarray(second, np.float64)
    n, m, total = x.size, y.size, x.size + y.size
    values = np.concatenate([x, y])
    u = mid_ranks(values)[:n].sum() - n * (n + 1) / 2
    ties = np.unique(values, return_counts=True)[1].astype(np.float64)
    spread = n * m / 12 * (total + 1 - np.sum(ties**3 - ties) / (total * (total - 1)))
    if not spread > 0:
        return 0.0
    z = (abs(u - n * m / 2) - 0.5) / np.sqrt(spread)
    return min(0.0, float((np.log(2) + stats.norm.logsf(z)) / np.log(10)))


def _subset_sums(values: np.ndarray, size: int) -> Array:
    """How many ways there are to choose ``size`` of the values, by their sum."""
    most = int(np.sort(values)[-size:].sum())
    ways = np.zeros((size + 1, most + 1))
    ways[0, 0] = 1
    for value in values:
        ways[1:, value:] += ways[:-1, : most + 1 - value].copy()
    return ways[size]
