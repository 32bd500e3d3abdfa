"""What the metrics of one model are made from, and how it is read from a study's files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from stamp.data.views import label_columns, scored_classes
from stamp.data.views import labels as read_labels
from stamp.inference.outputs import Outputs, read_outputs, read_predictions
from stamp.scoring.pool_pairs import PairDesign, PoolPairs, pair_rows
from stamp.scoring.stamp import probabilities

CONFIDENCE, ENTROPY = 2, 3  # columns of a prediction, see ``stamp.inference.predictions``


@dataclass(frozen=True, slots=True)
class OutputSettings:
    """How a model's logits become outputs; ``there`` says which classes it has an output for."""

    classes: Sequence[str]
    there: np.ndarray
    task: str
    temperature: float


@dataclass(frozen=True, slots=True)
class ScaledOutputs:
    """A model's logits on some images, their probabilities at its temperature, and labels.

    Labels are class numbers [n] or 0, 1, NaN [n, C]; those of a target are never used.
    """

    logits: np.ndarray
    p: np.ndarray
    labels: np.ndarray
    task: str
    temperature: float

    @classmethod
    def of(
        cls, logits: np.ndarray, labels: np.ndarray, task: str, temperature: float
    ) -> ScaledOutputs:
        """The outputs of raw logits at a temperature."""
        return cls(logits, probabilities(logits, task, temperature), labels, task, temperature)

    @classmethod
    def read(cls, found: Outputs, settings: OutputSettings) -> ScaledOutputs:
        """The outputs on a view, over the classes that the model has an output for.

        A multiclass model that lacks classes gets no labels: without the images of those classes
        what needs labels would look too good.
        """
        task, there = settings.task, settings.there
        truth = read_labels(found.rows, task, settings.classes, "metrics")
        if task == "multilabel":
            truth = truth[:, there]
        elif not there.all():
            truth = np.full(len(truth), np.nan)
        return cls.of(found.logits[:, there], truth, task, settings.temperature)

    def part(self, member: np.ndarray) -> ScaledOutputs:
        """The outputs on some images."""
        logits, p, labels = self.logits[member], self.p[member], self.labels[member]
        return ScaledOutputs(logits, p, labels, self.task, self.temperature)

    def columns(self, chosen: Sequence[int] | None) -> ScaledOutputs:
        """The outputs of some classes only (None for all); a softmax is renormalised over them.

        In the multiclass case the images of other classes have no label any more.
        """
        if chosen is None:
            return self
        if self.task == "multilabel":
            labels = self.labels[:, list(chosen)]
        else:
            number = np.full(self.logits.shape[1], np.nan)
            number[list(chosen)] = np.arange(len(chosen))
            known = ~np.isnan(self.labels)
            labels = np.full(len(self.labels), np.nan)
            labels[known] = number[self.labels[known].astype(int)]
        return self.of(self.logits[:, list(chosen)], labels, self.task, self.temperature)


@dataclass(frozen=True, slots=True)
class StreamedOutputs:
    """What is kept of a streamed target: the largest probability and the entropy of each image."""

    confidence: np.ndarray
    entropy: np.ndarray

    def part(self, member: np.ndarray) -> StreamedOutputs:
        """Those of some images."""
        return StreamedOutputs(self.confidence[member], self.entropy[member])


@dataclass(frozen=True, slots=True)
class TargetOutputs:
    """A model's outputs on one target, and the domain of each image.

    ``columns`` are the outputs that a domain (or ``all``) is scored on, see :func:`columns_of`.
    """

    outputs: ScaledOutputs | StreamedOutputs
    domains: pl.Series
    columns: Mapping[str, Sequence[int]] = field(default_factory=dict)
    images: Sequence[str] = ()

    def chosen(self, domain: str) -> Sequence[int] | None:
        """The columns that a domain is scored on; None for all."""
        return self.columns.get(domain, self.columns.get("all"))

    def parts(self) -> Iterator[tuple[str, np.ndarray]]:
        """The whole target as ``all``, then its domains where there are several."""
        yield "all", np.ones(len(self.domains), dtype=bool)
        names = sorted(self.domains.drop_nulls().unique().to_list())
        if len(names) > 1:
            of_row = self.domains.to_numpy()
            for name in names:
                yield name, of_row == name


@dataclass(frozen=True, slots=True)
class TargetFiles:
    """Where a target's view and a model's outputs on it are; ``scored`` names its classes."""

    view: str | Path
    outputs: str | Path
    scored: Mapping[str, Any]
    streamed: bool = False


def read_target(files: TargetFiles, model: str, settings: OutputSettings) -> TargetOutputs:
    """A model's outputs on a target: from logits, or from predictions where it is streamed."""
    columns = columns_of(files.scored, settings, files.view)
    if files.streamed:
        found = read_predictions(files.view, files.outputs, model)
        kept = StreamedOutputs(found.logits[:, CONFIDENCE], found.logits[:, ENTROPY])
        return TargetOutputs(kept, found.rows["domain"], columns)
    found = read_outputs(files.view, files.outputs, model)
    outputs = ScaledOutputs.read(found, settings)
    return TargetOutputs(outputs, found.rows["domain"], columns, found.rows["image"].to_list())


def columns_of(
    scored: Mapping[str, Any], settings: OutputSettings, view: str | Path
) -> dict[str, list[int]]:
    """Which outputs estimates for a target are made from, by domain or for ``all``; else none.

    The numbers are places among the classes that a model has an output for. Multilabel: the
    classes that a domain is labeled for. Multiclass: those that predictions are taken among.
    """
    classes = settings.classes
    place = dict(zip(np.flatnonzero(settings.there).tolist(), range(len(classes)), strict=False))
    if settings.task == "multilabel":
        number = {name: place.get(at) for at, name in enumerate(classes)}
        return {
            domain: [at for name in wanted if (at := number.get(name)) is not None]
            for domain, wanted in scored["classes"].items()
        }
    if scored["among"] is None:
        return {}
    chosen = scored_classes(scored["among"], classes, view).tolist()
    return {"all": [place[at] for at in chosen if at in place]}


def exact_total(
    p: np.ndarray, rows: pl.DataFrame, pairs: pl.DataFrame, params: Mapping[str, Any]
) -> float | None:
    """AV of the pool's outputs by the exact estimator; None where the study's is the sampled one.

    ``params`` are those of the rule: task, classes, semantic, random, pool, estimator.
    """
    if params["estimator"] != "exact":
        return None
    design = PairDesign(params["semantic"], params["random"], params["pool"])
    columns = label_columns(params["task"], params["classes"])
    return PoolPairs.of(rows, pairs, design, columns).exact(p, design.semantic).value()[1]


def first_pairs(
    pairs: pl.DataFrame, kind: str, number: int, images: pl.Series
) -> tuple[np.ndarray, np.ndarray]:
    """The first ``number`` pairs of a kind, as row numbers of the pool's images."""
    return pair_rows(pairs.filter(pl.col("kind") == kind).head(number), images)
