"""What stress tests say of one model: its metric and its stability under each change.

The metric under a change is the accuracy, or the macro-AUROC, on the changed images; the stability
is STAMP with the pairs (x, changed x) in the place of semantic ones, and needs no label. Both are
over the same images for all changes, so differences from clean images are paired. Per-image logits
are kept: any weighting of classes can be had from :class:`StressOutputs`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist

import numpy as np
import polars as pl

from stamp.core.artifacts import read_json
from stamp.data.views import labels as read_labels
from stamp.inference.extra_outputs.manifest import NotAvailable, read_output
from stamp.inference.outputs import Outputs, merged, merged_labels, present
from stamp.metrics.inputs import OutputSettings, TargetDomains, TargetFiles, columns_of
from stamp.metrics.metrics import MetricRows
from stamp.metrics.value import Measured, Value, missing
from stamp.scoring.evaluate import Estimate, LabeledImages, clusters, predictions
from stamp.scoring.stamp import probabilities, stamp
from stamp.stats.auroc import MINIMUM, class_aurocs, macro
from stamp.stats.clusters import standard_error

METRIC, STABILITY = "stress_metric", "stress_stability"
NO_CLASS = "no class has enough labels among these images"
NO_CHANGE = "no outputs on changed images were made"


@dataclass(frozen=True, slots=True)
class StressOutputs:
    """A model's logits on labeled source images as they are, and on the same ones changed.

    ``missing`` are the changes that it has no outputs under, with the reason.
    """

    clean: Outputs
    changed: Mapping[str, Outputs]
    missing: Mapping[str, str]

    @classmethod
    def read(cls, manifest: str | Path, source: Outputs) -> StressOutputs:
        """Those that a manifest of the rule ``stress_tests`` lists; ``source`` are of the view."""
        ids, changed, gone = source.rows["image"].to_list(), {}, {}
        rows = np.zeros(0, dtype=int)
        for name in read_json(manifest)["extra_outputs"]:
            try:
                found = read_output(manifest, name, ids)
            except NotAvailable as reason:
                gone[name] = str(reason)
                continue
            rows = found["rows"]
            changed[name] = Outputs(source.rows[rows], found["logits"], source.parameters)
        clean = Outputs(source.rows[rows], source.logits[rows], source.parameters)
        return cls(clean, changed, gone)

    @property
    def reason(self) -> str:
        """Why there is no mean over all changes, if so."""
        for name, why in self.missing.items():
            return f"{name}: {why}"
        return "" if self.changed else NO_CHANGE

    def squared_distances(self, settings: OutputSettings) -> dict[str, np.ndarray]:
        """How far each image's outputs move, ``||p(x) - p(changed x)||^2``, under each change."""
        p = _outputs(self.clean, settings)
        return {
            name: ((_outputs(one, settings) - p) ** 2).sum(axis=1)
            for name, one in self.changed.items()
        }

    def metrics(
        self,
        settings: OutputSettings,
        columns: Sequence[int] | None = None,
        minimum: int = MINIMUM,
    ) -> tuple[Estimate, dict[str, Estimate]]:
        """The metric on the images as they are, and under each change; see ``labeled_metric``."""
        clean = labeled_metric(self.clean, settings, columns, minimum)
        return clean, {
            name: labeled_metric(one, settings, columns, minimum)
            for name, one in self.changed.items()
        }


def labeled_metric(
    found: Outputs,
    settings: OutputSettings,
    columns: Sequence[int] | None = None,
    minimum: int = MINIMUM,
) -> Estimate:
    """Top-1 accuracy or macro-AUROC, with the influence of each cluster of images on it.

    ``columns`` are numbers of classes among ``settings.names``, merged ones last; None for those of
    the study. Multilabel: the mean over these classes, as far as the model has an output and the
    images ``minimum`` labels of 0 and of 1. Multiclass: over the images of these classes,
    predictions taken among them; a class without an output is never predicted.
    """
    classes, rows = settings.classes, found.rows
    truth = read_labels(rows, settings.task, classes, "stress tests")
    logits = merged(found.logits.astype(np.float64), classes, settings.merge)
    among = np.arange(len(classes)) if columns is None else np.asarray(columns, dtype=np.int64)
    groups = clusters(rows) if len(rows) else None
    if settings.task == "multiclass":
        images = LabeledImages(truth, pl.repeat(None, len(rows), eager=True), groups)
        z = np.where(np.isnan(logits), -np.inf, logits)
        right = predictions(z, among) == truth if len(among) else np.zeros(len(truth), dtype=bool)
        return images.share(right, np.isin(truth, among))
    whole = merged_labels(truth, classes, list(settings.merge.values()))
    there = among[present(logits)[among]] if len(rows) else among[:0]
    every = np.concatenate([truth, whole], axis=1)[:, there]
    found_aurocs = class_aurocs(logits[:, there], every, groups)
    names = [settings.names[number] for number in there]
    used = macro(found_aurocs, names, minimum).used
    kept = [name in used for name in names]
    labeled = int((~np.isnan(every)).any(axis=1).sum())
    return _mean_class(found_aurocs.auroc[kept], found_aurocs.influence[:, kept], labeled)


def _mean_class(values: np.ndarray, influence: np.ndarray, labeled: int) -> Estimate:
    if not len(values):
        return Estimate(float("nan"), float("nan"), labeled)
    mean = influence.mean(axis=1)
    return Estimate(float(values.mean()), float(standard_error(mean)), labeled, mean)


def mean_estimate(estimates: Iterable[Estimate]) -> Estimate:
    """The mean of estimates on the same images; its error counts what they have in common."""
    every = list(estimates)
    value, n = float(np.mean([one.value for one in every])), every[0].n
    known = [one.influence for one in every if one.influence is not None]
    if len(known) < len(every):
        return Estimate(value, float("nan"), n)
    influence = np.mean(known, axis=0)
    return Estimate(value, float(standard_error(influence)), n, influence)


def difference(one: Estimate, other: Estimate) -> Estimate:
    """One estimate minus another on the same images, with the error of the paired difference."""
    if one.influence is None or other.influence is None:
        return Estimate(one.value - other.value, float("nan"), one.n)
    influence = one.influence - other.influence
    return Estimate(one.value - other.value, float(standard_error(influence)), one.n, influence)


def interval(found: Estimate, level: float) -> tuple[float, float]:
    """The normal interval of an estimate, by its clustered standard error."""
    half = NormalDist().inv_cdf((1 + level) / 2) * found.se
    return found.value - half, found.value + half


def stress_metric(
    stress: StressOutputs,
    settings: OutputSettings,
    columns: Sequence[int] | None = None,
    minimum: int = MINIMUM,
) -> Value:
    """The mean over all changes of accuracy or macro-AUROC, over some classes."""
    if stress.reason:
        return missing(stress.reason)
    value = mean_estimate(stress.metrics(settings, columns, minimum)[1].values()).value
    return missing(NO_CLASS) if np.isnan(value) else Value(value)


def stress_stability(stress: StressOutputs, settings: OutputSettings, total: float) -> Value:
    """``1 - SV / AV``, with SV the mean over all changes and images of ``||p(x) - p(c(x))||^2``.

    ``total`` is STAMP's own AV.
    """
    if stress.reason:
        return missing(stress.reason)
    moved = np.mean([one.mean() for one in stress.squared_distances(settings).values()])
    return Value(float(stamp(moved, total)))


def _outputs(found: Outputs, settings: OutputSettings) -> np.ndarray:
    z = found.logits[:, settings.there]
    return probabilities(z, settings.task, settings.temperature)


@dataclass(frozen=True, slots=True)
class StressTable:
    """What the table of metrics has of a model's stress tests.

    ``total`` is STAMP's AV, ``broken`` the reason why no metric of the model counts, if so.
    """

    outputs: StressOutputs
    settings: OutputSettings
    total: float
    broken: str = ""
    minimum: int = MINIMUM

    def rows(
        self, targets: Mapping[str, TargetFiles], domains: Mapping[str, TargetDomains]
    ) -> pl.DataFrame:
        """The stability, and the metric over the classes of every domain of every target.

        A study without targets has the metric over all classes.
        """
        found, n = MetricRows(self.broken), len(self.outputs.clean.rows)
        stability = stress_stability(self.outputs, self.settings, self.total)
        found.add(STABILITY, Measured(stability, n))
        if not targets:
            plain = stress_metric(self.outputs, self.settings, minimum=self.minimum)
            found.add(METRIC, Measured(plain, n))
        for view, files in targets.items():
            own = self.settings.of_all_classes.merging(files.scored["merge"])
            where = TargetDomains(domains[view].domains, columns_of(files.scored, own, files.view))
            known: dict[tuple[int, ...] | None, Value] = {}
            for domain, _ in where.parts():
                chosen = where.chosen(domain)
                key = None if chosen is None else tuple(chosen)
                if key not in known:
                    known[key] = stress_metric(self.outputs, own, chosen, self.minimum)
                found.add(METRIC, Measured(known[key], n), view, domain)
        return found.table
