"""Spearman's rho of a score and an outcome with other variables held fixed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from stamp.stats.correlations.correlation import NAN, asymptotic_p, unusable
from stamp.stats.permutations import p_value, permutation_method, shuffles
from stamp.stats.ranks import Array, centred_ranks

TOLERANCE = 1e-10  # residuals are not whole numbers: equal correlations may differ by rounding


@dataclass(frozen=True, slots=True)
class Partial:
    """Partial Spearman correlation; NaN with the ``reason`` where it is undefined."""

    rho: float = NAN
    n: int = 0
    df: int = 0
    p_asymptotic: float = NAN
    p_permutation: float = NAN
    permutation_method: str = ""
    reason: str = ""


def partial_spearman(
    x: ArrayLike, y: ArrayLike, controls: ArrayLike, permutations: int = 10_000, seed: int = 0
) -> Partial:
    """Spearman's rho of x and y given the controls [k, n]; models with a NaN anywhere are dropped.

    The correlation of what is left of the mid-ranks of x and y after least squares on those of the
    controls. For one control z this is Kendall's (r_xy - r_xz r_yz) / sqrt((1 - r_xz^2)(1 -
    r_yz^2)); for any number, -P_xy / sqrt(P_xx P_yy) with P the inverse of the rank-correlation
    matrix (Kendall 1942; Whittaker 1990). t test with df = n - 2 - k. Permutation p after
    Freedman & Lane 1983: the residuals e of y's ranks are permuted, and e_b, freed again of the
    controls, is correlated with the residuals of x.
    """
    rows = np.vstack([np.atleast_2d(np.asarray(row, np.float64)) for row in (x, y, controls)])
    rows = rows[:, ~np.isnan(rows).any(axis=0)]
    n, k = rows.shape[1], len(rows) - 2
    df = n - 2 - k
    if reason := unusable(rows, k + 3):
        return Partial(n=n, df=df, reason=reason)
    ranks = centred_ranks(rows)
    basis, triangle = np.linalg.qr(ranks[2:].T)
    left = ranks[:2] - ranks[:2] @ basis @ basis.T
    scale = np.square(ranks).sum(axis=1)
    if reason := _dependence(np.square(left).sum(axis=1) / scale[:2], triangle, scale[2:]):
        return Partial(n=n, df=df, reason=reason)
    x_left, y_left = left / np.linalg.norm(left, axis=1, keepdims=True)
    rho = min(1.0, max(-1.0, float(x_left @ y_left)))
    method = permutation_method(n, permutations)
    return Partial(
        rho=rho,
        n=n,
        df=df,
        p_asymptotic=float(asymptotic_p(rho, n, k)),
        p_permutation=_freedman_lane(x_left, y_left, basis, permutations, seed),
        permutation_method=method,
    )


def _freedman_lane(
    x_left: Array, y_left: Array, basis: Array, permutations: int, seed: int
) -> float:
    """Permutation p for unit residuals of x and y on the space spanned by ``basis`` [n, k].

    x's residuals are orthogonal to that space, so only the length of y's permuted residuals
    has to be freed of it: |M e_b|^2 = |e_b|^2 - |Q' e_b|^2.
    """
    observed = abs(float(x_left @ y_left))
    extreme = 0
    for order in shuffles(np.arange(y_left.size), permutations, seed):
        shuffled = y_left.take(order.astype(np.intp))
        length = 1 - np.square(shuffled @ basis).sum(axis=1)
        reach = (observed - TOLERANCE) * np.sqrt(np.maximum(length, 0))
        # Nothing left of a permutation once freed of the controls: counted against us.
        beyond = (np.abs(shuffled @ x_left) >= reach) | (length <= TOLERANCE)
        extreme += int(np.count_nonzero(beyond))
    method = permutation_method(y_left.size, permutations)
    used = math.factorial(y_left.size) if method == "exact" else permutations
    return float(p_value(extreme, used, method))


def _dependence(left: Array, triangle: Array, scale: Array) -> str:
    """Why a partial correlation is undefined: controls that determine each other, x or y."""
    if np.any(np.square(np.diag(triangle)) <= TOLERANCE * scale):
        return "the ranks of the controls determine each other"
    for share, name in zip(left, ("score", "target"), strict=True):
        if share <= TOLERANCE:
            return f"the ranks of the {name} are determined by the controls"
    return ""
