"""Area under the ROC curve by mid-ranks, per class and as a macro mean, with DeLong errors.

Images may come in clusters, such as patients: errors are then those of sampling clusters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stamp.stats.clusters import Clusters, small_sample, standard_error, summed
from stamp.stats.ranks import mid_ranks

Array = NDArray[np.float64]

MINIMUM = 10


@dataclass(frozen=True, slots=True)
class ClassAurocs:
    """AUROC of each class; ``influence`` [G, C] is what each cluster adds to its sampling error."""

    auroc: Array
    se: Array
    positives: NDArray[np.int64]
    negatives: NDArray[np.int64]
    influence: Array


@dataclass(frozen=True, slots=True)
class Macro:
    """Mean AUROC of the classes that have enough labels; ``skipped`` says why others have not."""

    value: float
    se: float
    used: list[str]
    skipped: dict[str, str]


def auroc(scores: ArrayLike, labels: ArrayLike) -> float:
    """Probability that a positive scores above a negative, ties counting one half.

    ``(sum of the positives' mid-ranks - m (m + 1) / 2) / (m n)`` for m positives and n negatives
    (Mann & Whitney 1947). NaN labels are left out; NaN where one side is empty.
    """
    column, truth = (np.asarray(values, dtype=np.float64)[:, None] for values in (scores, labels))
    return float(class_aurocs(column, truth).auroc[0])


def class_aurocs(
    scores: ArrayLike, labels: ArrayLike, clusters: Clusters | None = None
) -> ClassAurocs:
    """AUROC of each column of ``scores`` [n, C] with labels 0, 1 or NaN (unlabeled).

    The standard error is DeLong's (1988) by placement values (Sun & Xu 2014): with r an image's
    mid-rank among all labeled images and q that among those of its own side, a positive has
    ``v = (r - q) / n``, a negative ``v = 1 - (r - q) / m``, and the AUROC A is the mean of v over
    the positives, or over the negatives. With V the variances of v over the positives and over
    the negatives, ``SE^2 = V_pos / m + V_neg / n``. With ``clusters``, the number of each image's
    cluster from 0, it is Obuchowski's (1997): what images add is summed within clusters.
    """
    s, y = _checked(scores, labels)
    positive, negative = (y == 1).T, (y == 0).T
    m, n = positive.sum(axis=1), negative.sum(axis=1)
    ranks = _ranks_among(s.T, positive | negative)
    own = np.where(positive, _ranks_among(s.T, positive), _ranks_among(s.T, negative))
    with np.errstate(invalid="ignore", divide="ignore"):
        area = (np.where(positive, ranks, 0).sum(axis=1) - m * (m + 1) / 2) / (m * n)
        beyond = (ranks - own) / np.where(positive, n[:, None], m[:, None])
        placement = np.where(positive, beyond, 1 - beyond)
        size = np.where(positive, m[:, None], n[:, None])
        sides = [small_sample(side.T, clusters)[:, None] for side in (positive, negative)]
        influence = (placement - area[:, None]) / size * np.where(positive, *sides)
    influence = summed(np.where(positive | negative, influence, 0).T, clusters)
    return ClassAurocs(area, standard_error(influence), m, n, influence)


def macro(
    found: ClassAurocs,
    classes: Sequence[str],
    minimum: int = MINIMUM,
    without: Mapping[str, str] = MappingProxyType({}),
) -> Macro:
    """Mean over the classes with at least ``minimum`` positives and negatives.

    Those of ``without`` are left out for the reason given there.

    Its standard error takes the correlation of the classes into account, which are scored on the
    same images: with the influence of cluster g on class c,
    ``SE^2 = sum_g (mean_c influence_gc)^2``.
    """
    reasons = [
        shortage(int(m), int(n), minimum) or without.get(name)
        for name, m, n in zip(classes, found.positives, found.negatives, strict=True)
    ]
    skipped = {name: why for name, why in zip(classes, reasons, strict=True) if why}
    kept = [why is None for why in reasons]
    used = [name for name, keep in zip(classes, kept, strict=True) if keep]
    if not used:
        return Macro(float("nan"), float("nan"), used, skipped)
    mean = found.influence[:, kept].mean(axis=1)
    return Macro(float(found.auroc[kept].mean()), float(standard_error(mean)), used, skipped)


def shortage(positives: int, negatives: int, minimum: int) -> str | None:
    """Why a class has too few labels for an AUROC to count, or None where it has enough."""
    if positives + negatives == 0:
        return "not labeled"
    for count, name in ((positives, "positive"), (negatives, "negative")):
        if count < max(1, minimum):
            return f"{count} {name}s, {max(1, minimum)} needed"
    return None


def _ranks_among(scores: Array, mask: NDArray[np.bool_]) -> Array:
    """Mid-ranks along the last axis among the masked values; the others come after all of them."""
    return mid_ranks(np.where(mask, scores, np.inf))


def _checked(scores: ArrayLike, labels: ArrayLike) -> tuple[Array, Array]:
    s, y = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    if s.shape != y.shape or s.ndim != 2:
        raise ValueError(f"scores {s.shape} and labels {y.shape} are not one [n, C] shape")
    if not np.isfinite(s).all():
        raise ValueError("scores are not finite")
    if not (np.isnan(y) | (y == 0) | (y == 1)).all():
        raise ValueError("labels are 0, 1 or NaN")
    return s, y
