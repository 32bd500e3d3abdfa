"""Transferability scores: how well labeled images are told apart by embeddings or outputs.

Their authors take the labels of the task that a network is to be transferred to. Here these are
the source's own, or, for reference, a labeled target's. ``h`` are embeddings [n, d], ``p``
probabilities [n, C]; labels are class numbers [n] (multiclass) or 0 and 1 [n, C] (multilabel), NaN
where unknown. In a multilabel study each class is a task of its own, over the images with a label
of it, and the value is the mean over the classes that have ``MINIMUM`` of both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar

from stamp.metrics.value import NO_LABELS, Value, missing

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

MINIMUM = 10  # images of 0 and of 1 that a class of a multilabel study needs
RANK = 1e-12  # an eigenvalue below this share of the largest is rounding
TINY = 1e-12
RATIOS = np.logspace(-8, 8, 49)  # prior to noise precision, relative to the mean eigenvalue
TOO_WIDE = "the embeddings have as many dimensions as there are labeled images"
ONE_CLASS = "fewer than 2 classes are labeled"


@dataclass(frozen=True, slots=True)
class _Basis:
    """Left singular vectors [n, r] of some embeddings and the squares of the singular values."""

    vectors: Array
    squares: Array

    @classmethod
    def of(cls, x: Array) -> _Basis:
        """By the smaller Gram matrix, which is several times faster than a decomposition of x."""
        wide = x.shape[0] < x.shape[1]
        squares, found = np.linalg.eigh(x @ x.T if wide else x.T @ x)
        kept = squares > RANK * max(squares[-1], TINY) if len(squares) else np.zeros(0, bool)
        squares, found = squares[kept], found[:, kept]
        return cls(found if wide else x @ found / np.sqrt(squares), squares)


def logme(h: ArrayLike, labels: ArrayLike, task: str) -> Value:
    """Log of the maximum evidence of a Bayesian linear model, per image (You et al. 2021).

    For each class the 0/1 labels y of the n images are ``y = h w + noise`` with ``w ~ N(0, I/a)``
    and noise ``N(0, 1/b)``. The value is ``max_{a,b} log p(y | h, a, b) / n``, the mean over the
    classes that occur. Given ``t = a/b`` the best b has a closed form; t is searched on a grid and
    then refined.
    """

    def measured(x: Array, y: Array) -> float:
        basis, classes = _Basis.of(x), np.unique(y)
        targets = [y == one for one in (classes if task == "multiclass" else classes[1:])]
        return float(np.mean([_evidence(basis, one.astype(np.float64)) for one in targets]))

    return _over_classes(h, labels, task, measured)


def h_score(h: ArrayLike, labels: ArrayLike, task: str) -> Value:
    """``tr(cov(h)^-1 cov(E[h | y]))`` (Bao et al. 2019), by the pseudoinverse.

    With left singular vectors U of the centred embeddings it is ``sum_k n_k ||mean_k U||^2``. Where
    the embeddings have as many dimensions as there are images it is the number of classes less one
    whatever they are, and so not given.
    """

    def measured(x: Array, y: Array) -> float:
        u = _Basis.of(x - x.mean(axis=0)).vectors
        if u.shape[1] >= len(x) - 1:
            return float("nan")
        parts = [u[y == one] for one in np.unique(y)]
        return float(sum(len(part) * (part.mean(axis=0) ** 2).sum() for part in parts))

    return _over_classes(h, labels, task, measured)


def leep(p: ArrayLike, labels: ArrayLike, task: str) -> Value:
    """Log expected empirical prediction ``mean_i log sum_z P(y_i | z) p_iz`` (Nguyen et al. 2020).

    ``P(y | z) = sum_{i: y_i = y} p_iz / sum_i p_iz`` is what the labels are where the network says
    z. Multilabel: z is yes or no to one class.
    """

    def measured(x: Array, y: Array) -> float:
        outputs = x if task == "multiclass" else np.stack([1 - x[:, 0], x[:, 0]], axis=1)
        codes = np.unique(y, return_inverse=True)[1]
        joint = np.zeros((codes.max() + 1, outputs.shape[1]))
        np.add.at(joint, codes, outputs)
        given = joint / np.maximum(outputs.sum(axis=0), TINY)
        expected = np.einsum("iz,iz->i", given[codes], outputs)
        return float(np.log(np.maximum(expected, TINY)).mean())

    return _over_classes(p, labels, task, measured, own_column=True)


def _over_classes(
    x: ArrayLike,
    labels: ArrayLike,
    task: str,
    measured: Callable[[Array, Array], float],
    own_column: bool = False,
) -> Value:
    """A measure of labeled images, or its mean over the classes of a multilabel study.

    ``own_column``: there each class is measured on its own column of ``x`` alone.
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    if not np.isfinite(x).all():
        return missing("not all numbers are finite")
    if task == "multiclass":
        known = ~np.isnan(y)
        if len(np.unique(y[known])) < 2:
            return missing(ONE_CLASS if known.any() else NO_LABELS)
        value = measured(x[known], y[known])
        return missing(TOO_WIDE) if np.isnan(value) else Value(value)
    counts = np.stack([(y == 0).sum(axis=0), (y == 1).sum(axis=0)])
    enough = np.flatnonzero((counts >= MINIMUM).all(axis=0))
    if not len(enough):
        return missing(f"no class has {MINIMUM} positives and negatives")
    values = []
    for c in enough:
        known = ~np.isnan(y[:, c])
        values.append(measured(x[known][:, [c]] if own_column else x[known], y[known, c]))
    if np.isnan(values).any():
        return missing(TOO_WIDE)
    note = f"over {len(enough)} of {y.shape[1]} classes: others lack {MINIMUM} labels of 0 or 1"
    return Value(float(np.mean(values)), "" if len(enough) == y.shape[1] else note)


def _evidence(basis: _Basis, y: Array) -> float:
    """The largest log evidence per image of one 0/1 target."""
    projected = (basis.vectors.T @ y) ** 2
    rest = max(float(y @ y - projected.sum()), TINY * len(y))
    s, n = basis.squares, len(y)

    def value(t: float) -> float:
        misfit = rest + float((projected * (t / (t + s))).sum())  # |y - h m|^2 + t |m|^2
        size = len(s) * np.log(t) - np.log(t + s).sum()
        return float(0.5 * (n * np.log(n / misfit) + size - n - n * np.log(2 * np.pi)) / n)

    ratios = RATIOS * (s.mean() if len(s) else 1.0)
    found = [value(t) for t in ratios]
    best = int(np.argmax(found))
    ends = np.log(ratios[[max(best - 1, 0), min(best + 1, len(ratios) - 1)]])
    refined = minimize_scalar(
        lambda u: -value(np.exp(u)), bounds=tuple(ends), method="bounded", options={"xatol": 1e-6}
    )
    return max(found[best], float(-refined.fun))
