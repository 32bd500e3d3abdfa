"""All metrics of one model: from its outputs on the source pool, and on each target's domains."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl

from stamp.config.metrics import COLUMNS, metrics_of
from stamp.data.views import labels as read_labels
from stamp.data.views import scored_classes
from stamp.inference.outputs import Outputs
from stamp.metrics import estimators, outputs
from stamp.metrics.further import (
    DEGENERATE,
    NO_EXTRA_OUTPUTS,
    Further,
    further_values,
    target_distance,
)
from stamp.metrics.outputs import Value
from stamp.scoring.stamp import probabilities

NO_TARGETS = "the study keeps no target's outputs"
NOT_FINITE = "not a finite number"
NO_PICTURES = "of a streamed target no pictures are kept"
AT_ONE = "at T = 1: of a streamed target only records are kept"


@dataclass(frozen=True, slots=True)
class Material:
    """A model's outputs on some images: logits and probabilities of some classes, and labels.

    Labels are class numbers [n] or 0, 1, NaN [n, C]; of a target they are never looked at.
    """

    logits: np.ndarray
    p: np.ndarray
    labels: np.ndarray

    @classmethod
    def of(cls, logits: np.ndarray, labels: np.ndarray, task: str, temperature: float) -> Material:
        """The material of raw logits at a temperature."""
        return cls(logits, probabilities(logits, task, temperature), labels)

    @classmethod
    def read(
        cls,
        found: Outputs,
        classes: Sequence[str],
        there: np.ndarray,
        task: str,
        temperature: float,
    ) -> Material:
        """The material of a view's outputs, over the classes that the model has an output for.

        A multiclass model that lacks classes gets no labels: without the images of those classes
        what needs labels would look too good.
        """
        truth = read_labels(found.rows, task, classes, "metrics")
        if task == "multilabel":
            truth = truth[:, there]
        elif not there.all():
            truth = np.full(len(truth), np.nan)
        return cls.of(found.logits[:, there], truth, task, temperature)

    def columns(self, chosen: Sequence[int], task: str, temperature: float) -> Material:
        """The same for some classes only; a softmax is renormalised over them.

        In the multiclass case the images of other classes have no label any more.
        """
        if task == "multilabel":
            labels = self.labels[:, list(chosen)]
        else:
            number = np.full(self.logits.shape[1], np.nan)
            number[list(chosen)] = np.arange(len(chosen))
            known = ~np.isnan(self.labels)
            labels = np.full(len(self.labels), np.nan)
            labels[known] = number[self.labels[known].astype(int)]
        return Material.of(self.logits[:, list(chosen)], labels, task, temperature)


def columns_of(
    target: Mapping[str, Any],
    classes: Sequence[str],
    there: np.ndarray,
    task: str,
    view: str | Path,
) -> dict[str, list[int]]:
    """Which outputs estimates for a target are made from, by domain or for ``all``; else none.

    The numbers are places among the classes that a model has an output for. Multilabel: the
    classes that a domain is labeled for. Multiclass: those that predictions are taken among.
    """
    place = dict(zip(np.flatnonzero(there).tolist(), range(len(classes)), strict=False))
    if task == "multilabel":
        number = {name: place.get(at) for at, name in enumerate(classes)}
        return {
            domain: [at for name in wanted if (at := number.get(name)) is not None]
            for domain, wanted in target["classes"].items()
        }
    if target["among"] is None:
        return {}
    chosen = scored_classes(target["among"], classes, view).tolist()
    return {"all": [place[at] for at in chosen if at in place]}


def source_values(source: Material, task: str) -> dict[str, Value]:
    """Every metric that needs the source alone."""
    p, z = source.p, source.logits
    found: dict[str, Callable[[], Value]] = {
        "entropy": lambda: outputs.entropy(p, task),
        "confidence": lambda: outputs.mean_confidence(p, task),
        "ece": lambda: outputs.ece(p, source.labels, task),
        "prediction_std": lambda: outputs.prediction_std(p),
        "nuclear_norm": lambda: outputs.nuclear_norm(p, task),
        "energy": lambda: outputs.energy(z, task),
        "mde": lambda: outputs.mde(z, task),
        "mano": lambda: outputs.mano(z, task),
        "margin": lambda: outputs.margin(p, task),
    }
    if task == "multilabel":
        found["confidence_two_sided"] = lambda: outputs.mean_confidence_two_sided(p)
    return {name: measure() for name, measure in found.items()}


def target_values(source: Material, target: Material, task: str) -> dict[str, Value]:
    """Every estimate of a target from its unlabeled images."""
    known = (source.p, source.labels, target.p)
    if task == "multiclass":
        return {
            "atc_mc": estimators.atc_multiclass(*known, score="confidence"),
            "atc_ne": estimators.atc_multiclass(*known, score="negative_entropy"),
            "doc": estimators.doc(*known),
        }
    return {
        "atc_mc": estimators.atc_multilabel(*known),
        "doc": estimators.doc(*known),
        "cbpe_auroc": estimators.cbpe_auroc(*known),
    }


@dataclass(frozen=True, slots=True)
class Records:
    """What is kept of a streamed target: the largest probability and the entropy of each image."""

    confidence: np.ndarray
    entropy: np.ndarray

    def part(self, member: np.ndarray) -> Records:
        """Those of some images."""
        return Records(self.confidence[member], self.entropy[member])


def record_values(source: Material, target: Records) -> dict[str, Value]:
    """Every estimate of a streamed target (multiclass), from its records.

    Records were written before any temperature was known, so both sides are taken at T = 1.
    """
    p = probabilities(source.logits, "multiclass")
    known = ~np.isnan(source.labels)
    right = p.argmax(axis=1)[known] == source.labels[known]
    sure, unsure = estimators.confidence(p[known]), estimators.negative_entropy(p[known])
    gap = float(target.confidence.mean() - sure.mean()) if known.any() else np.nan
    found = {
        "atc_mc": estimators.atc(sure, right, target.confidence),
        "atc_ne": estimators.atc(unsure, right, -target.entropy),
        "doc": Value(float(right.mean()) + gap if known.any() else np.nan),
    }
    return {name: Value(one.value, one.reason or AT_ONE) for name, one in found.items()}


def parts_of(domains: pl.Series) -> Iterator[tuple[str, np.ndarray]]:
    """The whole of a view, then its domains where there are several."""
    yield "all", np.ones(len(domains), dtype=bool)
    names = sorted(domains.drop_nulls().unique().to_list())
    if len(names) > 1:
        of_row = domains.to_numpy()
        for name in names:
            yield name, of_row == name


def metric_rows(
    source: Material,
    targets: Mapping[str, tuple[Material, pl.Series]],
    classes: Mapping[str, Mapping[str, Sequence[int]]],
    task: str,
    temperature: float,
    further: Further | None = None,
    wanted: Sequence[str] | None = None,
    streamed: Mapping[str, tuple[Records, pl.Series]] = MappingProxyType({}),
) -> pl.DataFrame:
    """One row a metric, and for an estimate a row a domain of each target.

    ``classes`` gives the columns that a domain (or ``all``) of a target is scored on; estimates
    are then over these, fitted on the source images of these classes. ``streamed`` are targets of
    which there are only records. A metric that can't be had, and every metric of a degenerate
    model, has a row with the reason.
    """
    known = [one for one in metrics_of(task) if wanted is None or one.name in wanted]
    broken = DEGENERATE if further is not None and further.degenerate else ""
    rows: list[dict[str, Any]] = []

    def add(name: str, found: Value, n: int, view: str | None, domain: str | None) -> None:
        value, why = (np.nan, broken) if broken else (found.value, found.reason)
        number = float(value) if np.isfinite(value) else None
        row = {"metric": name, "view": view, "domain": domain, "value": number}
        rows.append({**row, "n": n, "reason": why or (NOT_FINITE if number is None else None)})

    own = [one.name for one in known if not one.of_target]
    found = {name: (value, len(source.p)) for name, value in source_values(source, task).items()}
    if further is not None and not broken:
        found |= further_values(further, own)
    for name in own:
        add(name, *found.get(name, (Value(np.nan, NO_EXTRA_OUTPUTS), 0)), None, None)
    estimates = [one.name for one in known if one.of_target]

    def add_all(view: str, domain: str, values: Mapping[str, Value], member: np.ndarray) -> None:
        for name in estimates:
            if name in values:
                add(name, values[name], int(member.sum()), view, domain)
            elif view in streamed:
                add(name, Value(np.nan, NO_PICTURES), 0, view, domain)
            elif further is None or broken:
                add(name, Value(np.nan, NO_EXTRA_OUTPUTS), 0, view, domain)
            else:
                add(name, *target_distance(further, view, member), view, domain)

    for name in estimates if not (targets or streamed) else ():
        add(name, Value(np.nan, NO_TARGETS), 0, None, None)
    for view, (target, domains) in targets.items():
        chosen_of = classes.get(view, {})
        for domain, member in parts_of(domains):
            here = Material(target.logits[member], target.p[member], target.labels[member])
            there, chosen = source, chosen_of.get(domain, chosen_of.get("all"))
            if chosen is not None:
                here = here.columns(chosen, task, temperature)
                there = source.columns(chosen, task, temperature)
            add_all(view, domain, target_values(there, here, task), member)
    for view, (records, domains) in streamed.items():
        chosen = classes.get(view, {}).get("all")
        there = source if chosen is None else source.columns(chosen, task, temperature)
        for domain, member in parts_of(domains):
            add_all(view, domain, record_values(there, records.part(member)), member)
    return pl.DataFrame(rows, schema=COLUMNS)
