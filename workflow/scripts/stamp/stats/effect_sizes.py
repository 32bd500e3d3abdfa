"""How far two groups of models lie apart: Cliff's delta, differences of means, rank tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from stamp.stats.correlations.correlation import percentile_interval
from stamp.stats.ranks import Array

NAN = float("nan")
RESAMPLE = 6  # a tag that keeps the random streams of one seed apart
EXACT_SIZE = 50  # models per group up to which Mann and Whitney's distribution is enumerated


@dataclass(frozen=True, slots=True)
class Effect:
    """A difference between two groups with its bootstrap interval."""

    value: float
    low: float
    high: float
    sizes: tuple[int, int]


@dataclass(frozen=True, slots=True)
class MannWhitney:
    """U of the first group and its p on each side; ``method`` says whether they are exact."""

    u: float
    p_two_sided: float
    p_greater: float
    p_less: float
    method: str


@dataclass(frozen=True, slots=True)
class KruskalWallis:
    """H, corrected for ties, with p of chi-squared with ``df`` degrees of freedom."""

    h: float
    df: int
    p: float


def cliffs_delta(
    first: ArrayLike,
    second: ArrayLike,
    resamples: int = 10_000,
    level: float = 0.95,
    seed: int = 0,
) -> Effect:
    """(#{a > b} - #{a < b}) / (n m) over all pairs of the two groups, with a bootstrap interval.

    Cliff 1993, Psychological Bulletin 114:494-509; 1 where every a exceeds every b. The groups are
    resampled separately; percentile interval. Groups that do not overlap never do in a resample
    either: at -1 and 1 the interval is a point, which says nothing of its uncertainty.
    """
    a, b = _groups(first, second)
    of_a, of_b = _counts(a.size, b.size, resamples, seed)
    return effects(a, b, of_a, of_b, level)[0]


def mean_difference(
    first: ArrayLike,
    second: ArrayLike,
    resamples: int = 10_000,
    level: float = 0.95,
    seed: int = 0,
) -> Effect:
    """The first group's mean minus the second's; percentile interval, groups resampled apart."""
    a, b = _groups(first, second)
    of_a, of_b = _counts(a.size, b.size, resamples, seed)
    return effects(a, b, of_a, of_b, level)[1]


def effects(a: Array, b: Array, of_a: Array, of_b: Array, level: float) -> tuple[Effect, Effect]:
    """Cliff's delta and the difference of means, from how often each resample has each model."""
    above = np.sign(a[:, None] - b[None, :])
    deltas = ((of_a @ above) * of_b).sum(axis=1) / above.size
    gaps = of_a @ a / a.size - of_b @ b / b.size
    ends = percentile_interval(np.stack([deltas, gaps], axis=1), level)
    values = (float(above.mean()), float(a.mean() - b.mean()))
    delta, gap = (
        Effect(value, float(low), float(high), (a.size, b.size))
        for value, low, high in zip(values, ends.low, ends.high, strict=True)
    )
    return delta, gap


def mann_whitney(first: ArrayLike, second: ArrayLike) -> MannWhitney:
    """Mann and Whitney's U test; null hypothesis: both groups have the same distribution.

    Exact where no values are tied and a group has at most 50 models, else the normal approximation
    with corrections for ties and continuity.
    """
    a, b = _groups(first, second)
    tied = np.unique(np.concatenate([a, b])).size < a.size + b.size
    method = "asymptotic" if tied or min(a.size, b.size) > EXACT_SIZE else "exact"
    sides = [
        stats.mannwhitneyu(a, b, alternative=side, method=method)
        for side in ("two-sided", "greater", "less")
    ]
    p = [float(side.pvalue) for side in sides]
    return MannWhitney(float(sides[0].statistic), p[0], p[1], p[2], method)


def kruskal_wallis(groups: Sequence[ArrayLike]) -> KruskalWallis:
    """Kruskal and Wallis' H test; null hypothesis: all groups have the same distribution."""
    found = stats.kruskal(*[np.asarray(group, dtype=np.float64) for group in groups])
    return KruskalWallis(float(found.statistic), len(groups) - 1, float(found.pvalue))


def _groups(first: ArrayLike, second: ArrayLike) -> tuple[Array, Array]:
    a, b = (np.asarray(group, dtype=np.float64).ravel() for group in (first, second))
    if not a.size or not b.size:
        raise ValueError(f"groups of {a.size} and {b.size} models cannot be compared")
    if np.isnan(a).any() or np.isnan(b).any():
        raise ValueError("NaN cannot be ranked: drop it first")
    return a, b


def _counts(n: int, m: int, resamples: int, seed: int) -> tuple[Array, Array]:
    """How often each model is in each resample, [resamples, n] and [resamples, m]."""
    rng = np.random.default_rng([seed, RESAMPLE])
    found = [rng.multinomial(size, np.full(size, 1 / size), size=resamples) for size in (n, m)]
    return found[0].astype(np.float64), found[1].astype(np.float64)
