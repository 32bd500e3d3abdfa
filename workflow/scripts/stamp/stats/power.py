"""How often a study of n models finds a rank correlation that is there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from stamp.stats.correlations.correlation import asymptotic_p
from stamp.stats.ranks import Array, centred_ranks, rank_correlation

TESTS = ("t", "permutation")
COPULA, NULL = 4, 5  # tags that keep the random streams of one seed apart
NULL_DRAWS = 100_000
SLACK = 1e-12  # correlations of the same ranks may differ by rounding


@dataclass(frozen=True, slots=True)
class Power:
    """Share of draws in which the test rejects, with its standard error, one entry per true rho."""

    n: int
    rho: Array
    power: Array
    standard_error: Array
    alpha: float
    draws: int
    test: str


def pearson_of(rho: ArrayLike) -> Array:
    """The Pearson correlation of two Gaussian variables whose Spearman correlation is ``rho``.

    r = 2 sin(pi rho / 6) (Pearson 1907).
    """
    return 2 * np.sin(np.pi * np.asarray(rho, dtype=np.float64) / 6)


def spearman_power(
    n: int,
    rho: ArrayLike,
    draws: int = 10_000,
    alpha: float = 0.05,
    seed: int = 0,
    test: str = "t",
) -> Power:
    """Power of the two-sided test of no rank correlation where the true Spearman rho is ``rho``.

    Samples of n pairs from a Gaussian copula, all values of rho from the same draws. The test
    rejects by the p of :func:`asymptotic_p` (``t``), or where |rho| reaches the critical value of
    the permutation distribution (``permutation``), of level at most alpha. At rho = 0 this is the
    size of the test, not its power.
    """
    if test not in TESTS:
        raise ValueError(f"unknown test '{test}': one of {', '.join(TESTS)}")
    if n < 4:
        raise ValueError(f"{n} models are too few: at least 4 are needed")
    rho = np.asarray(rho, dtype=np.float64)
    rng = np.random.default_rng([seed, COPULA, n])
    first, second = rng.standard_normal((2, draws, n))
    ranks = centred_ranks(first)
    limit = critical_value(n, alpha, seed) if test == "permutation" else None

    def rejected(r: float) -> float:
        found = rank_correlation(ranks, centred_ranks(r * first + np.sqrt(1 - r**2) * second))
        if limit is None:
            return float((asymptotic_p(found, n) <= alpha).mean())
        return float((np.abs(found) >= limit - SLACK).mean())

    power = np.array([rejected(r) for r in pearson_of(rho).ravel()]).reshape(rho.shape)
    spread = np.sqrt(power * (1 - power) / draws)
    return Power(n, rho, power, spread, alpha, draws, test)


@cache
def critical_value(n: int, alpha: float = 0.05, seed: int = 0, draws: int = NULL_DRAWS) -> float:
    """The least |rho| of n untied ranks that two-sided permutation tests of level alpha reject.

    The smallest c with (1 + #{|rho_b| >= c}) / (B + 1) <= alpha over B random orders; infinite
    where no value is that rare.
    """
    ranks = np.arange(n, dtype=np.float64) * 2 - (n - 1)
    rng = np.random.default_rng([seed, NULL, n])
    shuffled = rng.permuted(np.broadcast_to(ranks, (draws, n)), axis=1)
    found = np.sort(np.abs(rank_correlation(shuffled, ranks)))[::-1]
    allowed = int(np.floor(alpha * (draws + 1))) - 1
    if allowed < 1:
        return float("inf")
    # a value that is tied with the first one too many would be rejected too often
    rare = found[:allowed][found[:allowed] > found[allowed] + SLACK]
    return float(rare.min()) if rare.size else float("inf")
