"""The record of a model's calibration: its temperature, and what each exclusion rule says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from stamp.data.views import labels
from stamp.inference.outputs import Outputs
from stamp.scoring.calibrate import RULES, exclusion, fit_temperature
from stamp.scoring.evaluate import evaluate


def calibration_record(
    held_out: Outputs,
    task: str,
    classes: Sequence[str],
    rules: Mapping[str, float],
    minimum: int,
    model: str,
    where: str,
) -> dict[str, Any]:
    """The fitted temperature of a model and its performance on the calibration images.

    ``excluded`` has, for each rule, why it sets the model apart, or None. ``rules`` are the
    thresholds.
    """
    truth = labels(held_out.rows, task, classes, where)
    fitted = fit_temperature(held_out.logits, truth, task)
    domains = held_out.rows["domain"]
    table = evaluate(held_out.logits, truth, domains, task, classes, minimum)
    performance = table["value"][0]
    known = float("nan") if performance is None else performance
    excluded = {
        rule: exclusion(rule, fitted.value, known, task, len(classes), **rules) for rule in RULES
    }
    return {**asdict(fitted), "model": model, "performance": performance, "excluded": excluded}
