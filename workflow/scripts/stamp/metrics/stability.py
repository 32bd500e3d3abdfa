"""How stable a model's outputs are under augmentation, dropout and noise.

``p`` are probabilities [n, C] on the images as they are; those on augmented images have the same
rows. All is float64, and the order of the images does not matter.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stamp.metrics.value import NO_IMAGES, NO_OUTPUTS, Value, missing
from stamp.scoring.stamp import stamp

Array = NDArray[np.float64]


def mc_dropout(samples: ArrayLike, task: str) -> Value:
    """``mean_i sum_c Var_k(p_ick)`` over K passes with dropout (Gal and Ghahramani 2016), ddof 1.

    ``samples`` are [K, n, C]. Of a multilabel model the sum is divided by C.
    """
    value = _variance(samples)
    if task == "multilabel" and np.isfinite(value.value):
        return Value(value.value / np.shape(samples)[2])
    return value


def tta_flip(p: ArrayLike, flipped: ArrayLike) -> Value:
    """``mean_i ||p(x) - p(flipped x)||^2``.

    A mirror image of a chest is no chest, so for radiographs a flip is not label-preserving.
    """
    p, q, reason = _both(p, flipped)
    return missing(reason) if reason else Value(float(((p - q) ** 2).sum(axis=1).mean()))


def tta_multi(views: ArrayLike) -> Value:
    """``mean_i sum_c Var_k(p_ick)`` over views of an image, itself among them; [V, n, C], ddof 1.

    Its negative is the consistency under test-time augmentation.
    """
    return _variance(views)


def augmented_stamp(p: ArrayLike, augmented: ArrayLike, total: float) -> Value:
    """``1 - SV / (AV + 1e-8)`` with SV of the pairs (x, a(x)) and STAMP's own AV.

    1 where the augmentation makes no difference. ``total`` is the AV of the study's random pairs.
    """
    moved = tta_flip(p, augmented)
    return moved if np.isnan(moved.value) else Value(float(stamp(moved.value, total)))


def gradcam_dice(dice: ArrayLike) -> Value:
    """Mean overlap of the most important fifth of the pixels, of an image and of its mirror image.

    ``dice`` [n] are ``2 |A and B| / (|A| + |B|)`` of each image; NaN where a map is flat.
    """
    values = np.asarray(dice, dtype=np.float64)
    known = np.isfinite(values)
    if not known.any():
        return missing("every map is flat" if len(values) else NO_IMAGES)
    note = f"over {int(known.sum())} of {len(values)} images: the maps of others are flat"
    return Value(float(values[known].mean()), "" if known.all() else note)


def lipschitz(p: ArrayLike, perturbed: ArrayLike, norms: ArrayLike) -> Value:
    """``mean_i max_k ||p(x + d_k) - p(x)|| / ||d_k||``, with ``perturbed`` [K, n, C], norms [K, n].

    A lower bound of the local Lipschitz constant in the model's input space.
    """
    p, q = np.asarray(p, dtype=np.float64), np.asarray(perturbed, dtype=np.float64)
    if q.size == 0:
        return missing(NO_IMAGES)
    ratio = np.linalg.norm(q - p, axis=2) / np.asarray(norms, dtype=np.float64)
    return Value(float(ratio.max(axis=0).mean()))


def _both(p: ArrayLike, changed: ArrayLike) -> tuple[Array, Array, str]:
    p, q = (np.asarray(values, dtype=np.float64) for values in (p, changed))
    if p.shape != q.shape or p.ndim != 2:
        raise ValueError(f"outputs {p.shape} and {q.shape} are not of the same images and classes")
    return p, q, NO_OUTPUTS if p.shape[1] == 0 else NO_IMAGES if len(p) == 0 else ""


def _variance(samples: ArrayLike) -> Value:
    """The variance over the first axis, summed over classes, mean over images."""
    p = np.asarray(samples, dtype=np.float64)
    if p.ndim != 3:
        raise ValueError(f"outputs of several passes are [passes, n, C], not of shape {p.shape}")
    if p.shape[0] < 2 or 0 in p.shape[1:]:
        return missing(NO_IMAGES if p.shape[0] >= 2 else "fewer than 2 passes")
    return Value(float(p.var(axis=0, ddof=1).sum(axis=1).mean()))
