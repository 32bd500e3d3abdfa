"""Corrections of p for several tests."""

from __future__ import annotations

import numpy as np


def holm(p: np.ndarray) -> np.ndarray:
    """Holm's step-down correction (1979): p sorted, times m, m - 1, ..., made monotone."""
    adjusted = np.full(len(p), np.nan)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    scaled = p[order] * (len(order) - np.arange(len(order)))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(scaled))
    return adjusted
