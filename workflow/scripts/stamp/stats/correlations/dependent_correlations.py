"""Two correlations with one variable in common, from the same models: do they differ, how much?

Say x and z are two scores and y is what happened: r1 = r(x, y), r2 = r(z, y), r12 = r(x, z). The
two are dependent, so neither a test for independent samples nor two separate p-values compare them.
That a test finds no difference does not make two scores equivalent: ``tost`` asks for that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.optimize import brentq
from scipy.special import ndtr, ndtri, stdtr

NAN = float("nan")
FEWEST = 4  # every formula here divides by n - 3
ALPHA = 0.05  # of each one-sided test of equivalence
FARTHEST = 40.0  # standard errors beyond which a p is zero in double precision


@dataclass(frozen=True, slots=True)
class Dependence:
    """A test of r1 = r2: its statistic (t with ``df`` degrees of freedom, or z) and two-sided p."""

    test: str
    difference: float
    statistic: float
    df: int | None
    p: float


@dataclass(frozen=True, slots=True)
class DifferenceInterval:
    """r1 - r2 with its limits."""

    difference: float
    low: float
    high: float
    level: float


@dataclass(frozen=True, slots=True)
class Equivalence:
    """Whether |r1 - r2| < margin: the larger of two one-sided p, and the interval that decides."""

    difference: float
    margin: float
    low: float
    high: float
    p: float
    equivalent: bool


def possible(r1: float, r2: float, r12: float) -> bool:
    """Whether any data have these three correlations: their matrix has no negative eigenvalue."""
    inside = max(abs(r1), abs(r2), abs(r12)) <= 1
    return inside and _determinant(r1, r2, r12) >= -1e-12


def shared_range(r1: float, r2: float) -> tuple[float, float]:
    """The least and largest r(x, z) that any data with r(x, y) = r1 and r(z, y) = r2 can have.

    r1 r2 -+ sqrt((1 - r1^2)(1 - r2^2)): where the matrix of the three stops being positive
    semidefinite. It holds for Spearman's rho too, which is Pearson's correlation of ranks.
    """
    reach = math.sqrt((1 - r1**2) * (1 - r2**2))
    return r1 * r2 - reach, r1 * r2 + reach


def williams(r1: float, r2: float, r12: float, n: int) -> Dependence:
    """Williams' T2 (1959), a t test of r1 = r2 with n - 3 degrees of freedom.

    T2 = (r1 - r2) sqrt((n - 1)(1 + r12) / (2 |R| (n - 1) / (n - 3) + rm^2 (1 - r12)^3)), with
    rm = (r1 + r2) / 2 and |R| the determinant of the matrix of the three correlations. Recommended
    by Steiger 1980, Psychological Bulletin 87:245-251, formula 7.
    """
    _check(r1, r2, r12, n)
    determinant = max(_determinant(r1, r2, r12), 0.0)
    middle = ((r1 + r2) / 2) ** 2 * (1 - r12) ** 3
    spread = 2 * determinant * (n - 1) / (n - 3) + middle
    if spread == 0:
        return Dependence("williams", r1 - r2, NAN, n - 3, NAN)
    t = (r1 - r2) * math.sqrt((n - 1) * (1 + r12) / spread)
    return Dependence("williams", r1 - r2, t, n - 3, float(2 * stdtr(n - 3, -abs(t))))


def steiger(r1: float, r2: float, r12: float, n: int) -> Dependence:
    """Steiger's Z1* (1980), a z test of r1 = r2 on Fisher's scale with pooled covariance.

    With rm = (r1 + r2) / 2, psi = r12 (1 - 2 rm^2) - rm^2 (1 - 2 rm^2 - r12^2) / 2 and
    c = psi / (1 - rm^2)^2: Z = (atanh r1 - atanh r2) sqrt((n - 3) / (2 - 2 c)).
    Steiger 1980, Psychological Bulletin 87:245-251, formula 14. NaN where r1 or r2 is -1 or 1.
    """
    _check(r1, r2, r12, n)
    if max(abs(r1), abs(r2)) == 1:
        return Dependence("steiger", r1 - r2, NAN, None, NAN)
    square = ((r1 + r2) / 2) ** 2
    psi = r12 * (1 - 2 * square) - square * (1 - 2 * square - r12**2) / 2
    spread = 2 - 2 * psi / (1 - square) ** 2
    if spread <= 0:
        return Dependence("steiger", r1 - r2, NAN, None, NAN)
    z = (math.atanh(r1) - math.atanh(r2)) * math.sqrt((n - 3) / spread)
    return Dependence("steiger", r1 - r2, z, None, float(2 * ndtr(-abs(z))))


def difference_interval(
    r1: float, r2: float, r12: float, n: int, level: float = 0.95, ranks: bool = False
) -> DifferenceInterval:
    """An interval of r1 - r2 from those of r1 and r2 and the correlation between them.

    Zou 2007, Psychological Methods 12:399-413: with the limits l and u of each correlation and c,
    the large-sample correlation of r1 and r2, low = d - sqrt((r1 - l1)^2 + (u2 - r2)^2 -
    2 c (r1 - l1)(u2 - r2)), and high alike. The limits are Fisher's, or with ``ranks`` Bonett and
    Wright's, which are made for Spearman's rho.
    """
    _check(r1, r2, r12, n)
    if not 0 < level < 1:
        raise ValueError(f"level {level}: must lie between 0 and 1")
    reach = -float(ndtri((1 - level) / 2))
    low, high = (_limit(r1, r2, r12, n, sign * reach, ranks) for sign in (-1, 1))
    return DifferenceInterval(difference=r1 - r2, low=low, high=high, level=level)


def tost(r1: float, r2: float, r12: float, n: int, margin: float) -> Equivalence:
    """Two one-sided tests of |r1 - r2| >= margin, by inverting ``difference_interval``.

    Equivalent where the interval of level 1 - 2 ``ALPHA`` lies inside (-margin, margin); p is the
    least alpha at which it would (Schuirmann 1987).
    """
    if margin <= 0:
        raise ValueError(f"margin {margin}: must be positive")
    interval = difference_interval(r1, r2, r12, n, 1 - 2 * ALPHA)

    def tail(border: float) -> float:
        """The p at which a limit of the one-sided interval touches a border."""

        def beyond(reach: float) -> float:
            return _limit(r1, r2, r12, n, reach, ranks=False) - border

        if beyond(-FARTHEST) > 0:
            return 0.0
        if beyond(FARTHEST) < 0:
            return 1.0
        return float(ndtr(brentq(beyond, -FARTHEST, FARTHEST, xtol=1e-12)))

    p = max(tail(-margin), 1 - tail(margin))
    return Equivalence(
        difference=r1 - r2,
        margin=margin,
        low=interval.low,
        high=interval.high,
        p=p,
        equivalent=p < ALPHA,
    )


def _determinant(r1: float, r2: float, r12: float) -> float:
    return 1 - r1**2 - r2**2 - r12**2 + 2 * r1 * r2 * r12


def _check(r1: float, r2: float, r12: float, n: int) -> None:
    if n < FEWEST:
        raise ValueError(f"{n} models are too few: at least {FEWEST} are needed")
    if not possible(r1, r2, r12):
        raise ValueError(f"no data have the correlations {r1}, {r2} and {r12} between them")


def _limit(r1: float, r2: float, r12: float, n: int, reach: float, ranks: bool) -> float:
    """Zou's limit of r1 - r2 at ``reach`` standard errors, the lower one where it is negative."""
    far = abs(_moved(r1, n, reach, ranks) - r1), abs(_moved(r2, n, -reach, ranks) - r2)
    square = far[0] ** 2 + far[1] ** 2 - 2 * _shared(r1, r2, r12) * far[0] * far[1]
    return r1 - r2 + math.copysign(math.sqrt(max(square, 0.0)), reach)


def _moved(r: float, n: int, reach: float, ranks: bool) -> float:
    """The limit of one correlation, ``reach`` standard errors away on Fisher's scale."""
    if abs(r) == 1:
        return r
    error = math.sqrt((1 + r**2 / 2 if ranks else 1) / (n - 3))
    return math.tanh(math.atanh(r) + reach * error)


def _shared(r1: float, r2: float, r12: float) -> float:
    """The large-sample correlation of two correlations with a common variable."""
    if max(abs(r1), abs(r2)) == 1:
        return 0.0
    rest = 1 - r1**2 - r2**2 - r12**2
    return ((r12 - r1 * r2 / 2) * rest + r12**3) / ((1 - r1**2) * (1 - r2**2))
