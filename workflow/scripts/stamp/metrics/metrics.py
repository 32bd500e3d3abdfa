"""All metrics of one model: from its outputs on the source pool, and on each target's domains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from stamp.config.registries.metrics import METRICS, Metric, metrics_of
from stamp.metrics import from_outputs, target_estimates
from stamp.metrics.from_extra_outputs import (
    DomainOutputs,
    ExtraInputs,
    extra_values,
    target_value,
)
from stamp.metrics.inputs import ScaledOutputs, StreamedOutputs, TargetOutputs
from stamp.metrics.of_embeddings import transferability
from stamp.metrics.value import (
    COLUMNS,
    DEGENERATE,
    NO_EXTRA_OUTPUTS,
    NO_LABELS,
    Measured,
    Value,
    missing,
)

NO_TARGETS = "the study keeps no target's outputs"
NOT_FINITE = "not a finite number"
NO_IMAGES_KEPT = "a streamed target keeps no images"
SAMPLED = "at T = {:.3g} from {} images, corrected by all images at T = 1"


@dataclass(slots=True)
class MetricRows:
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

    @property
    def table(self) -> pl.DataFrame:
        """The rows as a table."""
        return pl.DataFrame(self.rows, schema=COLUMNS)


def metric_table(
    source: ScaledOutputs,
    targets: Mapping[str, TargetOutputs],
    extra: ExtraInputs | None = None,
    wanted: Sequence[str] | None = None,
) -> pl.DataFrame:
    """One row per metric; for one of a target, one row per domain of each target.

    Estimates are over the classes that a domain is scored on, fitted on the source images of these
    classes. The target's labels count in the metrics of a labeled target alone. A metric that can't
    be had, and every metric of a degenerate model, has a row with the reason. Those of stress tests
    have a table of their own, see ``metrics.stress_tests``.
    """
    known = metrics_of(source.task, optional=wanted is not None, stress_tests=False)
    known = [one for one in known if wanted is None or one.name in wanted]
    rows = MetricRows(DEGENERATE if extra is not None and extra.degenerate else "")
    _add_source(rows, source, extra, [one for one in known if not one.of_target])
    names = [one.name for one in known if one.of_target]
    for name in names if not targets else ():
        rows.add(name, Measured(missing(NO_TARGETS), 0))
    for view, target in targets.items():
        for domain, member in target.where.parts():
            found = domain_values(source, target, domain, member)
            for name in names:
                if name in found:
                    measured = found[name]
                elif isinstance(target.outputs, StreamedOutputs):
                    measured = Measured(missing(NO_IMAGES_KEPT), 0)
                elif extra is None or rows.broken:
                    measured = Measured(missing(NO_EXTRA_OUTPUTS), 0)
                else:
                    there = DomainOutputs(
                        _own_outputs(source, target, domain, target.outputs),
                        target.labeled(domain),
                    )
                    measured = target_value(name, extra, view, member, there)
                rows.add(name, measured, view, domain)
    return rows.table


def in_order(table: pl.DataFrame) -> pl.DataFrame:
    """The rows in the order of the registry of metrics; those of one metric stay as they are."""
    place = {one.name: number for number, one in enumerate(METRICS)}
    return table.sort(pl.col("metric").replace_strict(place), maintain_order=True)


def _add_source(
    rows: MetricRows, source: ScaledOutputs, extra: ExtraInputs | None, known: Sequence[Metric]
) -> None:
    """The metrics that need no target."""
    n = len(source.p)
    found = {name: Measured(value, n) for name, value in source_values(source).items()}
    if extra is not None and not rows.broken:
        found |= extra_values(extra, [one.name for one in known])
    for one in known:
        why = one.unavailable or NO_EXTRA_OUTPUTS
        rows.add(one.name, found.get(one.name, Measured(missing(why), 0)))


def domain_values(
    source: ScaledOutputs, target: TargetOutputs, domain: str, member: np.ndarray
) -> dict[str, Measured]:
    """The estimates for one domain of a target, and the metrics of its outputs alone."""
    chosen = target.where.chosen(domain)
    fitted = (target.source or source).columns(chosen)
    outputs = target.outputs.part(member)
    if isinstance(outputs, StreamedOutputs):
        sample = outputs.sample.columns(chosen)
        estimates = streamed_values(fitted, outputs, sample)
        alone = unlabeled_values(sample)
        images = len(outputs.rows)
    else:
        estimates = target_values(fitted, outputs.columns(chosen))
        alone = unlabeled_values(_own_outputs(source, target, domain, outputs))
        images = int(member.sum())
        alone["leep_target"] = _labeled_leep(target.labeled(domain), member)
    found = {name: Measured(value, int(member.sum())) for name, value in estimates.items()}
    return found | {name: Measured(value, images) for name, value in alone.items()}


def _labeled_leep(labeled: ScaledOutputs | None, member: np.ndarray) -> Value:
    if labeled is None:
        return missing(NO_LABELS)
    return transferability.leep(labeled.p[member], labeled.labels[member], labeled.task)


def _own_outputs(
    source: ScaledOutputs, target: TargetOutputs, domain: str, outputs: ScaledOutputs
) -> ScaledOutputs:
    """The outputs that a model gives as it is used on a domain.

    Multiclass: among the classes that the domain is scored on. Multilabel: of all classes that it
    has, without merged ones; a single class would have no nuclear norm to speak of.
    """
    if source.task == "multiclass":
        return outputs.columns(target.where.chosen(domain))
    return outputs if target.source is None else outputs.columns(range(source.p.shape[1]))


def source_values(source: ScaledOutputs) -> dict[str, Value]:
    """Every metric that needs only the outputs on the source."""
    p, task = source.p, source.task
    found: dict[str, Value] = {
        "entropy": from_outputs.entropy(p, task),
        "confidence": from_outputs.mean_confidence(p, task),
        "ece": from_outputs.ece(p, source.labels, task),
        "prediction_std": from_outputs.prediction_std(p),
        "margin": from_outputs.margin(p, task),
        "leep": transferability.leep(p, source.labels, task),
    }
    if task == "multilabel":
        found["confidence_two_sided"] = from_outputs.mean_confidence_two_sided(p)
    return found | {f"{name}_source": value for name, value in unlabeled_values(source).items()}


def unlabeled_values(outputs: ScaledOutputs) -> dict[str, Value]:
    """The metrics that their authors define on the outputs for a target's unlabeled images."""
    p, z, task = outputs.p, outputs.logits, outputs.task
    return {
        "nuclear_norm": from_outputs.nuclear_norm(p, task),
        "energy": from_outputs.energy(z, task),
        "mde": from_outputs.mde(z, task),
        "mano": from_outputs.mano(z, task),
    }


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


def streamed_values(
    source: ScaledOutputs, target: StreamedOutputs, sample: ScaledOutputs
) -> dict[str, Value]:
    """Every estimate of a streamed target (multiclass), at the source's temperature.

    Where T is not 1, it is that of the sample, plus the difference that all images make to it at
    T = 1: ``e_T(sample) + e_1(all) - e_1(sample)``, the difference estimator of survey sampling.
    """
    one = source.at(1.0)
    every = _from_predictions(one, target)
    if source.temperature == 1.0:
        return every
    fitted = target_values(source, sample)
    if len(sample.p) == len(target.predicted):
        return fitted
    plain = target_values(one, sample.at(1.0))
    note = SAMPLED.format(source.temperature, len(sample.p))
    return {
        name: Value(fitted[name].value + every[name].value - plain[name].value, each.reason or note)
        for name, each in fitted.items()
    }


def _from_predictions(source: ScaledOutputs, target: StreamedOutputs) -> dict[str, Value]:
    """The estimates of a streamed target from its predictions, all at T = 1."""
    known = ~np.isnan(source.labels)
    p = source.p[known]
    right = p.argmax(axis=1) == source.labels[known]
    sure, unsure = target_estimates.confidence(p), target_estimates.negative_entropy(p)
    gap = float(target.confidence.mean() - sure.mean()) if known.any() else np.nan
    return {
        "atc_mc": target_estimates.atc(sure, right, target.confidence),
        "atc_ne": target_estimates.atc(unsure, right, -target.entropy),
        "doc": Value(float(right.mean()) + gap) if known.any() else missing(NO_LABELS),
    }
