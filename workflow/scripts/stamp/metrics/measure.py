"""All metrics of one model: from its outputs on the source pool, and on each target's domains."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from stamp.metrics import estimators, outputs
from stamp.metrics.further import DEGENERATE, NO_PASSES, Further, further_values
from stamp.metrics.outputs import Value
from stamp.metrics.registry import COLUMNS, metrics_of
from stamp.outputs import Outputs
from stamp.score import probabilities
from stamp.views import labels as read_labels

NO_TARGETS = "the study keeps no target's outputs"
NOT_FINITE = "not a finite number"


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
        """The same for some classes only (multilabel)."""
        labels = self.labels[:, list(chosen)]
        return Material.of(self.logits[:, list(chosen)], labels, task, temperature)


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
) -> pl.DataFrame:
    """One row a metric, and for an estimate a row a domain of each target.

    ``classes`` gives the columns that a domain (or ``all``) of a target is labeled for; estimates
    are then over these. A metric that can't be had, and every metric of a degenerate model, has a
    row with the reason.
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
        add(name, *found.get(name, (Value(np.nan, NO_PASSES), 0)), None, None)
    estimates = [one.name for one in known if one.of_target]
    for name in estimates if not targets else ():
        add(name, Value(np.nan, NO_TARGETS), 0, None, None)
    for view, (target, domains) in targets.items():
        chosen_of = classes.get(view, {})
        for domain, member in parts_of(domains):
            here = Material(target.logits[member], target.p[member], target.labels[member])
            there, chosen = source, chosen_of.get(domain, chosen_of.get("all"))
            if chosen is not None and task == "multilabel":
                here = here.columns(chosen, task, temperature)
                there = source.columns(chosen, task, temperature)
            values = target_values(there, here, task)
            for name in estimates:
                add(name, values[name], int(member.sum()), view, domain)
    return pl.DataFrame(rows, schema=COLUMNS)
