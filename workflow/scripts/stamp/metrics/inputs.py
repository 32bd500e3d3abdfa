"""What the metrics of one model are made from, and how it is read from a study's files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from stamp.data.views import label_columns, scored_classes
from stamp.data.views import labels as read_labels
from stamp.inference.outputs import (
    Outputs,
    merged,
    merged_labels,
    read_outputs,
    read_predictions,
)
from stamp.scoring.pool_pairs import PairDesign, PoolPairs, pair_rows
from stamp.scoring.stamp import probabilities

PREDICTED, CONFIDENCE, ENTROPY = 0, 2, 3  # see ``stamp.inference.outputs.PREDICTION_COLUMNS``


@dataclass(frozen=True, slots=True)
class OutputSettings:
    """How a model's logits become outputs.

    ``there`` says which classes it has an output for: the study's, then those of ``merge``, which
    are several of them in one.
    """

    classes: Sequence[str]
    there: np.ndarray
    task: str
    temperature: float
    merge: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The study's classes and the merged ones."""
        return [*self.classes, *self.merge]

    def merging(self, merge: Mapping[str, Sequence[str]]) -> OutputSettings:
        """The same with merged classes; a model has those that it has some part of."""
        has = dict(zip(self.classes, self.there, strict=True))
        made = [any(has[part] for part in parts) for parts in merge.values()]
        return replace(self, there=np.array([*self.there, *made], dtype=bool), merge=merge)

    @property
    def of_all_classes(self) -> OutputSettings:
        """The same with every class, NaN where the model has no output."""
        return replace(self, there=np.ones_like(self.there))

    def columns(self, logits: np.ndarray) -> np.ndarray:
        """The logits of the classes that are there, merged ones last."""
        whole = merged(logits, self.classes, self.merge) if self.merge else logits
        return whole if self.there.all() else whole[:, self.there]


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
        task, there, classes = settings.task, settings.there, settings.classes
        truth = read_labels(found.rows, task, classes, "metrics")
        if task == "multilabel":
            whole = merged_labels(truth, classes, list(settings.merge.values()))
            truth = np.concatenate([truth, whole], axis=1)[:, there]
        elif not there.all():
            truth = np.full(len(truth), np.nan)
        return cls.of(settings.columns(found.logits), truth, task, settings.temperature)

    @classmethod
    def unlabeled(cls, logits: np.ndarray, settings: OutputSettings) -> ScaledOutputs:
        """The outputs of a target's logits: its labels play no part."""
        z = settings.columns(logits)
        none = np.full(z.shape if settings.task == "multilabel" else len(z), np.nan)
        return cls.of(z, none, settings.task, settings.temperature)

    def at(self, temperature: float) -> ScaledOutputs:
        """The outputs at another temperature."""
        return self.of(self.logits, self.labels, self.task, temperature)

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
    """What is kept of a streamed target.

    Of each image the predicted class, the largest probability and the entropy at T = 1, all among
    the classes that the target is scored on; of the images ``rows`` also the outputs, ``sample``.
    """

    predicted: np.ndarray
    confidence: np.ndarray
    entropy: np.ndarray
    rows: np.ndarray
    sample: ScaledOutputs

    def part(self, member: np.ndarray) -> StreamedOutputs:
        """Those of some images."""
        inside = member[self.rows]
        return StreamedOutputs(
            self.predicted[member],
            self.confidence[member],
            self.entropy[member],
            (np.cumsum(member) - 1)[self.rows[inside]],
            self.sample.part(inside),
        )


@dataclass(frozen=True, slots=True)
class TargetDomains:
    """The domain of each image of a target, and which outputs a domain is scored on.

    ``columns`` are those of a domain (or ``all``), see :func:`columns_of`.
    """

    domains: pl.Series
    columns: Mapping[str, Sequence[int]] = field(default_factory=dict)

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
class TargetOutputs:
    """A model's outputs on one target.

    ``source`` are those on the source over the same classes, where the target has merged ones.
    ``labels`` are the target's, over the columns of its outputs, for what is named "labeled target"
    alone.
    """

    outputs: ScaledOutputs | StreamedOutputs
    where: TargetDomains
    images: Sequence[str] = ()
    source: ScaledOutputs | None = None
    labels: np.ndarray | None = None

    def labeled(self, domain: str) -> ScaledOutputs | None:
        """The outputs with labels, over the classes of a domain; None without labels."""
        if self.labels is None or isinstance(self.outputs, StreamedOutputs):
            return None
        return replace(self.outputs, labels=self.labels).columns(self.where.chosen(domain))


@dataclass(frozen=True, slots=True)
class TargetFiles:
    """Where a target's view and a model's outputs on it are; ``scored`` names its classes."""

    view: str | Path
    outputs: str | Path
    scored: Mapping[str, Any]
    streamed: bool = False


def target_files(files: Any, params: Any) -> dict[str, TargetFiles]:
    """The targets of a study by name, from the inputs and params of the rule ``metrics``."""
    views = [*files.views, *files.streamed_views]
    outputs = [*files.targets, *files.predictions]
    return {
        name: TargetFiles(view, found, params.scored[name], name in params.streamed)
        for name, view, found in zip(
            [*params.targets, *params.streamed], views, outputs, strict=True
        )
    }


def read_target(
    files: TargetFiles, model: str, settings: OutputSettings, pool: Outputs
) -> TargetOutputs:
    """A model's outputs on a target: from logits, or from predictions where it is streamed.

    ``pool`` are its outputs on the source's pool.
    """
    own = settings.merging(files.scored["merge"])
    columns = columns_of(files.scored, own, files.view)
    if files.streamed:
        found = read_predictions(files.view, files.outputs, model)
        rows, logits = found.sample or (np.zeros(0, dtype=int), np.zeros((0, len(own.classes))))
        streamed = StreamedOutputs(
            predicted=found.logits[:, PREDICTED].astype(np.int64),
            confidence=found.logits[:, CONFIDENCE],
            entropy=found.logits[:, ENTROPY],
            rows=rows,
            sample=ScaledOutputs.unlabeled(logits, own),
        )
        return TargetOutputs(streamed, TargetDomains(found.rows["domain"], columns))
    found = read_outputs(files.view, files.outputs, model)
    return TargetOutputs(
        ScaledOutputs.unlabeled(found.logits, own),
        TargetDomains(found.rows["domain"], columns),
        found.rows["image"].to_list(),
        ScaledOutputs.read(pool, own) if own.merge else None,
        target_labels(found.rows, own),
    )


def target_labels(rows: pl.DataFrame, settings: OutputSettings) -> np.ndarray:
    """The labels of a target over the classes that a model has an output for.

    NaN where the target has none; all of them, in the multiclass case, for a model that lacks
    classes (see :meth:`ScaledOutputs.read`).
    """
    if settings.task == "multiclass":
        known = settings.there.all() and "label" in rows.columns
        return rows["label"].cast(pl.Float64).to_numpy() if known else np.full(len(rows), np.nan)
    names = [name for name, is_in in zip(settings.names, settings.there, strict=True) if is_in]
    found = np.full((len(rows), len(names)), np.nan)
    for column, name in enumerate(names):
        if name in rows.columns:
            found[:, column] = rows[name].cast(pl.Float64).to_numpy()
    return found


@dataclass(frozen=True, slots=True)
class ModelOutputs:
    """One model's outputs on the source's pool and on each target."""

    source: ScaledOutputs
    targets: Mapping[str, TargetOutputs]

    @classmethod
    def read(
        cls,
        pool: Outputs,
        targets: Mapping[str, TargetFiles],
        model: str,
        settings: OutputSettings,
    ) -> ModelOutputs:
        """Those over the classes that are there."""
        found = {key: read_target(one, model, settings, pool) for key, one in targets.items()}
        return cls(ScaledOutputs.read(pool, settings), found)


def columns_of(
    scored: Mapping[str, Any], settings: OutputSettings, view: str | Path
) -> dict[str, list[int]]:
    """Which outputs estimates for a target are made from, by domain or for ``all``; else none.

    The numbers are places among the classes that a model has an output for, merged ones last.
    Multilabel: the classes that a domain is labeled for. Multiclass: those that predictions are
    taken among.
    """
    classes, there = settings.names, np.flatnonzero(settings.there).tolist()
    place = {at: column for column, at in enumerate(there)}
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
