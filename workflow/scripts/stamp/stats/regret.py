"""What choosing a model by a predictor costs: expected regret, and choices of close models.

A user has k models and takes the one that the predictor puts first. Regret is how much better the
best of the k is on the target. Over all subsets of k of n models its mean has a closed form: in the
order of the predictor, the model at place r (from 0) is the first of a random subset with
probability ``C(n - 1 - r, k - 1) / C(n, k)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stamp.stats.correlations.correlation import percentile_interval
from stamp.stats.ranks import Array

CHUNK = 1 << 17  # numbers sorted at once
RESAMPLE = 11  # a tag that keeps the random streams of one seed apart


@dataclass(frozen=True, slots=True)
class Resampling:
    """How models are drawn again: how often, by which families, at which level and seed."""

    resamples: int = 1000
    families: Sequence[str] | None = None
    level: float = 0.95
    seed: int = 0


DEFAULT = Resampling()


@dataclass(frozen=True, slots=True)
class Regret:
    """Expected loss in each outcome by picking the first of k by each predictor.

    ``regret``, ``low`` and ``high`` are [predictors, outcomes]; ``random`` [outcomes] is the regret
    of a random choice; ``draws`` [resamples, predictors, outcomes] serve differences of predictors.
    """

    k: int
    n: int
    regret: Array
    low: Array
    high: Array
    random: Array
    draws: Array


@dataclass(frozen=True, slots=True)
class ClosePairs:
    """Pairs of models that a control can't tell apart, and how often the better one is picked.

    ``right``, ``low`` and ``high`` are [predictors]; a tie of the predictor counts half. NaN
    without pairs.
    """

    pairs: int
    right: Array
    low: Array
    high: Array


def first_of_subset(n: int, k: int) -> Array:
    """The probability of each place to be the first of a random subset of k of n."""
    if not 1 <= k <= n:
        raise ValueError(f"a subset of {k} of {n} models does not exist")
    found = np.zeros(n)
    found[0] = k / n
    for place in range(1, n - k + 1):  # C(n-1-r, k-1) = C(n-r, k-1) (n-r-k+1) / (n-r)
        found[place] = found[place - 1] * (n - place - k + 1) / (n - place)
    return found


def expected_regret(score: ArrayLike, outcome: ArrayLike, k: int) -> float:
    """How much better the best of a random subset of k is than the first of it by ``score``.

    Models that tie share their places: one of them is picked at random.
    """
    score, outcome = (np.asarray(one, np.float64)[None] for one in (score, outcome))
    return float(_loss(score, outcome, np.ones(score.shape, np.intp), k)[0, 0, 0])


def regret(
    scores: ArrayLike, outcomes: ArrayLike, k: int, resampling: Resampling = DEFAULT
) -> Regret:
    """The expected regret of picking the first of k; of a score more should be better.

    ``scores`` are [predictors, n], ``outcomes`` [outcomes, n]. Intervals are percentile intervals
    over resamples of models, or of whole families where these are given: models of a family
    succeed and fail together. Resamples of fewer than k models are left out.
    """
    scores, outcomes = (np.atleast_2d(np.asarray(one, np.float64)) for one in (scores, outcomes))
    if np.isnan(scores).any() or np.isnan(outcomes).any():
        raise ValueError("NaN has no place: drop it first")
    n = scores.shape[1]
    times = times_drawn(n, resampling)
    times = times[times.sum(axis=1) >= k]
    draws = np.full((max(1, len(times)), len(scores), len(outcomes)), np.nan)
    step = max(1, CHUNK // n)
    for start in range(0, len(times), step):
        some = slice(start, start + step)
        draws[some] = _loss(scores, outcomes, times[some], k)
    ends = percentile_interval(draws, resampling.level)
    once = np.ones((1, n), np.intp)
    chance = _loss(np.zeros((1, n)), outcomes, once, k)[0, 0]
    found = _loss(scores, outcomes, once, k)[0]
    return Regret(k, n, found, np.asarray(ends.low), np.asarray(ends.high), chance, draws)


def close_pairs(
    control: ArrayLike,
    scores: ArrayLike,
    outcome: ArrayLike,
    margin: ArrayLike,
    resampling: Resampling = DEFAULT,
) -> ClosePairs:
    """How often a score picks the better of two models whose ``control`` differs by ``margin``.

    ``scores`` are [predictors, n]. ``margin`` is one number, or one per model, of which a pair
    takes the root of the sum of squares (its standard error). Pairs that tie in the outcome have no
    better one and do not count. Intervals are of resamples of models or families, in which a pair
    counts as often as its two models were drawn together.
    """
    control, outcome = (np.asarray(one, np.float64) for one in (control, outcome))
    scores = np.atleast_2d(np.asarray(scores, np.float64))
    reach = np.asarray(margin, np.float64)
    limit = reach if reach.ndim == 0 else np.hypot(reach[:, None], reach)
    better = np.sign(outcome[:, None] - outcome)
    near = (np.abs(control[:, None] - control) <= limit) & (better != 0)
    if not near.any():
        none = np.full(len(scores), np.nan)
        return ClosePairs(0, none, none, none)
    drawn = times_drawn(len(control), resampling).astype(np.float64)
    right, draws = np.empty(len(scores)), np.empty((len(drawn), len(scores)))
    pairs = ((drawn @ near) * drawn).sum(axis=1)
    with np.errstate(invalid="ignore"):
        for at, score in enumerate(scores):
            agree = (np.sign(score[:, None] - score) * better + 1) / 2 * near
            right[at] = agree.sum() / near.sum()
            draws[:, at] = ((drawn @ agree) * drawn).sum(axis=1) / pairs
    draws = draws[~np.isnan(draws).any(axis=1)]  # a resample without such a pair says nothing
    ends = percentile_interval(
        draws if len(draws) else np.full((1, len(scores)), np.nan), resampling.level
    )
    low, high = np.asarray(ends.low), np.asarray(ends.high)
    return ClosePairs(int(near.sum()) // 2, right, low, high)


def times_drawn(n: int, how: Resampling) -> NDArray[np.intp]:
    """How often each model is in each resample, [resamples, n].

    Models, or families with all theirs, are drawn with replacement.
    """
    rng = np.random.default_rng([how.seed, RESAMPLE])
    if how.families is None:
        rows = rng.integers(n, size=(how.resamples, n))
        return np.stack([np.bincount(row, minlength=n) for row in rows])
    names, member = np.unique(np.asarray(how.families), return_inverse=True)
    rows = rng.integers(len(names), size=(how.resamples, len(names)))
    return np.stack([np.bincount(row, minlength=len(names)) for row in rows])[:, member]


def _loss(scores: Array, outcomes: Array, times: NDArray[np.intp], k: int) -> Array:
    """Regret [resamples, predictors, outcomes] where each model is there some times."""
    reached = _reach(times, k)
    best = np.stack([_picked(one, one[None], times, reached)[:, 0] for one in outcomes], axis=1)
    picked = [_picked(score, outcomes, times, reached) for score in scores]
    return best[:, None] - np.stack(picked, axis=1)


def _reach(times: NDArray[np.intp], k: int) -> Array:
    """The probability that the first of k is among the first so many, [resamples, 0 to n]."""
    sizes, of = np.unique(times.sum(axis=1), return_inverse=True)
    found = np.ones((len(sizes), sizes[-1] + 1))
    for row, size in zip(found, sizes.tolist(), strict=True):
        row[: size + 1] = np.concatenate([[0], np.cumsum(first_of_subset(size, k))])
    return found[of]


def _picked(score: Array, outcomes: Array, times: NDArray[np.intp], reached: Array) -> Array:
    """The mean outcome of the first by ``score``, [resamples, outcomes].

    A model that was drawn twice ties with itself, and models that tie share their places.
    """
    order = np.argsort(-score, kind="stable")
    ordered, count = score[order], times[:, order]
    last = np.append(ordered[1:] != ordered[:-1], True)  # of those that tie
    ends = np.cumsum(count, axis=1)[:, last]
    chance = np.diff(np.take_along_axis(reached, ends, axis=1), axis=1, prepend=0.0)
    if not last.all():
        among = np.maximum(np.diff(ends, axis=1, prepend=0), 1)
        chance = np.repeat(chance / among, np.diff(np.flatnonzero(last), prepend=-1), axis=1)
        chance *= count
    return chance @ outcomes[:, order].T
