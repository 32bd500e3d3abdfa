"""Which values Spearman's rho of n models can have."""

from __future__ import annotations

from itertools import permutations

import numpy as np

from stamp.stats.ranks import Array, rank_correlation

MOST_ENUMERATED = 8


def spearman_values(n: int) -> Array:
    """Every rho of two untied orders of n models, ascending.

    rho = 1 - 6 S / (n^3 - n), where S, the sum of squared rank differences, is any even number
    from 0 to (n^3 - n) / 3 (for n = 3 not 4).
    """
    if n < 2:
        raise ValueError(f"{n} models have no rank correlation")
    cube = n**3 - n
    sums = np.arange(cube // 3, -1, -2, dtype=np.float64)
    if n == 3:
        sums = sums[sums != 4]
    return 1 - 6 * sums / cube


def nearest_spearman(n: int, rho: float) -> list[float]:
    """The value of rho that n untied models can have, or the two that enclose what is asked for."""
    known = spearman_values(n)
    place = int(np.searchsorted(known, rho - 1e-12))
    if place < known.size and abs(known[place] - rho) < 1e-12:
        return [float(known[place])]
    return [float(known[i]) for i in (place - 1, place) if 0 <= i < known.size]


def tied_spearman(n: int) -> Array:
    """Every rho of n models where one side has exactly one tied pair, by enumeration."""
    if not 3 <= n <= MOST_ENUMERATED:
        raise ValueError(f"{n} models: from 3 to {MOST_ENUMERATED} are enumerated")
    plain: Array = 2 * np.arange(n, dtype=np.float64) - (n - 1)
    orders = plain[np.array(list(permutations(range(n))))]
    found = []
    for first in range(n - 1):
        tied: Array = plain.copy()
        tied[first : first + 2] = tied[first : first + 2].mean()
        found.append(rank_correlation(orders, tied))
    return np.unique(np.round(np.concatenate(found), 12))
