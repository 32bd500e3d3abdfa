"""How far two groups are apart: Cliff's delta with a bootstrap interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from stamp.correlation import percentile_interval

EFFECT = 23  # tag that keeps the random streams of one seed apart


@dataclass(frozen=True, slots=True)
class Effect:
    """Cliff's delta with its interval, and the sizes of the two groups."""

    delta: float
    low: float
    high: float
    n: int
    m: int


def cliffs_delta(
    x: ArrayLike, y: ArrayLike, resamples: int = 10_000, level: float = 0.95, seed: int = 0
) -> Effect:
    """(#{x > y} - #{x < y}) / (n m) with a percentile bootstrap interval (Cliff 1993).

    Both groups are resampled by themselves, with replacement. Where the groups do not overlap no
    resample overlaps either: the interval is then the point -1 or 1, however few models there are.
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    n, m = x.size, y.size
    signs = np.sign(x[:, None] - y[None, :])
    rng = np.random.default_rng([seed, EFFECT])
    of_x = rng.multinomial(n, np.full(n, 1 / n), size=resamples) / n
    of_y = rng.multinomial(m, np.full(m, 1 / m), size=resamples) / m
    draws = ((of_x @ signs) * of_y).sum(axis=1)
    interval = percentile_interval(draws, level)
    return Effect(float(signs.mean()), float(interval.low), float(interval.high), n, m)
