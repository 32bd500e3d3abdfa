"""Metrics that need all models at once: agreement on the line, from their decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from stamp.metrics.estimators import prevalence_threshold
from stamp.metrics.lines import Aline, agreements, aline, hamming_agreements
from stamp.metrics.measure import Material, parts_of
from stamp.metrics.registry import COLUMNS


@dataclass(frozen=True, slots=True)
class Decisions:
    """What a model decides: class numbers [n], or 0 and 1 [n, C] (NaN where it has no output)."""

    source: np.ndarray
    right: np.ndarray  # on the source, NaN where the label is unknown
    targets: Mapping[str, np.ndarray]


def decided(source: Material, targets: Mapping[str, Material], task: str) -> Decisions:
    """A model's decisions; multilabel ones at thresholds that match the source's prevalences."""
    if task == "multiclass":
        chosen = _largest(source.logits)
        right = np.where(np.isnan(source.labels), np.nan, chosen == source.labels)
        return Decisions(chosen, right, {key: _largest(one.logits) for key, one in targets.items()})
    cuts = np.array([_cut(source.p[:, c], source.labels[:, c]) for c in range(source.p.shape[1])])
    chosen = _above(source.p, cuts)
    right = np.where(np.isnan(source.labels) | np.isnan(chosen), np.nan, chosen == source.labels)
    return Decisions(chosen, right, {key: _above(one.p, cuts) for key, one in targets.items()})


def _largest(logits: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(logits), -np.inf, logits).argmax(axis=1)


def _cut(p: np.ndarray, labels: np.ndarray) -> float:
    known = ~(np.isnan(labels) | np.isnan(p))
    both = known.any() and 0 < labels[known].sum() < known.sum()
    return prevalence_threshold(p[known], labels[known]) if both else np.nan


def _above(p: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(cuts) | np.isnan(p), np.nan, p > cuts)


def line_rows(
    models: Mapping[str, Decisions],
    domains: Mapping[str, pl.Series],
    classes: Mapping[str, Mapping[str, Sequence[int]]],
    task: str,
) -> pl.DataFrame:
    """ALine-S and ALine-D of every model, a row a domain of each target."""
    rows: list[dict[str, Any]] = []
    keys = list(models)
    for view, of_row in domains.items():
        for domain, member in parts_of(of_row):
            chosen = classes.get(view, {}).get(domain, classes.get(view, {}).get("all"))
            found = _fitted([models[key] for key in keys], view, member, chosen, task)
            common = {"view": view, "domain": domain, "n": int(member.sum())}
            for place, key in enumerate(keys):
                for name, values in (("aline_s", found.estimate_s), ("aline_d", found.estimate_d)):
                    value = float(values[place]) if np.isfinite(values[place]) else None
                    why = found.reason or (None if value is not None else "not determined")
                    rows.append({"model": key, "metric": name, "value": value, **common})
                    rows[-1]["reason"] = why
    return pl.DataFrame(rows, schema={"model": pl.String, **COLUMNS})


def _fitted(
    models: list[Decisions],
    view: str,
    member: np.ndarray,
    chosen: Sequence[int] | None,
    task: str,
) -> Aline:
    """The line through the agreements of all pairs of models, source against target."""

    def part(array: np.ndarray) -> np.ndarray:
        return array if chosen is None or task == "multiclass" else array[:, list(chosen)]

    source = np.stack([part(one.source) for one in models])
    target = np.stack([part(one.targets[view][member]) for one in models])
    agree = agreements if task == "multiclass" else hamming_agreements
    accuracy = np.array([np.nanmean(part(one.right)) for one in models])
    n = min(source[0].size, target[0].size)
    return aline(accuracy, agree(source), agree(target), n)
