"""How sure a ranking of models is, from bootstrap draws of their scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from stamp.stats.correlations.correlation import NAN, percentile_interval, quantiles
from stamp.stats.ranks import Array, mid_ranks


@dataclass(frozen=True, slots=True)
class RankIntervals:
    """Per model the median rank and its interval (1 is the highest score); resamples used."""

    median: Array
    low: Array
    high: Array
    resamples: int


def rank_intervals(draws: ArrayLike, level: float = 0.95) -> RankIntervals:
    """Percentile intervals of each model's rank over score draws [models, resamples].

    Rank 1 is the highest score; ties share the mean of their ranks. A model without any score
    (all NaN) has NaN and takes no place; a resample in which another model has none is left out,
    since ranks among fewer models would not compare.
    """
    draws = np.asarray(draws, dtype=np.float64)
    missing = np.isnan(draws)
    scored = ~missing.all(axis=1)
    complete = ~missing[scored].any(axis=0)
    median, low, high = np.full((3, len(draws)), NAN)
    if scored.any() and complete.any():
        ranks = mid_ranks(-draws[scored][:, complete].T)
        interval = percentile_interval(ranks, level)
        median[scored] = quantiles(ranks, (0.5,))[0]
        low[scored], high[scored] = interval.low, interval.high
    used = int(complete.sum()) if scored.any() else 0
    return RankIntervals(median=median, low=low, high=high, resamples=used)


def outranks(draws: ArrayLike) -> Array:
    """[models, models] share of resamples in which model i scores above model j; a tie is half.

    From score draws [models, resamples]. Pairs use the resamples in which both have a score, and
    are NaN where there are none, so a model without scores has NaN in its row and column.
    """
    draws = np.asarray(draws, dtype=np.float64)
    known = ~np.isnan(draws)
    shared = known.astype(np.float32) @ known.T.astype(np.float32)  # whole numbers below 2**24
    above = np.zeros(shared.shape)
    for row, mine in enumerate(draws):
        others = draws[row:]
        higher = np.count_nonzero(mine > others, axis=1)
        above[row, row:] = higher + 0.5 * np.count_nonzero(mine == others, axis=1)
        above[row:, row] = shared[row:, row] - above[row, row:]
    with np.errstate(invalid="ignore"):
        return above / shared
