"""How many pairs an interval of a wanted width takes, before any model is run."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt
from statistics import NormalDist

# What is assumed where nothing was measured: the square of the coefficient of variation of the
# squared distances. 2 is that of a squared normal difference in one output; k outputs that vary
# alike and independently have 2 / k, outputs that are mostly equal and rarely far apart have more.
VARIATION = 2.0
SCORES = (0.3, 0.5, 0.8)


@dataclass(frozen=True, slots=True)
class Outlook:
    """What half-width a number of pairs gives: if they are independent, and at the worst."""

    best: float
    worst: float


def pairs_needed(
    half_width: float, stamp: float, level: float = 0.95, variation: float = VARIATION
) -> int:
    """How many semantic and as many random pairs give an interval of this half-width.

    By the delta method (``stamp.scoring.bootstrap.analytic_se``) with N independent pairs of each
    kind whose squared distances have the squared coefficient of variation v in both kinds,
    ``Var = 2 v (1 - STAMP)^2 / N``, so that ``N = 2 v (z (1 - STAMP) / h)^2``.
    """
    return ceil(2 * variation * (_z(level) * (1 - stamp) / half_width) ** 2)


def half_width(
    pairs: int, stamp: float, level: float = 0.95, variation: float = VARIATION
) -> float:
    """The half-width that a number of independent pairs of each kind gives."""
    return _z(level) * (1 - stamp) * sqrt(2 * variation / pairs) if pairs else float("inf")


def outlook(pairs: int, units: int, stamp: float, level: float = 0.95) -> Outlook:
    """The half-width of ``pairs`` pairs that come from ``units`` independent groups or images.

    At the best all pairs are independent; at the worst all pairs of a unit say the same, and there
    are only as many as units.
    """
    fewer = min(pairs, units)
    return Outlook(half_width(pairs, stamp, level), half_width(fewer, stamp, level))


def scaled(pairs: int, found: float, wanted: float) -> int:
    """How many pairs give the wanted half-width if ``pairs`` gave ``found``: widths go by 1/√N."""
    return ceil(pairs * (found / wanted) ** 2)


def _z(level: float) -> float:
    return NormalDist().inv_cdf(0.5 + level / 2)
