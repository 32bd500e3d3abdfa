"""Lines that many models share, on the probit scale: agreement and accuracy on the line."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

Array = NDArray[np.float64]

LOWEST, HIGHEST = 0.05, 0.98
FEWEST = 3
GATE = 0.95


@dataclass(frozen=True, slots=True)
class Aline:
    """Estimated target accuracies [M] by both variants, and the line through the agreements.

    ``reason`` says why estimates are NaN, or warns where the line is a poor one.
    """

    estimate_s: Array
    estimate_d: Array
    slope: float
    intercept: float
    r2: float
    pairs: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """The line of target on source, both on the probit scale.

    ``residuals`` [M] are on the probit scale; ``loo`` [M] is each model's target value as the line
    through all other models predicts it, on the original scale, and ``loo_residuals`` [M] how far
    the model is from that prediction on the probit scale.
    """

    r: float
    slope: float
    intercept: float
    residuals: Array
    loo: Array
    loo_residuals: Array
    reason: str = ""


def probit(share: ArrayLike, n: int) -> Array:
    """Normal quantiles of shares of n, clipped to ``[.5 / n, 1 - .5 / n]``."""
    return ndtri(np.clip(np.asarray(share, dtype=np.float64), 0.5 / n, 1 - 0.5 / n))


def aline(
    accuracy_source: ArrayLike, agree_source: ArrayLike, agree_target: ArrayLike, n: int
) -> Aline:
    """Target accuracies from agreement on the line; n is the number of source images.

    Over pairs i < j of models, agreeing on a_ij of the source and on b_ij of the target, both in
    [.05, .98], least squares give ``probit(b) = alpha probit(a) + beta``.
    ALine-S: ``Phi(alpha probit(acc_i) + beta)``: where alpha > 0, the ranking of source accuracy.
    ALine-D: ``Phi(w_i)``, with w the least-squares solution over the same pairs of ``(w_i + w_j) /
    2 = probit(b_ij) + alpha ((probit(acc_i) + probit(acc_j)) / 2 - probit(a_ij))``; NaN for models
    whose w the pairs leave open.
    Baek et al., Agreement-on-the-line, NeurIPS 2022.
    """
    x = probit(accuracy_source, n)
    first, second, a, b = _usable_pairs(agree_source, agree_target)
    if len(a) < FEWEST or np.ptp(a) == 0:
        few = f"{len(a)} pairs of models agree on 5 % to 98 % of both sides, {FEWEST} needed"
        return _no_aline(len(x), len(a), few if len(a) < FEWEST else "all pairs agree equally")
    slope, intercept, r = _fit(a, b)
    averages = b + slope * ((x[first] + x[second]) / 2 - a)
    w = _members(first, second, averages, len(x))
    r2 = r**2
    reason = "" if r2 >= GATE else f"agreement is not on a line: R2 {r2:.3f}, below {GATE}"
    return Aline(ndtr(slope * x + intercept), ndtr(w), slope, intercept, r2, len(a), reason)


def accuracy_on_the_line(
    source: ArrayLike, target: ArrayLike, n: int, n_target: int | None = None
) -> Line:
    """Least squares of probit(target) on probit(source), shares clipped to ``[.5/n, 1 - .5/n]``.

    ``n_target`` is the number of images of the target where that is another. Of AUROCs the probit
    is ``d' / sqrt 2`` under the binormal model, so the line serves them too.
    Miller et al., Accuracy on the line, ICML 2021.
    """
    return probit_line(probit(source, n), probit(target, n_target or n))


def probit_line(x: ArrayLike, y: ArrayLike) -> Line:
    """Least squares of y, on the probit scale, on any x.

    A leave-one-out prediction is ``Phi(y_i - e_i / (1 - h_i))`` with the residual e and leverage h
    of model i. Models without one of the values are left out (NaN).
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    both = np.isfinite(x) & np.isfinite(y)
    nothing = np.full(len(x), np.nan)
    if both.sum() < FEWEST or np.ptp(x[both]) == 0:
        few = f"{both.sum()} models have both values, {FEWEST} needed"
        reason = few if both.sum() < FEWEST else "all models have equal values to draw a line on"
        return Line(np.nan, np.nan, np.nan, nothing, nothing.copy(), nothing.copy(), reason)
    slope, intercept, r = _fit(x[both], y[both])
    residuals = y - (slope * x + intercept)
    centred = x - x[both].mean()
    free = 1 - 1 / both.sum() - centred**2 / (centred[both] ** 2).sum()
    # a model that alone gives the line its slope leaves none when it is left out
    free = np.where(free > 1e-9, free, np.nan)
    left_out = residuals / free
    return Line(r, slope, intercept, residuals, ndtr(y - left_out), left_out)


def _usable_pairs(
    agree_source: ArrayLike, agree_target: ArrayLike
) -> tuple[NDArray[np.int64], NDArray[np.int64], Array, Array]:
    """The pairs i < j within bounds on both sides, and their agreements on the probit scale."""
    here, there = (np.asarray(values, dtype=np.float64) for values in (agree_source, agree_target))
    first, second = np.triu_indices(len(here), k=1)
    a, b = here[first, second], there[first, second]
    keep = (a >= LOWEST) & (a <= HIGHEST) & (b >= LOWEST) & (b <= HIGHEST)
    return first[keep], second[keep], ndtri(a[keep]), ndtri(b[keep])


def _fit(x: Array, y: Array) -> tuple[float, float, float]:
    """Slope, intercept and correlation of the least-squares line; r is NaN where y is constant."""
    dx, dy = x - x.mean(), y - y.mean()
    slope = float(dx @ dy / (dx @ dx))
    if np.ptp(y) == 0:
        return 0.0, float(y[0]), float("nan")
    r = float(np.clip(dx @ dy / np.sqrt((dx @ dx) * (dy @ dy)), -1, 1))
    return slope, float(y.mean() - slope * x.mean()), r


def _members(
    first: NDArray[np.int64], second: NDArray[np.int64], averages: Array, models: int
) -> Array:
    """Least-squares w of ``(w_i + w_j) / 2 = average_ij``; NaN where the pairs do not fix it."""
    known = np.isfinite(averages)
    i, j, average = first[known], second[known], averages[known]
    # the normal matrix of the design with .5 at i and at j in the row of each pair
    normal = np.zeros((models, models))
    normal[i, j] = normal[j, i] = 0.25
    normal[np.diag_indices(models)] = normal.sum(axis=1)
    sums = (np.bincount(i, average, models) + np.bincount(j, average, models)) / 2
    inverse = np.linalg.pinv(normal, rcond=1e-10, hermitian=True)
    w = inverse @ sums
    fixed = np.einsum("ij,ji->i", inverse, normal)
    return np.where(fixed > 1 - 1e-6, w, np.nan)


def _no_aline(models: int, pairs: int, reason: str) -> Aline:
    nothing = np.full(models, np.nan)
    return Aline(nothing, nothing.copy(), np.nan, np.nan, np.nan, pairs, reason)
