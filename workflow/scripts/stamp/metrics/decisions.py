"""What a model decides on the source and on each target: all that agreement with others needs.

It is kept in a small file per model, so that another model's coming reads no logits again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from stamp.core.artifacts import check_metadata, write_arrays
from stamp.metrics.inputs import ScaledOutputs, StreamedOutputs, TargetOutputs
from stamp.metrics.target_estimates import prevalence_threshold
from stamp.stats.auroc import MINIMUM, class_aurocs

NONE = -1  # no decision


@dataclass(frozen=True, slots=True)
class Decisions:
    """A model's decisions for one target: on the source, and on the target itself.

    Multiclass: class numbers [n], taken among the classes that the target is scored on, on the
    source images of these classes. Multilabel: 0, 1 or ``NONE`` [n, C], at thresholds that match
    the source's prevalences, and the ``ranks`` of each class's scores, 0 where there are none.
    ``right`` of ``known`` labeled source decisions are right, in all [1] or by class [C].
    """

    source: np.ndarray
    target: np.ndarray
    right: np.ndarray
    known: np.ndarray
    source_ranks: np.ndarray
    target_ranks: np.ndarray
    aurocs: np.ndarray  # of each class on the source, NaN where it has none
    degenerate: np.ndarray  # [1], whether the outputs on the source are nearly constant


def decided(
    source: ScaledOutputs, targets: Mapping[str, TargetOutputs], degenerate: bool
) -> dict[str, Decisions]:
    """A model's decisions for each target, from outputs over all classes, NaN where it has none."""
    if source.task == "multiclass":
        return {key: _multiclass(source, one, degenerate) for key, one in targets.items()}
    return {
        key: _multilabel(one.source or source, one.outputs, degenerate)
        for key, one in targets.items()
    }


def _multiclass(source: ScaledOutputs, target: TargetOutputs, degenerate: bool) -> Decisions:
    among = target.where.columns.get("all", range(source.logits.shape[1]))
    member = np.isnan(source.labels) | np.isin(source.labels, among)
    here, truth = _largest(source.logits[member], among), source.labels[member]
    if isinstance(target.outputs, StreamedOutputs):
        there = target.outputs.predicted
    else:
        there = _largest(target.outputs.logits, among)
    known = ~np.isnan(truth)
    nothing = np.zeros((0, 0), dtype=np.uint16)
    return Decisions(
        source=here.astype(np.int16),
        target=there.astype(np.int16),
        right=np.array([(here == truth)[known].sum()]),
        known=np.array([known.sum()]),
        source_ranks=nothing,
        target_ranks=nothing,
        aurocs=np.zeros(0),
        degenerate=np.array([degenerate], dtype=np.uint8),
    )


def _multilabel(
    source: ScaledOutputs, target: ScaledOutputs | StreamedOutputs, degenerate: bool
) -> Decisions:
    if isinstance(target, StreamedOutputs):
        raise TypeError("multilabel targets are not streamed")
    columns = zip(source.p.T, source.labels.T, strict=True)
    cuts = np.array([_cut(p, labels) for p, labels in columns])
    here = _above(source.p, cuts)
    known = ~np.isnan(source.labels) & (here != NONE)
    return Decisions(
        source=here,
        target=_above(target.p, cuts),
        right=(known & (here == source.labels)).sum(axis=0),
        known=known.sum(axis=0),
        source_ranks=_ranks(source.logits),
        target_ranks=_ranks(target.logits),
        aurocs=_aurocs(source),
        degenerate=np.array([degenerate], dtype=np.uint8),
    )


def write_decisions(
    path: str | Path, decisions: Mapping[str, Decisions], metadata: Mapping[str, str]
) -> None:
    """Write a model's decisions for each target."""
    arrays = {
        f"{view}/{field.name}": getattr(one, field.name)
        for view, one in decisions.items()
        for field in fields(one)
    }
    write_arrays(path, arrays, metadata)


def read_decisions(path: str | Path, view: str, **expected: str) -> Decisions:
    """A model's decisions for one target, after checking whose they are."""
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        check_metadata(path, file.metadata() or {}, expected)
        return Decisions(
            **{field.name: file.get_tensor(f"{view}/{field.name}") for field in fields(Decisions)}
        )


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
    """The column of the largest logit among some columns."""
    numbers = np.asarray(among)
    part = logits[:, numbers]
    return numbers[np.where(np.isnan(part), -np.inf, part).argmax(axis=1)]


def _cut(p: np.ndarray, labels: np.ndarray) -> float:
    known = ~(np.isnan(labels) | np.isnan(p))
    both = known.any() and 0 < labels[known].sum() < known.sum()
    return prevalence_threshold(p[known], labels[known]) if both else np.nan


def _above(p: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(cuts) | np.isnan(p), NONE, p > cuts).astype(np.int8)


def _ranks(scores: np.ndarray) -> np.ndarray:
    """Ranks of each column from 1 on, equal ones alike; 0 in a column without scores."""
    kind = np.uint16 if len(scores) < np.iinfo(np.uint16).max else np.uint32
    ranks = np.zeros(scores.shape, dtype=kind)
    for c in np.flatnonzero(~np.isnan(scores).all(axis=0)):
        ranks[:, c] = np.unique(scores[:, c], return_inverse=True)[1] + 1
    return ranks
