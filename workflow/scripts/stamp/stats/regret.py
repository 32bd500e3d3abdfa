"""What choosing a model by a predictor costs: expected regret, and choices of close models.

A user has k models and takes the one that the predictor puts first. Regret is how much better the
best of the k is on the target. Over all subsets of k of n models its mean has a closed form: in the
order of the predictor, the model at place r (from 0) is the first of a random subset with
probability ``C(n - 1 - r, k - 1) / C(n, k)``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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


def expected_pick(score: ArrayLike, outcome: ArrayLike, k: int) -> Array:
    """The mean outcome of the first by ``score`` in a random subset of k, along the last axis.

    Models that tie share their places: one of them is picked at random.
    """
    score, outcome = np.broadcast_arrays(
        np.asarray(score, np.float64), np.asarray(outcome, np.float64)
    )
    n = score.shape[-1]
    order = np.argsort(-score, axis=-1, kind="stable")
    ordered = np.take_along_axis(score, order, axis=-1)
    reached = np.take_along_axis(outcome, order, axis=-1)
    rises = np.concatenate(
        [np.ones((*score.shape[:-1], 1), bool), ordered[..., 1:] != ordered[..., :-1]], axis=-1
    )
    group = (
        np.cumsum(rises, axis=-1)
        - 1
        + n * np.arange(score[..., 0].size).reshape((*score.shape[:-1], 1))
    )
    flat, size = group.ravel(), n * max(1, score[..., 0].size)
    weights = np.broadcast_to(first_of_subset(n, k), score.shape).ravel()
    counts = np.bincount(flat, minlength=size)
    means = np.bincount(flat, reached.ravel(), size) / np.maximum(counts, 1)
    shares = np.bincount(flat, weights, size)
    return (means * shares).reshape((*score.shape[:-1], n)).sum(axis=-1)


def expected_regret(score: ArrayLike, outcome: ArrayLike, k: int) -> Array:
    """How much better the best of a random subset of k is than the first of it by ``score``."""
    return expected_pick(outcome, outcome, k) - expected_pick(score, outcome, k)


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
    drawn = [
        _loss(scores[:, some], outcomes[:, some], k)
        for rows in _resampled(n, resampling)
        for some in _parts(rows, len(scores))
        if rows.shape[1] >= k
    ]
    nothing = np.full((len(scores), len(outcomes), 1), np.nan)
    draws = np.moveaxis(np.concatenate(drawn or [nothing], axis=2), 2, 0)
    ends = percentile_interval(draws, resampling.level)
    chance = _loss(np.zeros((1, n)), outcomes, k)[0]
    found = _loss(scores, outcomes, k)
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
    first, second = np.triu_indices(len(control), 1)
    reach = np.asarray(margin, np.float64)
    limit = reach if reach.ndim == 0 else np.hypot(reach[first], reach[second])
    near = np.abs(control[first] - control[second]) <= limit
    better = np.sign(outcome[first] - outcome[second])
    near &= better != 0
    if not near.any():
        none = np.full(len(scores), np.nan)
        return ClosePairs(0, none, none, none)
    first, second = first[near], second[near]
    agree = (np.sign(scores[:, first] - scores[:, second]) * better[near] + 1) / 2
    drawn = [
        np.bincount(one, minlength=len(control))
        for rows in _resampled(len(control), resampling)
        for one in rows
    ]
    times = np.array([one[first] * one[second] for one in drawn], np.float64)
    with np.errstate(invalid="ignore"):
        draws = times @ agree.T / times.sum(axis=1, keepdims=True)
    draws = draws[~np.isnan(draws).any(axis=1)]  # a resample without such a pair says nothing
    ends = percentile_interval(
        draws if len(draws) else np.full((1, len(scores)), np.nan), resampling.level
    )
    low, high = np.asarray(ends.low), np.asarray(ends.high)
    return ClosePairs(int(near.sum()), agree.mean(axis=1), low, high)


def _loss(scores: Array, outcomes: Array, k: int) -> Array:
    """Regret [predictors, outcomes, ...] of models along the last axis."""
    best = expected_pick(outcomes, outcomes, k)
    return best - expected_pick(scores[:, None], outcomes[None], k)


def _parts(rows: NDArray[np.intp], predictors: int) -> Iterator[NDArray[np.intp]]:
    """Some resamples at a time, as many as the processor's cache takes."""
    step = max(1, CHUNK // max(1, predictors * rows.shape[1]))
    return (rows[start : start + step] for start in range(0, len(rows), step))


def _resampled(n: int, how: Resampling) -> list[NDArray[np.intp]]:
    """Rows of the resamples, [resamples, size] for each size: models, or families with all theirs.

    Both are drawn with replacement.
    """
    rng = np.random.default_rng([how.seed, RESAMPLE])
    if how.families is None:
        return [rng.integers(n, size=(how.resamples, n))]
    names, member = np.unique(np.asarray(how.families), return_inverse=True)
    members = [np.flatnonzero(member == at) for at in range(len(names))]
    drawn = rng.integers(len(names), size=(how.resamples, len(names)))
    of_size: dict[int, list[NDArray[np.intp]]] = {}
    for row in drawn:
        one = np.concatenate([members[at] for at in row])
        of_size.setdefault(len(one), []).append(one)
    return [np.stack(rows) for rows in of_size.values()]
