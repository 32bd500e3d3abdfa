"""The temperature of a model from labeled images that it was not trained on."""

from __future__ import annotations

from typing import Any

from stamp.api import arrays
from stamp.scoring import calibrate
from stamp.scoring.calibrate import Temperature


def fit_temperature(logits: Any, labels: Any, task: str = "multiclass") -> Temperature:
    """The temperature in [0.05, 20] that minimises the negative log likelihood (Guo et al. 2017).

    Labels are class numbers [n] or, of a multilabel task, 0 and 1 [n, classes]; NaN is unknown.
    ``bound`` says where the value is no optimum. See ``stamp.scoring.calibrate``.
    """
    return calibrate.fit_temperature(arrays.outputs(logits), arrays.numbers(labels), task)
