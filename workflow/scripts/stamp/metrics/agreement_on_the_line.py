"""Agreement on the line: estimates for each target from the decisions of all models together."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from stamp.config.view_names import SOURCE
from stamp.metrics.inputs import ScaledOutputs, StreamedOutputs, TargetOutputs
from stamp.metrics.target_estimates import prevalence_threshold
from stamp.metrics.value import COLUMNS, DEGENERATE
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


def decided(source: ScaledOutputs, targets: Mapping[str, TargetOutputs]) -> Decisions:
    """A model's decisions; multilabel ones at thresholds that match the source's prevalences.

    Multiclass ones for a target are taken among the classes that it is scored on, on the source
    images of these classes.
    """
    return (_multiclass if source.task == "multiclass" else _multilabel)(source, targets)


def _multiclass(source: ScaledOutputs, targets: Mapping[str, TargetOutputs]) -> Decisions:
    here, right, there = {}, {}, {}
    for key, target in targets.items():
        among = target.columns.get("all", range(source.logits.shape[1]))
        member = np.isnan(source.labels) | np.isin(source.labels, among)
        here[key], truth = _largest(source.logits[member], among), source.labels[member]
        right[key] = np.where(np.isnan(truth), np.nan, here[key] == truth)
        there[key] = _largest(_scaled(target).logits, among)
    return Decisions(here, right, there, degenerate=_constant(source))


def _multilabel(source: ScaledOutputs, targets: Mapping[str, TargetOutputs]) -> Decisions:
    cuts = np.array([_cut(source.p[:, c], source.labels[:, c]) for c in range(source.p.shape[1])])
    chosen = _above(source.p, cuts)
    hits = np.where(np.isnan(source.labels) | np.isnan(chosen), np.nan, chosen == source.labels)
    return Decisions(
        source=dict.fromkeys(targets, chosen),
        right=dict.fromkeys(targets, hits),
        targets={key: _above(_scaled(one).p, cuts) for key, one in targets.items()},
        scores={SOURCE: source.logits} | {key: _scaled(one).logits for key, one in targets.items()},
        aurocs=_aurocs(source),
        degenerate=_constant(source),
    )


def _scaled(target: TargetOutputs) -> ScaledOutputs:
    if isinstance(target.outputs, StreamedOutputs):
        raise TypeError("agreement on the line needs the logits of a target")
    return target.outputs


def _constant(source: ScaledOutputs) -> bool:
    """Whether the outputs are nearly the same for every image."""
    there = ~np.isnan(source.p).all(axis=0)
    return bool(source.p[:, there].std(axis=0).max(initial=0.0) < DEGENERATE_SPREAD)


def _aurocs(source: ScaledOutputs) -> np.ndarray:
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


def line_table(
    models: Mapping[str, Decisions], targets: Mapping[str, TargetOutputs], task: str
) -> pl.DataFrame:
    """ALine-S and ALine-D of every model, one row per domain of each target.

    Of multilabel models also ALine-D with AUROC in the place of accuracy and concordance in the
    place of agreement: a line that is assumed by analogy. Of ``targets`` only the domains and
    columns count, which all models share.
    """
    rows: list[dict[str, Any]] = []
    decisions = list(models.values())
    for view, target in targets.items():
        for domain, member in target.parts():
            chosen = target.chosen(domain)
            found = _fitted(decisions, view, member, chosen, task)
            fits = {"aline_s": (found, found.estimate_s), "aline_d": (found, found.estimate_d)}
            if task == "multilabel":
                ranked = _ranked(decisions, view, member, chosen)
                fits["aline_d_auroc"] = (ranked, ranked.estimate_d)
            common = {"view": view, "domain": domain, "n": int(member.sum())}
            for place, key in enumerate(models):
                for name, (line, values) in fits.items():
                    value = float(values[place]) if np.isfinite(values[place]) else None
                    why = line.reason or (None if value is not None else "not determined")
                    if models[key].degenerate:
                        value, why = None, DEGENERATE
                    row = {"model": key, "metric": name, "value": value, **common}
                    rows.append({**row, "reason": why})
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
