"""Projection Norm of one model for every domain of its targets, as rows of metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from stamp.core.artifacts import read_table
from stamp.core.errors import UserError
from stamp.images.view_pixels import Pixels, open_views
from stamp.inference.extra_outputs.manifest import PRECOMPUTED, SOURCE
from stamp.inference.extra_outputs.runner import differentiating
from stamp.inference.extra_outputs.selected_images import SelectedImages
from stamp.inference.pseudo_label_training import LEAST, PseudoLabelTraining
from stamp.metrics.inputs import TargetDomains
from stamp.metrics.value import COLUMNS, ONE_IMAGE

NAME = "projection_norm"
DIVERGED = "the training diverged"


class DomainRows(NamedTuple):
    """The images of a domain that are learned, as rows of all targets together."""

    view: str
    domain: str
    rows: np.ndarray


@dataclass(frozen=True, slots=True)
class TrainingImages:
    """The rows of the source that are learned, and up to ``count`` images of every domain."""

    source: Pixels
    rows: np.ndarray
    targets: SelectedImages
    views: Mapping[str, pl.DataFrame]
    count: int

    @classmethod
    def read(cls, smk: Any) -> TrainingImages:
        """Those of a job's input files: the first images of the pool, and selected ones."""
        files, params, study, count = smk.input, smk.params, smk.wildcards.study, smk.params.images
        source = {SOURCE: read_table(files.view, study=study, view=SOURCE)}
        named = zip(params.targets, files.views, strict=True)
        views = {name: read_table(file, study=study, view=name) for name, file in named}
        caches = {"pixels": files.target_pixels, "record": files.target_records}
        targets = open_views(views, caches, params.target_pixels, study, smk.threads)
        pixels = [one.pixels for one in targets]
        own = {"pixels": [files.pixels], "record": [files.record]} if files.get("pixels") else {}
        (opened,) = open_views(source, own, {SOURCE: params.pixels}, study, smk.threads)
        return cls(
            source=opened.pixels,
            rows=np.flatnonzero((source[SOURCE]["role"] == "pool").to_numpy())[:count],
            targets=SelectedImages.of_targets(pixels, list(views.values()), count, params.seed),
            views=views,
            count=count,
        )

    def domains(self) -> list[DomainRows]:
        """Each target as a whole, evenly spaced, and its domains."""
        found, first = [], 0
        for name, view in self.views.items():
            own = self.targets.rows - first
            inside = own[(own >= 0) & (own < len(view))]
            for domain, member in TargetDomains(view["domain"]).parts():
                rows = inside[member[inside]] + first
                some = np.linspace(0, len(rows) - 1, min(self.count, len(rows)))
                found.append(DomainRows(name, domain, rows[some.round().astype(int)]))
            first += len(view)
        return found


def projection_norms(
    model: str, network: Callable[[], PseudoLabelTraining], images: TrainingImages
) -> pl.DataFrame:
    """One row per domain; a network that can't be trained has the reason in all of them."""
    domains = images.domains()
    try:
        with differentiating():
            norm = network()
            reference = norm.trained(images.source.take, images.rows)
            take = images.targets.cache.take
            found = [
                norm.relative(reference, norm.trained(take, each.rows))
                if len(each.rows) >= LEAST
                else None
                for each in domains
            ]
    except UserError as mistake:
        return _table([_row(model, each.view, each.domain, str(mistake)) for each in domains])
    rows = []
    for each, value in zip(domains, found, strict=True):
        why = ONE_IMAGE if value is None else "" if np.isfinite(value) else DIVERGED
        row = _row(model, each.view, each.domain, why)
        rows.append({**row, "value": None if why else value, "n": len(each.rows)})
    return _table(rows)


def precomputed(model: str, views: Sequence[str]) -> pl.DataFrame:
    """The rows of a model that can't be run."""
    return _table([_row(model, view, "all", PRECOMPUTED) for view in views])


def _row(model: str, view: str, domain: str, reason: str) -> dict[str, Any]:
    head = {"model": model, "metric": NAME, "view": view, "domain": domain}
    return {**head, "value": None, "n": 0, "reason": reason or None}


def _table(rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={"model": pl.String, **COLUMNS})
