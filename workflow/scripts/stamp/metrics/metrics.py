"""All metrics of one model: from its outputs on the source pool, and on each target's domains."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from stamp.config.registries.metrics import metrics_of
from stamp.metrics import source_outputs, target_estimates
from stamp.metrics.from_extra_outputs import ExtraInputs, extra_values, target_distance
from stamp.metrics.inputs import ScaledOutputs, StreamedOutputs, TargetOutputs
from stamp.metrics.value import COLUMNS, DEGENERATE, NO_EXTRA_OUTPUTS, Measured, Value, missing
from stamp.scoring.stamp import probabilities

NO_TARGETS = "the study keeps no target's outputs"
NOT_FINITE = "not a finite number"
NO_IMAGES_KEPT = "a streamed target keeps no images"
AT_ONE = "at T = 1: a streamed target keeps only predictions"


@dataclass(slots=True)
class _Rows:
    """The rows of a table of metrics; ``broken`` is why no metric of the model counts, if so."""

    broken: str
    rows: list[dict[str, Any]] = field(default_factory=list)

    def add(
        self, name: str, found: Measured, view: str | None = None, domain: str | None = None
    ) -> None:
        value = missing(self.broken) if self.broken else found.value
        number = float(value.value) if np.isfinite(value.value) else None
        why = value.reason or (NOT_FINITE if number is None else None)
        row = {"metric": name, "view": view, "domain": domain, "value": number}
        self.rows.append({**row, "n": found.n, "reason": why})


def metric_table(
    source: ScaledOutputs,
    targets: Mapping[str, TargetOutputs],
    extra: ExtraInputs | None = None,
    wanted: Sequence[str] | None = None,
) -> pl.DataFrame:
    """One row per metric; for an estimate, one row per domain of each target.

    Estimates are over the classes that a domain is scored on, fitted on the source images of these
    classes. A metric that can't be had, and every metric of a degenerate model, has a row with the
    reason.
    """
    known = [one for one in metrics_of(source.task) if wanted is None or one.name in wanted]
    rows = _Rows(DEGENERATE if extra is not None and extra.degenerate else "")
    _add_source(rows, source, extra, [one.name for one in known if not one.of_target])
    estimates = [one.name for one in known if one.of_target]
    for name in estimates if not targets else ():
        rows.add(name, Measured(missing(NO_TARGETS), 0))
    for view, target in targets.items():
        for domain, member in target.parts():
            found = _estimates(source, target, domain, member)
            for name in estimates:
                if name in found:
                    measured = Measured(found[name], int(member.sum()))
                elif isinstance(target.outputs, StreamedOutputs):
                    measured = Measured(missing(NO_IMAGES_KEPT), 0)
                elif extra is None or rows.broken:
                    measured = Measured(missing(NO_EXTRA_OUTPUTS), 0)
                else:
                    measured = target_distance(extra, view, member)
                rows.add(name, measured, view, domain)
    return pl.DataFrame(rows.rows, schema=COLUMNS)


def _add_source(
    rows: _Rows, source: ScaledOutputs, extra: ExtraInputs | None, names: Sequence[str]
) -> None:
    """The metrics that need no target."""
    n = len(source.p)
    found = {name: Measured(value, n) for name, value in source_values(source).items()}
    if extra is not None and not rows.broken:
        found |= extra_values(extra, names)
    for name in names:
        rows.add(name, found.get(name, Measured(missing(NO_EXTRA_OUTPUTS), 0)))


def _estimates(
    source: ScaledOutputs, target: TargetOutputs, domain: str, member: np.ndarray
) -> dict[str, Value]:
    """The estimates for one domain of a target, over the classes that it is scored on."""
    chosen = target.chosen(domain)
    if isinstance(target.outputs, StreamedOutputs):
        return streamed_values(source.columns(chosen), target.outputs.part(member))
    return target_values(source.columns(chosen), target.outputs.part(member).columns(chosen))


def source_values(source: ScaledOutputs) -> dict[str, Value]:
    """Every metric that needs only the outputs on the source."""
    p, z, task = source.p, source.logits, source.task
    found: dict[str, Callable[[], Value]] = {
        "entropy": lambda: source_outputs.entropy(p, task),
        "confidence": lambda: source_outputs.mean_confidence(p, task),
        "ece": lambda: source_outputs.ece(p, source.labels, task),
        "prediction_std": lambda: source_outputs.prediction_std(p),
        "nuclear_norm": lambda: source_outputs.nuclear_norm(p, task),
        "energy": lambda: source_outputs.energy(z, task),
        "mde": lambda: source_outputs.mde(z, task),
        "mano": lambda: source_outputs.mano(z, task),
        "margin": lambda: source_outputs.margin(p, task),
    }
    if task == "multilabel":
        found["confidence_two_sided"] = lambda: source_outputs.mean_confidence_two_sided(p)
    return {name: measure() for name, measure in found.items()}


def target_values(source: ScaledOutputs, target: ScaledOutputs) -> dict[str, Value]:
    """Every estimate of a target from its unlabeled images."""
    p, labels, there = source.p, source.labels, target.p
    if source.task == "multiclass":
        return {
            "atc_mc": target_estimates.atc_multiclass(p, labels, there, score="confidence"),
            "atc_ne": target_estimates.atc_multiclass(p, labels, there, score="negative_entropy"),
            "doc": target_estimates.doc(p, labels, there),
        }
    return {
        "atc_mc": target_estimates.atc_multilabel(p, labels, there),
        "doc": target_estimates.doc(p, labels, there),
        "cbpe_auroc": target_estimates.cbpe_auroc(p, labels, there),
    }


def streamed_values(source: ScaledOutputs, target: StreamedOutputs) -> dict[str, Value]:
    """Every estimate of a streamed target (multiclass), from its predictions.

    Predictions were written before any temperature was known, so both sides are taken at T = 1.
    """
    p = probabilities(source.logits, "multiclass")
    known = ~np.isnan(source.labels)
    right = p.argmax(axis=1)[known] == source.labels[known]
    sure = target_estimates.confidence(p[known])
    unsure = target_estimates.negative_entropy(p[known])
    gap = float(target.confidence.mean() - sure.mean()) if known.any() else np.nan
    found = {
        "atc_mc": target_estimates.atc(sure, right, target.confidence),
        "atc_ne": target_estimates.atc(unsure, right, -target.entropy),
        "doc": Value(float(right.mean()) + gap if known.any() else np.nan),
    }
    return {name: Value(one.value, one.reason or AT_ONE) for name, one in found.items()}
