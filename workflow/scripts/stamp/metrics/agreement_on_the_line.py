"""Agreement on the line: estimates for each target from the decisions of all models together."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from stamp.metrics.decisions import Decisions
from stamp.metrics.inputs import TargetDomains
from stamp.metrics.value import COLUMNS, DEGENERATE
from stamp.stats.agreement import (
    PackedDecisions,
    agreements,
    concordances,
    packed_order,
    random_pairs,
)
from stamp.stats.on_the_line import Aline, aline

Columns = tuple[int, ...] | None  # None for all
LINES = {"model": pl.String, **COLUMNS}


@dataclass(slots=True)
class _Side:
    """All models' decisions, and multilabel models' orders by class, on one set of images."""

    member: np.ndarray | None
    columns: Columns
    kinds: int
    decisions: list[PackedDecisions] = field(default_factory=list)
    orders: list[list[PackedDecisions]] = field(default_factory=list)
    images: int = 0
    size: int = 0  # decisions of one model

    def add(self, decisions: np.ndarray, ranks: np.ndarray) -> None:
        """Take in the next model."""
        own = self._part(decisions)
        self.images, self.size = len(own), own.size
        self.decisions.append(PackedDecisions.of(own, self.kinds))
        if ranks.size:
            self.orders.append(packed_order(self._part(ranks), random_pairs(len(own))))

    def _part(self, array: np.ndarray) -> np.ndarray:
        rows = array if self.member is None else array[self.member]
        return rows if self.columns is None or rows.ndim == 1 else rows[:, list(self.columns)]

    def concordances(self, kept: Sequence[int]) -> np.ndarray:
        """Those over some of the classes, by their places among the columns."""
        return concordances([[own[c] for c in kept] for own in self.orders])


def line_table(
    view: str, where: TargetDomains, models: Iterable[tuple[str, Decisions]], classes: int
) -> pl.DataFrame:
    """ALine-S and ALine-D of every model for one target, one row per domain.

    Of multilabel models also ALine-D with AUROC in the place of accuracy and concordance in the
    place of agreement: a line that is assumed by analogy. ``classes`` is their number in a
    multiclass study. Decisions are packed as they come: those of one model at a time are whole.
    """
    parts = {domain: (member, _columns(where, domain)) for domain, member in where.parts()}
    there = {domain: _Side(*part, classes) for domain, part in parts.items()}
    here = {columns: _Side(None, columns, classes) for _, columns in parts.values()}
    keys, kept = [], []
    for key, one in models:
        for side in there.values():
            side.add(one.target, one.target_ranks)
        for side in here.values():
            side.add(one.source, one.source_ranks)
        keys.append((key, bool(one.degenerate[0])))
        kept.append((one.right, one.known, one.aurocs))
    counts = _Counts(*(np.stack(values) for values in zip(*kept, strict=True)))
    source = {columns: _Source(side, counts) for columns, side in here.items()}
    rows: list[dict[str, Any]] = []
    for domain, side in there.items():
        common = {"view": view, "domain": domain, "n": side.images}
        rows += _rows(keys, _estimates(source[side.columns], side), common)
    return pl.DataFrame(rows, schema=LINES)


def _columns(where: TargetDomains, domain: str) -> Columns:
    chosen = where.chosen(domain)
    return None if chosen is None else tuple(chosen)


@dataclass(frozen=True, slots=True)
class _Counts:
    """How right all models are on the source: [M, 1], or by class [M, C]."""

    right: np.ndarray
    known: np.ndarray
    aurocs: np.ndarray

    def accuracy(self, columns: Columns) -> np.ndarray:
        """The share of right decisions over some classes."""
        at = slice(None) if columns is None or self.right.shape[1] == 1 else list(columns)
        with np.errstate(invalid="ignore"):
            return self.right[:, at].sum(axis=1) / self.known[:, at].sum(axis=1)


class _Source:
    """All models on the source over some classes: what every domain with these classes shares."""

    def __init__(self, side: _Side, counts: _Counts):
        self.images, self.size = side.images, side.size
        self.accuracy = counts.accuracy(side.columns)
        self.agreements = agreements(side.decisions)
        self.ordered = bool(side.orders)
        if not self.ordered:
            return
        areas = counts.aurocs if side.columns is None else counts.aurocs[:, list(side.columns)]
        # the classes that some model has an AUROC of
        self.classes = np.flatnonzero(~np.isnan(areas).all(axis=0)).tolist()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a model without any of the classes
            self.auroc = np.nanmean(areas[:, self.classes], axis=1)
        self.concordances = side.concordances(self.classes)


def _estimates(source: _Source, target: _Side) -> dict[str, tuple[Aline, np.ndarray]]:
    """The lines through all pairs of models, source against target, and what they estimate."""
    line = aline(
        source.accuracy,
        source.agreements,
        agreements(target.decisions),
        min(source.size, target.size),
    )
    found = {"aline_s": (line, line.estimate_s), "aline_d": (line, line.estimate_d)}
    if source.ordered:
        images = min(source.images, target.images)
        there = target.concordances(source.classes)
        ranked = aline(source.auroc, source.concordances, there, images)
        found["aline_d_auroc"] = (ranked, ranked.estimate_d)
    return found


def _rows(
    keys: Sequence[tuple[str, bool]],
    found: dict[str, tuple[Aline, np.ndarray]],
    common: dict[str, Any],
) -> list[dict[str, Any]]:
    """One row per model and variant; a degenerate model has no estimate."""
    rows = []
    for place, (key, degenerate) in enumerate(keys):
        for name, (line, values) in found.items():
            value = float(values[place]) if np.isfinite(values[place]) else None
            why = line.reason or (None if value is not None else "not determined")
            if degenerate:
                value, why = None, DEGENERATE
            rows.append({"model": key, "metric": name, "value": value, **common, "reason": why})
    return rows
