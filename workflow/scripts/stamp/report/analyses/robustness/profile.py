"""What a model's stress tests say: its metric, its fall and its stability under each change.

``metric`` is the accuracy or macro-AUROC, ``fall`` the metric on the same images as they are minus
that, ``stability`` STAMP with the pairs (x, changed x). Parts are the changes, ``mean`` over all of
them, and for the metric ``clean``. ``metric:<target>/<domain>`` is the metric over the classes of a
target that has fewer than the study. Intervals are normal ones, by standard errors over clusters of
images (patients); those of the stability count random pairs that share a patient too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from stamp.inference.outputs import present
from stamp.metrics.inputs import OutputSettings, columns_of
from stamp.metrics.stress_tests import (
    NO_CLASS,
    StressOutputs,
    difference,
    interval,
    mean_estimate,
)
from stamp.report.profiles.model_profile import CONSTANT, ProfileInputs
from stamp.report.profiles.rows import entry
from stamp.scoring.bootstrap import PairDistances, renumbered, unit_se
from stamp.scoring.evaluate import Estimate
from stamp.scoring.stamp import stamp

CLEAN, MEAN = "clean", "mean"
Row = dict[str, Any]


def rows(inputs: ProfileInputs) -> Iterator[Row]:
    """The quantities ``metric``, ``fall`` and ``stability`` of every change."""
    manifest = inputs.extra_outputs.manifest
    if manifest is None:
        raise ValueError("a robustness profile is made from stress tests")
    stress = StressOutputs.read(manifest, inputs.source)
    design, level = inputs.design, inputs.design.level
    there, temperature = present(inputs.source.logits), inputs.extra_outputs.temperature
    settings = OutputSettings(design.classes, there, design.task, temperature)
    yield from _metric_rows(stress, settings.of_all_classes, None, inputs, "metric")
    for name, scored in inputs.options["scored"].items():
        own = settings.of_all_classes.merging(scored["merge"])
        for domain, columns in _fewer(scored, own).items():
            yield from _metric_rows(stress, own, columns, inputs, f"metric:{name}/{domain}")
    yield from _stability_rows(stress, settings, inputs, level)


def _fewer(scored: Mapping[str, Any], settings: OutputSettings) -> dict[str, list[int]]:
    """The classes of each domain of a target that are not all of the study's, as numbers.

    Those that only the labels of a target's images tell are left out: a profile reads no target.
    """
    if scored["among"] == "labeled":
        return {}
    found = columns_of(scored, settings, "")
    whole = list(range(len(settings.classes)))
    return {domain: columns for domain, columns in found.items() if sorted(columns) != whole}


def _metric_rows(
    stress: StressOutputs,
    settings: OutputSettings,
    columns: list[int] | None,
    inputs: ProfileInputs,
    quantity: str,
) -> Iterator[Row]:
    """The metric on clean images, under each change and in the mean; falls beside the headline."""
    level = inputs.design.level
    clean, changed = stress.metrics(settings, columns, inputs.options["minimum"])
    every = {CLEAN: clean, **changed}
    if not stress.reason:
        every[MEAN] = mean_estimate(changed.values())
    for part, found in every.items():
        yield _row(quantity, part, found, level, (0.0, 1.0))
        if quantity == "metric" and part != CLEAN:
            yield _row("fall", part, difference(clean, found), level, (-1.0, 1.0))
    for part, why in _missing(stress).items():
        names = (quantity, "fall") if quantity == "metric" else (quantity,)
        yield from (entry(name, part, reason=why) for name in names)


def _missing(stress: StressOutputs) -> dict[str, str]:
    """The parts that a model does not have, with the reason."""
    return {**stress.missing, **({MEAN: stress.reason} if stress.reason else {})}


def _row(
    quantity: str, part: str, found: Estimate, level: float, limits: tuple[float, float]
) -> Row:
    if not np.isfinite(found.value):
        return entry(quantity, part, reason=NO_CLASS, n=found.n)
    low, high = np.clip(interval(found, level), *limits)
    return entry(quantity, part, found.value, low=float(low), high=float(high), n=found.n)


def _stability_rows(
    stress: StressOutputs, settings: OutputSettings, inputs: ProfileInputs, level: float
) -> Iterator[Row]:
    if inputs.constant:
        parts = (*stress.changed, *stress.missing, MEAN)
        yield from (entry("stability", part, reason=CONSTANT) for part in parts)
        return
    distances = stress.squared_distances(settings)
    if not stress.reason:
        distances[MEAN] = np.mean(list(distances.values()), axis=0)
    place = {image: row for row, image in enumerate(inputs.rows["image"])}
    at = np.array([place[image] for image in stress.clean.rows["image"]], dtype=int)
    total = inputs.total
    random = PairDistances(inputs.random_distances(), *inputs.units(inputs.ends("random")))
    for part, values in distances.items():
        (own, far), units = renumbered([PairDistances(values, *inputs.units((at, at))), random])
        value = float(stamp(values.mean(), total))
        low, high = interval(Estimate(value, unit_se(own, far, units), len(at)), level)
        yield entry("stability", part, value, low=low, high=min(high, 1.0), n=len(at))
    for part, why in _missing(stress).items():
        yield entry("stability", part, reason=why)
