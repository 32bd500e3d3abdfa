"""Metrics of a model's outputs on some images alone, the source's or a target's.

Only ECE needs labels.

``p`` are probabilities and ``z`` logits, both [n, C], without the classes that the model has no
output for. The task is ``multiclass`` (softmax) or ``multilabel`` (sigmoid). All is float64. The
order of the images is of no account, save that MDE takes the first ones.

A constant model, which says the same of every image, has a value of every metric here: its
prediction std is 0, its P has rank 1 and so the least nuclear norm that its rows allow, its MDE is
log log N. What is thought of such a value is the caller's business.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stamp.metrics.value import NO_IMAGES, NO_LABELS, NO_OUTPUTS, ONE_IMAGE, Value, missing

Array = NDArray[np.float64]

TASKS = ("multiclass", "multilabel")
TINY = 1e-12


def entropy(p: ArrayLike, task: str) -> Value:
    """Mean entropy of the outputs.

    Multiclass: ``mean_i -sum_c p log p`` in nats (Shannon 1948). Multilabel: ``mean_ic H_b(p) /
    log 2`` with ``H_b(p) = -p log p - (1 - p) log(1 - p)``, so 1 is a coin toss. Probabilities are
    clipped to [1e-12, 1 - 1e-12] inside the logarithms only.
    """
    p, reason = _probabilities(p, task)
    if reason:
        return missing(reason)
    if task == "multiclass":
        return Value(float(_surprise(p).sum(axis=1).mean()))
    return Value(float((_surprise(p) + _surprise(1 - p)).mean() / np.log(2)))


def mean_confidence(p: ArrayLike, task: str) -> Value:
    """``mean_i max_c p_ic`` for both tasks (Hendrycks and Gimpel 2017)."""
    p, reason = _probabilities(p, task)
    return missing(reason) if reason else Value(float(p.max(axis=1).mean()))


def mean_confidence_two_sided(p: ArrayLike) -> Value:
    """``mean_ic max(p, 1 - p)``: multilabel confidence that counts a sure no as much as a yes."""
    p, reason = _probabilities(p, "multilabel")
    return missing(reason) if reason else Value(float(np.maximum(p, 1 - p).mean()))


def margin(p: ArrayLike, task: str) -> Value:
    """Multiclass: mean of the largest less the second largest p. Multilabel: ``mean |2p - 1|``."""
    p, reason = _probabilities(p, task)
    if reason:
        return missing(reason)
    if task == "multilabel":
        return Value(float(np.abs(2 * p - 1).mean()))
    if p.shape[1] < 2:
        return missing("fewer than 2 classes")
    top = np.partition(p, -2, axis=1)[:, -2:]
    return Value(float((top[:, 1] - top[:, 0]).mean()))


def ece(
    p: ArrayLike, labels: ArrayLike | None, task: str, bins: int = 15, minimum: int = 10
) -> Value:
    """Expected calibration error ``sum_b n_b / n |accuracy_b - confidence_b|`` (Guo et al. 2017).

    Bins are of equal width, ``((b - 1) / bins, b / bins]``, 0 in the first. Multiclass: of the top
    label, the first of equals; ``labels`` [n] number the columns of ``p``, so a class without an
    output needs a column of zeros here. Multilabel: prevalence against mean p, class by class, then
    the mean over classes that have ``minimum`` positives; ``labels`` [n, C] are 0 or 1. NaN is an
    unknown label in both.
    """
    p, reason = _probabilities(p, task)
    if labels is None or reason:
        return missing(reason or NO_LABELS)
    y = np.asarray(labels, dtype=np.float64)
    _check_labels(y, p, task)
    known = ~np.isnan(y)
    if not known.any():
        return missing(NO_LABELS)
    if task == "multiclass":
        top = p[known].argmax(axis=1)
        sure, right = p[known].max(axis=1), (top == y[known]).astype(np.float64)
        return Value(float(_calibration(sure[:, None], right[:, None], bins)[0]))
    enough = np.nansum(y, axis=0) >= minimum
    few = f"fewer than {minimum} positives"
    if not enough.any():
        return missing(f"every class has {few}")
    value = float(_calibration(p[:, enough], y[:, enough], bins).mean())
    kept, count = int(enough.sum()), enough.size
    return Value(value, "" if kept == count else f"over {kept} of {count} classes: others, {few}")


def prediction_std(p: ArrayLike) -> Value:
    """``mean_c std_i p_ic`` with ddof 1, for both tasks; 0 for a constant model.

    The variances add up to half of STAMP's AV over all pairs of images: ``sum_c var_i = AV_iid/2``.
    """
    p, reason = _probabilities(p, "multilabel")
    if reason or len(p) < 2:
        return missing(reason or ONE_IMAGE)
    return Value(float(p.std(axis=0, ddof=1).mean()))


def nuclear_norm(p: ArrayLike, task: str) -> Value:
    """Sum of the singular values of P [N, C], relative to its bound (Deng et al. 2023).

    Multiclass: ``||P||_* / sqrt(min(N, C) N)``, 1 where the classes are predicted with certainty
    and equally often. Multilabel: ``||P||_* / (sqrt(min(N, C)) ||P||_F)``, because there
    ``||P||_F^2`` may be anything up to N C; 1 where all singular values are equal. A constant model
    has ``||p|| / sqrt(min(N, C))`` and ``1 / sqrt(min(N, C))``.
    """
    p, reason = _probabilities(p, task)
    if reason:
        return missing(reason)
    bound = np.sqrt(len(p)) if task == "multiclass" else np.linalg.norm(p)
    if bound == 0:
        return missing("every probability is 0")
    return Value(float(np.linalg.norm(p, "nuc") / (np.sqrt(min(p.shape)) * bound)))


def energy(z: ArrayLike, task: str) -> Value:
    """``-mean_i E_i``, the mean negative energy (AVG of Peng et al. 2024).

    Multiclass: ``E = -log sum_c exp z_c`` (Liu et al. 2020), which, unlike a softmax, moves with a
    constant added to an image's logits. Multilabel: ``E = -sum_c log(1 + exp z_c)`` (joint energy,
    Wang et al. 2021), a sum over classes: models compare on the same classes only.
    """
    z, reason = _logits(z, task)
    return missing(reason) if reason else Value(float(-_energies(z, task).mean()))


def mde(z: ArrayLike, task: str, count: int = 2000) -> Value:
    """Meta-distribution energy ``log(-mean_i log_softmax_i(E))`` (Peng et al. 2024).

    The softmax of the energies (see :func:`energy`) runs over N images, and MDE is at least log log
    N, so N is fixed: the first ``count`` images, which should be a sample of all and the same for
    every model. Where there are fewer, all are used and the reason gives N.
    """
    if count < 2:
        raise ValueError(f"MDE takes at least 2 images, not {count}")
    z, reason = _logits(z, task)
    if reason or len(z) < 2:
        return missing(reason or ONE_IMAGE)
    e = _energies(z[:count], task)
    value = float(np.log(_log_sum_exp(e) - e.mean()))
    return Value(value, "" if len(z) >= count else f"over {len(z)} images, fewer than {count}")


def mano(z: ArrayLike, task: str, gate: float = 5.0) -> Value:
    """``(mean sigma^4)^(1/4)`` over images and classes (MaNo, Xie et al. 2024).

    Multiclass: sigma is the softmax where the mean cross-entropy of the outputs with the uniform
    distribution is above ``gate``, else ``1 + z + z^2 / 2``, less its smallest value of each image
    and divided by the sum. Which of both it was is told with the value, because models with
    different ones don't compare. Multilabel: sigma is (p, 1 - p).
    """
    z, reason = _logits(z, task)
    if reason:
        return missing(reason)
    if task == "multilabel":
        sides = np.exp(-np.logaddexp(0, np.stack([z, -z])))
        return Value(float((sides**4).mean() ** 0.25))
    if float((_log_sum_exp(z) - z.mean(axis=1)).mean()) > gate:
        sigma, note = np.exp(z - _log_sum_exp(z)[:, None]), "of the softmax"
    else:
        raised = 1 + z + z**2 / 2
        raised = raised - raised.min(axis=1, keepdims=True)
        total = raised.sum(axis=1, keepdims=True)
        sigma = np.divide(raised, total, out=np.full_like(z, 1 / z.shape[1]), where=total > 0)
        note = "of the Taylor form"
    return Value(float((sigma**4).mean() ** 0.25), note)


def _surprise(p: Array) -> Array:
    """``-p log p``."""
    return -p * np.log(p.clip(TINY, 1 - TINY))


def _calibration(p: Array, y: Array, bins: int) -> Array:
    """The binary calibration error of every column; images without a label (NaN) left out."""
    known = ~np.isnan(y)
    inner = np.linspace(0, 1, bins + 1)[1:-1]
    cell = np.digitize(p, inner, right=True) + bins * np.arange(p.shape[1])
    gaps = np.bincount(cell[known], weights=(y - p)[known], minlength=bins * p.shape[1])
    return np.abs(gaps).reshape(-1, bins).sum(axis=1) / known.sum(axis=0)


def _energies(z: Array, task: str) -> Array:
    if task == "multiclass":
        return -_log_sum_exp(z)
    return -np.logaddexp(0, z).sum(axis=1)


def _log_sum_exp(z: Array) -> Array:
    """``log sum exp`` over the last axis, without overflow."""
    top = z.max(axis=-1, keepdims=True)
    return np.log(np.exp(z - top).sum(axis=-1)) + top[..., 0]


def _probabilities(p: ArrayLike, task: str) -> tuple[Array, str]:
    """``p`` as checked float64, and why there is nothing to compute from it, if so."""
    p, reason = _matrix(p, task)
    if not reason and not (p.min() >= 0 and p.max() <= 1 + 1e-6):
        raise ValueError(f"probabilities lie in [0, 1], not [{p.min()}, {p.max()}]")
    return p, reason


def _logits(z: ArrayLike, task: str) -> tuple[Array, str]:
    """``z`` as checked float64, and why there is nothing to compute from it, if so."""
    z, reason = _matrix(z, task)
    if not np.isfinite(z).all():
        raise ValueError("logits are not finite")
    return z, reason


def _matrix(x: ArrayLike, task: str) -> tuple[Array, str]:
    if task not in TASKS:
        raise ValueError(f"task is 'multiclass' or 'multilabel', not '{task}'")
    x = np.asarray(x, dtype=np.float64)
    if x.ndim != 2:
        raise ValueError(f"outputs are [images, classes], not of shape {x.shape}")
    return x, NO_OUTPUTS if x.shape[1] == 0 else NO_IMAGES if len(x) == 0 else ""


def _check_labels(y: Array, p: Array, task: str) -> None:
    if y.shape != (p.shape if task == "multilabel" else p.shape[:1]):
        raise ValueError(f"labels {y.shape} do not match outputs {p.shape} of a {task} study")
    allowed = 2 if task == "multilabel" else p.shape[1]
    if not (np.isnan(y) | np.isin(y, np.arange(allowed))).all():
        raise ValueError(f"labels of a {task} study are whole numbers below {allowed} or NaN")
