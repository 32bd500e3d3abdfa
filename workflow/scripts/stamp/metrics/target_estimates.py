"""Estimates of a model's performance on a target, from its outputs on unlabeled target images.

All are fitted on labeled source images. Probabilities are [n, C], after the source's temperature;
labels are class numbers [n], or 0 and 1 [n, C] in the multilabel case, NaN where there is none.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stamp.metrics.value import Value
from stamp.stats.auroc import MINIMUM, shortage

Array = NDArray[np.float64]
Estimate = Callable[[Array, Array, Array], float]

TINY = 1e-12


def confidence(p: ArrayLike) -> Array:
    """The largest probability of each image."""
    return np.asarray(p, dtype=np.float64).max(axis=-1)


def negative_entropy(p: ArrayLike) -> Array:
    """``sum_c p_c log p_c`` of each image: 0 where it is certain."""
    q = np.asarray(p, dtype=np.float64)
    return (q * np.log(np.clip(q, TINY, 1))).sum(axis=-1)


SCORES: dict[str, Callable[[ArrayLike], Array]] = {
    "confidence": confidence,
    "negative_entropy": negative_entropy,
}


def atc(source_scores: ArrayLike, source_right: ArrayLike, target_scores: ArrayLike) -> Value:
    """Average thresholded confidence: the share of target images that score at least t.

    With k errors among n source images, ``t = sort(s)[k]``, so that a share of k / n of the source
    lies below it; ``-inf`` where there are no errors (estimate 1), ``+inf`` where all are (0).
    Garg et al., Leveraging unlabeled data to predict out-of-distribution performance, ICLR 2022.
    """
    s, t = (np.asarray(scores, dtype=np.float64) for scores in (source_scores, target_scores))
    if reason := _unusable(s, t):
        return Value(float("nan"), reason)
    return Value(_atc(s, np.asarray(source_right, dtype=bool), t))


def atc_multiclass(
    p_source: ArrayLike, labels_source: ArrayLike, p_target: ArrayLike, score: str = "confidence"
) -> Value:
    """ATC of the most probable class; ``score`` is ``confidence`` or ``negative_entropy``."""
    p, y, target = _labeled(p_source, labels_source, p_target)
    if reason := _unusable(p, target):
        return Value(float("nan"), reason)
    return atc(SCORES[score](p), p.argmax(axis=1) == y, SCORES[score](target))


def atc_multilabel(
    p_source: ArrayLike,
    labels_source: ArrayLike,
    p_target: ArrayLike,
    score: str = "confidence",
    minimum: int = MINIMUM,
) -> Value:
    """Macro mean over the classes of the ATC of each, decided at its own threshold.

    Class c is decided at ``prevalence_threshold`` and scored after ``recentred``: as
    ``max(p', 1 - p')``, or as the negative entropy of ``(p', 1 - p')``. Of two outcomes each is an
    increasing function of the other, so that both scores give the same estimate.
    """

    def estimate(p: Array, y: Array, target: Array) -> float:
        tau = prevalence_threshold(p, y)
        scores = (SCORES[score](_both(recentred(values, tau))) for values in (p, target))
        return _atc(next(scores), (p >= tau) == (y == 1), next(scores))

    return _macro(p_source, labels_source, p_target, estimate, minimum)


def doc(
    p_source: ArrayLike, labels_source: ArrayLike, p_target: ArrayLike, minimum: int = MINIMUM
) -> Value:
    """Difference of confidences: ``accuracy_s + mean confidence_t - mean confidence_s``.

    With labels [n, C], the macro mean over the classes, each decided at ``prevalence_threshold``
    with the confidence ``max(p', 1 - p')`` of its ``recentred`` probability. Not clipped to [0, 1].
    Guillory et al., Predicting with confidence on unseen distributions, ICCV 2021.
    """

    def estimate(p: Array, y: Array, target: Array) -> float:
        tau = prevalence_threshold(p, y)
        here, there = (confidence(_both(recentred(values, tau))).mean() for values in (p, target))
        return float(((p >= tau) == (y == 1)).mean() + there - here)

    if np.ndim(labels_source) == 2:
        return _macro(p_source, labels_source, p_target, estimate, minimum)
    p, labels, target = _labeled(p_source, labels_source, p_target)
    if reason := _unusable(p, target):
        return Value(float("nan"), reason)
    right = (p.argmax(axis=1) == labels).mean()
    return Value(float(right + confidence(target).mean() - confidence(p).mean()))


def cbpe_auroc(
    p_source: ArrayLike, labels_source: ArrayLike, p_target: ArrayLike, minimum: int = MINIMUM
) -> Value:
    """Macro mean over the classes of the AUROC to be expected on the target.

    Each class is calibrated on the source by isotonic regression; the calibrated probabilities are
    the soft labels of the target images, which stay ordered by the model's own. The idea is
    NannyML's confidence-based performance estimation, class by class.
    """

    def estimate(p: Array, y: Array, target: Array) -> float:
        return expected_auroc(target, isotonic(p, y, target))

    return _macro(p_source, labels_source, p_target, estimate, minimum)


def expected_auroc(scores: ArrayLike, soft: ArrayLike) -> float:
    """``sum_ij q_i (1 - q_j) [s_i > s_j] / sum_ij q_i (1 - q_j)``, ties counting one half.

    With q of 0 and 1 this is the AUROC. An image beside itself is a tie, as in the area under the
    curve of expected true and false positives. NaN where one side has no weight.
    """
    q = np.asarray(soft, dtype=np.float64)
    _, level = np.unique(np.asarray(scores, dtype=np.float64), return_inverse=True)
    positive, negative = np.bincount(level, weights=q), np.bincount(level, weights=1 - q)
    total = positive.sum() * negative.sum()
    if total <= 0:
        return float("nan")
    below = np.cumsum(negative) - negative / 2
    return float((positive * below).sum() / total)


def isotonic(x: ArrayLike, y: ArrayLike, at: ArrayLike) -> Array:
    """Values ``at`` some points of the least-squares non-decreasing fit of y on x.

    Equal x are pooled first; linear between the points of the fit and constant beyond them.
    """
    from scipy.optimize import isotonic_regression

    points, level, counts = np.unique(
        np.asarray(x, dtype=np.float64), return_inverse=True, return_counts=True
    )
    means = np.bincount(level, weights=np.asarray(y, dtype=np.float64)) / counts
    fit = isotonic_regression(means, weights=counts.astype(np.float64)).x
    return np.interp(np.asarray(at, dtype=np.float64), points, fit)


def prevalence_threshold(p: ArrayLike, labels: ArrayLike) -> float:
    """The threshold tau at which ``p >= tau`` holds as often as the label is 1.

    Halfway between the two images that it parts. At .5 a rare class would never be predicted.
    """
    ordered, negatives = (
        np.sort(np.asarray(p, dtype=np.float64)),
        int((np.asarray(labels) == 0).sum()),
    )
    if not 0 < negatives < len(ordered):
        raise ValueError("a threshold needs labels of 0 and of 1")
    low, high = ordered[negatives - 1], ordered[negatives]
    middle = low + (high - low) / 2
    return float(middle if middle > low else high)


def recentred(p: ArrayLike, tau: float) -> Array:
    """Probabilities moved so that tau becomes .5, linearly on [0, tau] and on [tau, 1]."""
    q = np.asarray(p, dtype=np.float64)
    below, above = max(tau, TINY), max(1 - tau, TINY)
    return np.where(q < tau, q / below / 2, 0.5 + (q - tau) / above / 2)


def _atc(s: Array, right: NDArray[np.bool_], target: Array) -> float:
    errors = int((~right).sum())
    if errors in (0, len(s)):
        return float(errors == 0)
    return float((target >= np.sort(s)[errors]).mean())


def _both(p: Array) -> Array:
    return np.stack([p, 1 - p], axis=-1)


def _labeled(p: ArrayLike, labels: ArrayLike, target: ArrayLike) -> tuple[Array, Array, Array]:
    """The labeled source images' probabilities and labels, and those of all target images."""
    q, y, t = (np.asarray(values, dtype=np.float64) for values in (p, labels, target))
    known = ~np.isnan(y)
    return q[known], y[known], t


def _unusable(source: Array, target: Array) -> str:
    for name, values in (("source", source), ("target", target)):
        if len(values) == 0:
            return f"no {'labeled source' if name == 'source' else name} images"
        if np.isnan(values).any():
            return f"outputs on the {name} are not numbers"
    return ""


def _macro(
    p_source: ArrayLike,
    labels_source: ArrayLike,
    p_target: ArrayLike,
    estimate: Estimate,
    minimum: int,
) -> Value:
    """Mean of an estimate over the classes that have an output and enough labels on the source."""
    p, y, target = (
        np.asarray(values, dtype=np.float64) for values in (p_source, labels_source, p_target)
    )
    if p.shape != y.shape or p.shape[1] != target.shape[1]:
        raise ValueError(f"shapes {p.shape}, {y.shape} and {target.shape} do not fit together")
    found = []
    for c in range(p.shape[1]):
        enough = not shortage(int((y[:, c] == 1).sum()), int((y[:, c] == 0).sum()), minimum)
        here, labels, there = _labeled(p[:, c], y[:, c], target[:, c])
        if enough and not _unusable(here, there):
            found.append(estimate(here, labels, there))
    defined = [value for value in found if not np.isnan(value)]
    needed = f"an output and {minimum} source labels of 0 and of 1"
    if not defined:
        reason = "undefined for every class" if found else f"no class has {needed}"
        return Value(float("nan"), reason if len(target) else "no target images")
    note = f"over {len(defined)} of {p.shape[1]} classes: others lack {needed}, or are undefined"
    return Value(float(np.mean(defined)), "" if len(defined) == p.shape[1] else note)
