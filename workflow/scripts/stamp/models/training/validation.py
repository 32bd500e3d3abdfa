"""What chooses an epoch or a penalty: one number on the labeled validation images."""

from __future__ import annotations

import numpy as np

from stamp.core.errors import UserError
from stamp.stats.auroc import class_aurocs, macro


def metric_of(logits: np.ndarray, labels: np.ndarray) -> float:
    """Accuracy for labels [n]; for [n, C] the mean AUROC of the classes with both labels.

    NaN labels are left out. Every class that has a positive and a negative counts, since the same
    classes count each time and only the order of the values matters.
    """
    if labels.ndim == 1:
        known = ~np.isnan(labels)
        return float((logits[known].argmax(axis=1) == labels[known]).mean())
    names = [str(number) for number in range(labels.shape[1])]
    return macro(class_aurocs(logits, labels), names, minimum=1).value


def check_validation(labels: np.ndarray) -> None:
    """Refuse validation labels that have no metric."""
    if np.isnan(labels).all():
        raise UserError("no validation image has a label")
    if labels.ndim == 2 and not ((labels == 1).any(axis=0) & (labels == 0).any(axis=0)).any():
        raise UserError("no class has both a positive and a negative validation image")
