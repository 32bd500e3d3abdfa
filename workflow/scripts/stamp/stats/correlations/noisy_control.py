"""A partial rank correlation whose control was measured with an error of known size.

Say x is a score, y an outcome and w the measured source metric of the same models. w = t + e: the
true metric t and an error e of known variance. Given w instead of t, part of what x and y share
through t is not controlled for, so the plain partial correlation is too high under no effect.

Models measured on the same images share a part of their error, which moves no rank. So the error is
given by its covariance between models: taken as independent, the correction is too strong.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from stamp.stats.correlations.correlation import NAN, quantiles
from stamp.stats.correlations.partial_correlation import partial_spearman
from stamp.stats.power import pearson_of
from stamp.stats.ranks import Array, centred_ranks, rank_correlation

REMEASURE, SIMULATE = 6, 7  # tags that keep the random streams of one seed apart
LEAST_RELIABLE = 0.5  # below, most of the control's spread is error and nothing is corrected
GRID = np.linspace(-1, 1, 17)  # true partial correlations at which data are simulated
NO_EFFECT = GRID.size // 2
TOLERANCE = 1e-10  # equal statistics may differ by rounding
MOST_KEPT = 256
_RELIABILITIES: dict[bytes, float] = {}  # by a digest of what they are made from


@dataclass(frozen=True, slots=True)
class SimulationSettings:
    """How many data sets are simulated; the interval's level, or that p is wanted alone."""

    resamples: int = 999
    seed: int = 0
    level: float = 0.95
    interval: bool = True


DEFAULT_SETTINGS = SimulationSettings()


@dataclass(frozen=True, slots=True)
class NoisyControlPartial:
    """A partial Spearman correlation, plain and corrected for the error of its control.

    ``rho`` is the plain value, ``corrected`` the estimate given the true control, with its
    interval and the two-sided p of no effect. ``reliability`` is the share of the variance of the
    control's ranks that is not error, ``error`` the typical standard error of a model's control
    (:func:`error_of_differences`). ``reason`` says why values are NaN.
    """

    n: int
    rho: float = NAN
    corrected: float = NAN
    low: float = NAN
    high: float = NAN
    p: float = NAN
    reliability: float = NAN
    error: float = NAN
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RankCorrelations:
    """Spearman's rho of each two of score, outcome and control, and the control's reliability.

    Each is a number, or an array with one entry per simulated data set.
    """

    score_outcome: Array
    score_control: Array
    outcome_control: Array
    reliability: Array

    @classmethod
    def of(cls, score: Array, outcome: Array, control: Array, reliability: Array) -> Self:
        """Those of centred ranks along the last axis."""
        links = rank_correlation(score, control), rank_correlation(outcome, control)
        return cls(rank_correlation(score, outcome), links[0], links[1], reliability)

    @property
    def numerator(self) -> Array:
        """r_xy - r_xw r_yw / l with the reliability l: zero where the score adds nothing to t."""
        return self.score_outcome - self.score_control * self.outcome_control / self.reliability

    @property
    def left(self) -> Array:
        """Shares of the variance of score and outcome that t leaves over, 1 - r^2 / l."""
        explained = np.stack([self.score_control, self.outcome_control]) ** 2
        return 1 - explained / self.reliability

    @property
    def corrected(self) -> Array:
        """The partial correlation from the matrix freed of the control's error.

        (r_xy - r_xw r_yw / l) / sqrt((1 - r_xw^2 / l)(1 - r_yw^2 / l)): Kendall's formula with the
        correlations of t in place of those of w (Fuller 1987, Measurement Error Models).
        """
        return self.numerator / np.sqrt(self.left.prod(axis=0))

    @property
    def statistic(self) -> Array:
        """What is tested: the numerator over the plain denominator, which no error makes small."""
        plain = (1 - self.score_control**2) * (1 - self.outcome_control**2)
        return self.numerator / np.sqrt(plain)


def partial_given_noisy_control(
    scores: ArrayLike,
    outcomes: ArrayLike,
    control: ArrayLike,
    error: ArrayLike,
    settings: SimulationSettings = DEFAULT_SETTINGS,
) -> NoisyControlPartial:
    """The partial Spearman correlation of scores and outcomes given what the control measures.

    ``error`` is the covariance [n, n] of the errors of the models' controls, or their standard
    errors [n] where errors are independent. They are taken as independent of scores and outcomes.

    p and interval refer the observed statistic to data simulated from a Gaussian copula with the
    observed links to the control, its error, and a true partial correlation: none for p, and for
    the interval all those that a two-sided test at its level does not reject. Models with a NaN
    anywhere are dropped.
    """
    rows = np.stack([np.asarray(row, np.float64) for row in (scores, outcomes, control)])
    error = np.asarray(error, np.float64)
    if error.ndim == 1 and (error < 0).any():
        raise ValueError("a standard error is negative")
    shared = np.diag(error**2) if error.ndim == 1 else error
    keep = np.flatnonzero(~np.isnan([*rows, np.diag(shared)]).any(axis=0))
    keep = keep[np.lexsort(rows[:, keep])]  # the order of the models must not matter
    (x, y, w), shared = rows[:, keep], shared[np.ix_(keep, keep)]
    if not np.isfinite(shared).all():
        raise ValueError("a standard error or a covariance is not finite")
    plain = partial_spearman(x, y, w, permutations=1)  # for its rho and reason, not its p
    typical = error_of_differences(shared)
    if plain.reason:
        return NoisyControlPartial(n=plain.n, error=typical, reason=plain.reason)
    reliability = rank_reliability(w, shared, settings.resamples, settings.seed)
    score, outcome, measured = centred_ranks([x, y, w])
    observed = RankCorrelations.of(score, outcome, measured, np.asarray(reliability))
    found = NoisyControlPartial(plain.n, plain.rho, reliability=reliability, error=typical)
    if reason := _undefined(observed):
        return replace(found, reason=reason)
    grid = GRID if settings.interval else GRID[NO_EFFECT : NO_EFFECT + 1]
    simulated = _simulated(observed, plain.n, grid, settings)
    statistic = float(observed.statistic)
    p = _two_sided_p(statistic, simulated[len(grid) // 2])
    low, high = _limits(statistic, simulated, settings.level) if settings.interval else (NAN, NAN)
    return replace(found, corrected=float(observed.corrected), low=low, high=high, p=p)


def error_of_differences(covariance: Array) -> float:
    """The typical standard error of a model's value, without what all models share.

    The root of the mean variance of the differences of two models' errors, halved: what
    independent errors of that size would give. NaN for a single model.
    """
    n = len(covariance)
    if n < 2:
        return NAN
    return float(np.sqrt(max(np.trace(covariance) - covariance.sum() / n, 0) / (n - 1)))


def rank_reliability(
    values: ArrayLike, error: ArrayLike, resamples: int = 999, seed: int = 0
) -> float:
    """Share of the variance of the ranks of measured values that is not measurement error.

    ``error`` is as in :func:`partial_given_noisy_control`.
    2 - 1 / c^2, with c the mean correlation of the values and the same values plus one more error:
    that adds the error's variance s to the variance V, so c^2 = V / (V + s), and the share is
    1 - s / V. c is taken on ranks, as Pearson's (``pearson_of``), so that it holds in a zoo where
    a few weak models have most of the variance and the others differ by little more than noise.
    """
    values, error = np.asarray(values, np.float64), np.asarray(error, np.float64)
    if not error.any():
        return 1.0
    same = blake2b(repr((values.shape, error.shape, resamples, seed)).encode())
    same.update(values.tobytes())
    same.update(error.tobytes())
    if same.digest() not in _RELIABILITIES:
        if len(_RELIABILITIES) == MOST_KEPT:
            _RELIABILITIES.clear()
        _RELIABILITIES[same.digest()] = _reliability(values, error, resamples, seed)
    return _RELIABILITIES[same.digest()]


def _reliability(values: Array, error: Array, resamples: int, seed: int) -> float:
    """The share by simulation; of a thousand models half a second, so that it is kept."""
    root = np.diag(error) if error.ndim == 1 else _symmetric_root(error)
    rng = np.random.default_rng([seed, REMEASURE])
    again = values + rng.standard_normal((resamples, values.size)) @ root
    c = pearson_of(rank_correlation(centred_ranks(values), centred_ranks(again)).mean())
    return float(2 - 1 / c**2) if c > 0 else -np.inf


def _symmetric_root(covariance: Array) -> Array:
    """The matrix whose square is a covariance; standard normals times it have that covariance."""
    sizes, directions = np.linalg.eigh(covariance)
    return directions * np.sqrt(np.maximum(sizes, 0)) @ directions.T


def _undefined(found: RankCorrelations) -> str:
    """Why nothing can be corrected, or nothing."""
    if found.reliability < LEAST_RELIABLE:
        share = max(float(found.reliability), 0)
        return f"the control's ranks have reliability {share:.2f}: below {LEAST_RELIABLE}"
    for left, name in zip(found.left, ("score", "outcome"), strict=True):
        if left <= TOLERANCE:
            return f"the {name} follows the control as closely as the control's error allows"
    if abs(found.corrected) > 1 + TOLERANCE:
        return f"the corrected value {float(found.corrected):.2f} lies outside -1 to 1"
    return ""


def _simulated(found: RankCorrelations, n: int, grid: Array, settings: SimulationSettings) -> Array:
    """The statistic [grid, resamples] in data with each true partial correlation of the grid."""
    true = found.reliability
    links = pearson_of([found.score_control, found.outcome_control]) / np.sqrt(true)
    score_link, outcome_link = np.clip(links, -1, 1)
    draws = settings.seed, settings.resamples, n
    t, score_rest = _normals(*draws)[:2]
    score = centred_ranks(score_link * t + np.sqrt(1 - score_link**2) * score_rest)
    control, reliability = _controls(float(true), *draws)
    outcomes = _outcomes(float(outcome_link), grid.tobytes(), *draws)
    with np.errstate(invalid="ignore", divide="ignore"):
        statistics = RankCorrelations.of(score, outcomes, control, reliability).statistic
    return np.where(np.isfinite(statistics), statistics, NAN)


# What the scores of one study share is simulated once: few and many data sets take turns.
@lru_cache(maxsize=2)
def _controls(true: float, seed: int, resamples: int, n: int) -> tuple[Array, Array]:
    """Centred ranks [resamples, n] of measured controls, and the reliability of each."""
    t, _, _, error = _normals(seed, resamples, n)
    control = np.sqrt(true) * t + np.sqrt(1 - true) * error
    reliability = np.maximum(1 - (1 - true) / control.var(axis=1, ddof=1), LEAST_RELIABLE)
    return _kept(centred_ranks(control)), _kept(reliability)


@lru_cache(maxsize=2)
def _outcomes(link: float, grid: bytes, seed: int, resamples: int, n: int) -> Array:
    """Centred ranks [grid, resamples, n] of outcomes with each true partial correlation."""
    t, score_rest, outcome_rest, _ = _normals(seed, resamples, n)
    partials = np.frombuffer(grid)
    found = np.empty((partials.size, resamples, n))
    for place, partial in enumerate(partials):
        rest = partial * score_rest + np.sqrt(1 - partial**2) * outcome_rest
        found[place] = centred_ranks(link * t + np.sqrt(1 - link**2) * rest)
    return _kept(found)


@lru_cache(maxsize=2)
def _normals(seed: int, resamples: int, n: int) -> Array:
    """The normal draws [4, resamples, n] of a simulation, which scores of one study share."""
    return _kept(np.random.default_rng([seed, SIMULATE]).standard_normal((4, resamples, n)))


def _kept(found: Array) -> Array:
    """The same, which nobody can change."""
    found.flags.writeable = False
    return found


def _two_sided_p(observed: float, drawn: Array) -> float:
    """Twice the smaller tail, (1 + #) / (B + 1), since the statistic is skewed; at most 1."""
    above, below = (drawn >= observed - TOLERANCE).sum(), (drawn <= observed + TOLERANCE).sum()
    return min(1.0, float(2 * (1 + min(above, below)) / ((~np.isnan(drawn)).sum() + 1)))


def _limits(observed: float, simulated: Array, level: float) -> tuple[float, float]:
    """The least and largest true partial correlation that p <= 1 - level does not reject."""
    draws = simulated.shape[1]
    # the order statistic at which (1 + #) / (B + 1) reaches half of 1 - level
    tail = max((1 - level) / 2 * (draws + 1) - 1, 0) / max(draws - 1, 1)
    # a higher correlation shifts the statistic upwards: what still falls is simulation noise
    small, large = np.maximum.accumulate(quantiles(simulated.T, (tail, 1 - tail)), axis=1)
    return float(np.interp(observed, large, GRID)), float(np.interp(observed, small, GRID))
