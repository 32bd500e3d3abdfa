"""The STAMP estimator: how much of a model's output variation lies between groups, not within.

SV is the mean squared distance of the outputs of semantic pairs, AV that of random pairs, and
``STAMP = 1 - SV / (AV + 1e-8)``. All of it is float64, whatever the precision of the logits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Pairs = tuple[ArrayLike, ArrayLike]

EPSILON = 1e-8
DEGENERATE_TOTAL = 1e-6
DEGENERATE_SPREAD = 1e-4
SATURATED_DISTANCE = 1e-2
SATURATED_SHARE = 0.99

_BLOCK = 1 << 18  # numbers of a block of pairs: few enough for the processor's cache


@dataclass(frozen=True, slots=True)
class Health:
    """Whether a model's outputs can be scored at all, and what that was judged by."""

    degenerate: bool
    saturated: bool
    spread: float  # largest standard deviation of an output over the images
    saturated_share: float  # share of images whose outputs are all nearly 0 or 1


@dataclass(frozen=True, slots=True)
class Exact:
    """SV, AV and STAMP over all pairs that the images allow, without pair noise."""

    within: float
    total_iid: float
    total_different: float
    stamp_iid: float
    stamp_different: float
    groups: int  # groups of at least two images, which SV is made of


def probabilities(logits: ArrayLike, task: str, temperature: float = 1.0) -> Array:
    """Softmax (``multiclass``) or elementwise sigmoid (``multilabel``) of ``logits / temperature``.

    Both are computed from exponentials of numbers that are at most 0, so nothing overflows.
    """
    if not (np.isfinite(temperature) and temperature > 0):
        raise ValueError(f"a temperature is positive and finite, not {temperature}")
    z = np.array(logits, dtype=np.float64)
    z /= temperature
    if task == "multiclass":
        z -= z.max(axis=1, keepdims=True)
        np.exp(z, out=z)
        z /= z.sum(axis=1, keepdims=True)
        return z
    if task == "multilabel":
        small = np.exp(-np.abs(z))
        return np.where(z >= 0, 1.0, small) / (1.0 + small)
    raise ValueError(f"task is 'multiclass' or 'multilabel', not '{task}'")


def squared_distances(p: Array, a: ArrayLike, b: ArrayLike) -> Array:
    """``||p[a_i] - p[b_i]||^2`` for each pair of rows."""
    a, b = np.asarray(a), np.asarray(b)
    distances = np.empty(len(a))
    step = max(1, _BLOCK // max(1, p.shape[1]))
    for start in range(0, len(a), step):
        rows = slice(start, start + step)
        difference = p[a[rows]] - p[b[rows]]
        distances[rows] = np.einsum("ij,ij->i", difference, difference)
    return distances


def stamp(within: Any, total: Any, epsilon: float = EPSILON) -> Any:
    """``1 - within / (total + epsilon)``, not clipped: negative where pairs are worse than chance.

    A constant model has SV = AV = 0 and would get the best score, 1.0: see ``health``.
    """
    return 1.0 - within / (total + epsilon)


def health(p: Array, total: float) -> Health:
    """Flags of a model whose outputs say nothing (degenerate) or only 0 and 1 (saturated).

    Degenerate: ``AV < 1e-6 C`` for C classes, or no class whose standard deviation over the
    images reaches 1e-4. Saturated: for more than 99 % of the images the outputs lie within 0.01
    of a vector of zeros and ones, ``||p - round(p)||_1 < 0.01``. Then each squared distance is
    within 0.04 of the number of classes on which two predicted label vectors differ, and the
    score counts label flips.
    """
    spread = float(p.std(axis=0).max())
    corner = np.abs(p - np.rint(p)).sum(axis=1)
    share = float(np.mean(corner < SATURATED_DISTANCE))
    degenerate = total < DEGENERATE_TOTAL * p.shape[1] or spread < DEGENERATE_SPREAD
    return Health(bool(degenerate), share > SATURATED_SHARE, spread, share)


def exact_groups(p: Array, groups: ArrayLike, weights: str = "uniform") -> Exact:
    """SV and AV over all pairs of rows, in the time of one pass over them.

    With n_g images in group g, shares ``pi_g = n_g / n`` and ``Q_g`` the squared distances of its
    outputs to their mean, summed:

    - ``SV = sum_g w_g 2 Q_g / (n_g - 1)`` over groups of two images or more, ``w_g`` equal
      (``uniform``) or proportional to n_g (``size``);
    - ``AV_iid = 2 Q / (n - 1)``, the mean over all pairs of two images;
    - ``AV_diff = (2 S - sum_g pi_g^2 2 s_g) / (1 - sum_g pi_g^2)`` with ``S = Q / n`` and
      ``s_g = Q_g / n_g``, the mean over all pairs of two images of different groups.

    SV is over *all* pairs of a group, for visits of a patient not the consecutive ones only.
    What cannot be had (one image, one group, no group of two) is NaN.
    """
    if weights not in ("uniform", "size"):
        raise ValueError(f"weights are 'uniform' or 'size', not '{weights}'")
    codes, n_g = np.unique(np.asarray(groups), return_inverse=True, return_counts=True)[1:]
    order = np.argsort(codes, kind="stable")
    starts = np.cumsum(n_g) - n_g
    ordered = p[order]
    ordered -= p.mean(axis=0)
    n = len(ordered)
    q = float(np.einsum("ij,ij->", ordered, ordered))
    means = np.add.reduceat(ordered, starts, axis=0)
    means /= n_g[:, None]
    ordered -= np.repeat(means, n_g, axis=0)
    q_g = np.add.reduceat(np.einsum("ij,ij->i", ordered, ordered), starts)

    many = n_g >= 2
    share = np.ones(many.sum()) if weights == "uniform" else n_g[many].astype(float)
    with np.errstate(invalid="ignore", divide="ignore"):
        within = float(np.sum(share * 2 * q_g[many] / (n_g[many] - 1)) / share.sum())
        iid = float(np.float64(2 * q) / (n - 1))
        across = 2 * n * q - 2 * (n_g * q_g).sum()
        different = float(across / (n**2 - (n_g**2).sum())) if len(n_g) > 1 else float("nan")
    return Exact(
        within, iid, different, stamp(within, iid), stamp(within, different), int(many.sum())
    )


def effective_groups(groups: ArrayLike) -> float:
    """``1 / sum_g pi_g^2``: how many equally large groups meet by chance as often as these do."""
    shares = np.unique(np.asarray(groups), return_counts=True)[1] / np.size(groups)
    return float(1 / np.sum(shares**2))


def correct_different_groups(value: Any, groups_count: float) -> Any:
    """eta squared from a STAMP whose random pairs come from different groups.

    Random pairs of K equally likely groups never meet within one, so that
    ``AV_diff = 2 S_W + 2 S_B K/(K-1)`` overstates the total. With ``k = K / (K-1)``,
    ``eta2 = s / (s + k (1 - s))``. For unequal shares K is ``effective_groups``: exact where the
    groups vary alike.
    """
    k = groups_count / (groups_count - 1)
    return value / (value + k * (1 - value))
