"""Metrics that need all models at once: agreement on the line, from their decisions."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl

from stamp.config.metrics import COLUMNS
from stamp.config.view_names import SOURCE
from stamp.metrics.estimators import prevalence_threshold
from stamp.metrics.further import DEGENERATE
from stamp.metrics.measure import Material, parts_of
from stamp.scoring.stamp import DEGENERATE_SPREAD
from stamp.stats.auroc import MINIMUM, class_aurocs
from stamp.stats.on_the_line import Aline, agreements, aline, concordances, hamming_agreements


@dataclass(frozen=True, slots=True)
class Decisions:
    """What a model decides: class numbers [n], or 0 and 1 [n, C] (NaN where it has no output)."""

    source: Mapping[str, np.ndarray]  # by target: among the classes that it is scored on
    right: Mapping[str, np.ndarray]  # on the source, NaN where the label is unknown
    targets: Mapping[str, np.ndarray]
    scores: Mapping[str, np.ndarray] = field(default_factory=dict)  # multilabel, by view
    aurocs: np.ndarray = field(default_factory=lambda: np.empty(0))  # of each class on the source
    degenerate: bool = False


def decided(
    source: Material,
    targets: Mapping[str, Material],
    task: str,
    columns: Mapping[str, Mapping[str, Sequence[int]]] = MappingProxyType({}),
) -> Decisions:
    """A model's decisions; multilabel ones at thresholds that match the source's prevalences.

    Multiclass ones for a target are taken among the ``columns`` that it is scored on, on the source
    images of these classes.
    """
    broken = _constant(source)
    if task == "multiclass":
        here, right, there = {}, {}, {}
        for key, target in targets.items():
            among = columns.get(key, {}).get("all", range(source.logits.shape[1]))
            member = np.isnan(source.labels) | np.isin(source.labels, among)
            here[key], truth = _largest(source.logits[member], among), source.labels[member]
            right[key] = np.where(np.isnan(truth), np.nan, here[key] == truth)
            there[key] = _largest(target.logits, among)
        return Decisions(here, right, there, degenerate=broken)
    cuts = np.array([_cut(source.p[:, c], source.labels[:, c]) for c in range(source.p.shape[1])])
    chosen = _above(source.p, cuts)
    hits = np.where(np.isnan(source.labels) | np.isnan(chosen), np.nan, chosen == source.labels)
    there = {key: _above(one.p, cuts) for key, one in targets.items()}
    scores = {SOURCE: source.logits, **{key: one.logits for key, one in targets.items()}}
    both = (dict.fromkeys(targets, chosen), dict.fromkeys(targets, hits))
    return Decisions(*both, there, scores, _aurocs(source), broken)


def _constant(source: Material) -> bool:
    """Whether the outputs are nearly the same for every image."""
    there = ~np.isnan(source.p).all(axis=0)
    return bool(source.p[:, there].std(axis=0).max(initial=0.0) < DEGENERATE_SPREAD)


def _aurocs(source: Material) -> np.ndarray:
    """The AUROC of each class on the source; NaN without an output or enough labels."""
    found = np.full(source.logits.shape[1], np.nan)
    there = np.flatnonzero(~np.isnan(source.logits).all(axis=0))
    if len(there):
        areas = class_aurocs(source.logits[:, there], source.labels[:, there])
        enough = np.minimum(areas.positives, areas.negatives) >= MINIMUM
        found[there] = np.where(enough, areas.auroc, np.nan)
    return found


def _largest(logits: np.ndarray, among: Sequence[int]) -> np.ndarray:
    """The class number of the largest logit among some classes."""
    numbers = np.asarray(among)
    part = logits[:, numbers]
    return numbers[np.where(np.isnan(part), -np.inf, part).argmax(axis=1)]


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
    """ALine-S and ALine-D of every model, a row a domain of each target.

    Of multilabel models also ALine-D with AUROC in the place of accuracy and concordance in the
    place of agreement: a line that is assumed by analogy.
    """
    rows: list[dict[str, Any]] = []
    keys = list(models)
    for view, of_row in domains.items():
        for domain, member in parts_of(of_row):
            chosen = classes.get(view, {}).get(domain, classes.get(view, {}).get("all"))
            every = [models[key] for key in keys]
            found = _fitted(every, view, member, chosen, task)
            fits = {"aline_s": (found, found.estimate_s), "aline_d": (found, found.estimate_d)}
            if task == "multilabel":
                ranked = _ranked(every, view, member, chosen)
                fits["aline_d_auroc"] = (ranked, ranked.estimate_d)
            common = {"view": view, "domain": domain, "n": int(member.sum())}
            for place, key in enumerate(keys):
                for name, (line, values) in fits.items():
                    value = float(values[place]) if np.isfinite(values[place]) else None
                    why = line.reason or (None if value is not None else "not determined")
                    if models[key].degenerate:
                        value, why = None, DEGENERATE
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

    source = np.stack([part(one.source[view]) for one in models])
    target = np.stack([part(one.targets[view][member]) for one in models])
    agree = agreements if task == "multiclass" else hamming_agreements
    accuracy = np.array([np.nanmean(part(one.right[view])) for one in models])
    n = min(source[0].size, target[0].size)
    return aline(accuracy, agree(source), agree(target), n)


def _ranked(
    models: list[Decisions], view: str, member: np.ndarray, chosen: Sequence[int] | None
) -> Aline:
    """The line through the concordances of all pairs of models, with AUROC for accuracy."""
    columns = range(len(models[0].aurocs)) if chosen is None else chosen
    columns = [c for c in columns if any(not np.isnan(one.aurocs[c]) for one in models)]
    areas = np.stack([one.aurocs[columns] for one in models])
    source = np.stack([one.scores[SOURCE][:, columns] for one in models])
    target = np.stack([one.scores[view][member][:, columns] for one in models])
    n = min(source.shape[1], target.shape[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a model without any of the classes
        mean = np.nanmean(areas, axis=1) if columns else np.full(len(models), np.nan)
    return aline(mean, concordances(source), concordances(target), n)
