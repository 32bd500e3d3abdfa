"""Corrections of p for several tests."""

from __future__ import annotations

import numpy as np

TOLERANCE = 1e-10  # equal statistics may differ by rounding


def holm(p: np.ndarray) -> np.ndarray:
    """Holm's step-down correction (1979): p sorted, times m, m - 1, ..., made monotone."""
    adjusted = np.full(len(p), np.nan)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    scaled = p[order] * (len(order) - np.arange(len(order)))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(scaled))
    return adjusted


def max_t(observed: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """p of no difference for m estimates, corrected by the joint bootstrap of all of them.

    ``observed`` [m] are estimates of differences and ``draws`` [B, m] those of B joint resamples.
    With s the standard deviation of an estimate's draws, t = |d| / s is held against the largest
    |d_b - d| / s over the estimates that are not larger, step by step down from the largest t:
    p = (1 + #{max_b >= t}) / (B + 1), made monotone (Westfall & Young 1993; Romano & Wolf 2005).
    The least that p can be is 1 / (B + 1) however many tests there are, and tests that go together
    cost less than Holm's correction takes. NaN draws say nothing; no draws give NaN.
    """
    observed, draws = np.asarray(observed, np.float64), np.asarray(draws, np.float64)
    adjusted = np.full(len(observed), np.nan)
    known = np.flatnonzero(~np.isnan(observed) & ~np.isnan(draws).all(axis=0))
    if not known.size:
        return adjusted
    centred = np.abs(draws[:, known] - observed[known])
    scale = np.nanstd(draws[:, known], axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        t = np.nan_to_num(np.abs(observed[known]) / scale)  # no difference without spread: t = 0
        largest = np.nan_to_num(centred / scale)
    order = np.argsort(-t, kind="stable")
    largest = np.maximum.accumulate(largest[:, order[::-1]], axis=1)[:, ::-1]
    beyond = (largest >= t[order] - TOLERANCE).sum(axis=0)
    adjusted[known[order]] = np.maximum.accumulate((1 + beyond) / (len(draws) + 1))
    return adjusted
