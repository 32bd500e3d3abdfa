"""Predictions on targets too large for a pixel cache and for logits: images are streamed.

Images are decoded by threads while models run, once for all models of a pass. Both the list of
images and the predictions are handled in parts, so memory does not grow with the number of images.
Each model keeps its own parts: whatever job runs it next, with others or alone, resumes after the
last one. ``stamp.inference.outputs`` says what is kept of each image. The logits of a small sample
of the images are kept too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl
import torch

from stamp.config.preprocessing import Preprocessing
from stamp.core.array_writer import ArrayWriter
from stamp.core.artifacts import atomic_write
from stamp.core.errors import UserError
from stamp.core.progress import bar
from stamp.data.views import scored_classes
from stamp.images.decoded_images import Decoder
from stamp.images.prefetch import pinned, prefetched
from stamp.inference.batch_size import InPieces
from stamp.inference.logits import Execution, check_outputs, described, fitting_forward
from stamp.inference.outputs import PREDICTION_COLUMNS, predictions_of
from stamp.inference.provenance import key_of
from stamp.inference.resume import ResumableRows
from stamp.inference.streamed_sample import packed, packed_shapes, sampled_rows
from stamp.models.loaded_model import LoadedModel

PART = 4096


@dataclass(frozen=True)
class StreamedTarget:
    """A view whose images are decoded as they are needed, and the classes it is scored on.

    ``classes`` is how many outputs a model has; ``among`` are the numbers of those that the target
    is scored on. ``border`` pixels are cut off at each side of an image.
    """

    view: Path
    preprocessing: Preprocessing
    classes: int
    among: np.ndarray
    border: int = 0

    @classmethod
    def of_job(cls, view: str | Path, params: Mapping[str, Any]) -> StreamedTarget:
        """That of a job's view and params."""
        return cls(
            view=Path(view),
            preprocessing=Preprocessing(**params["preprocessing"]),
            classes=len(params["classes"]),
            among=scored_classes(params["among"], params["classes"], view),
            border=params["border"],
        )

    def key_with(self, made_from: Mapping[str, Any]) -> str:
        """A digest of what predictions of this target depend on, with a model's ``made_from``."""
        how = {
            "how": str(self.preprocessing),
            "among": self.among.tolist(),
            "border": self.border,
        }
        return key_of({**made_from, **how})

    @cached_property
    def ids(self) -> tuple[int, str]:
        """How many images there are, and the digest of their ids."""
        return count_and_digest(self.view)


def parts(view: str | Path, columns: Sequence[str], first: int = 0) -> Iterator[pl.DataFrame]:
    """Columns of a view from row ``first`` on, a few thousand rows at a time."""
    lazy = pl.scan_parquet(view).select(columns)
    total = lazy.select(pl.len()).collect().item()
    for start in range(first, total, PART):
        yield lazy.slice(start, PART).collect()


def count_and_digest(view: str | Path) -> tuple[int, str]:
    """How many images a view has, and the digest of their ids as ``ids_digest`` gives it."""
    state, count = hashlib.sha256(), 0
    for part in parts(view, ["image"]):
        state.update("".join(f"{one}\0" for one in part["image"]).encode())
        count += len(part)
    return count, state.hexdigest()[:16]


def batches(
    target: StreamedTarget, execution: Execution, first: int = 0
) -> Iterator[tuple[int, torch.Tensor]]:
    """uint8 batches [n, h, w, c] of the images in order, each with the number of its first row.

    They are decoded ahead of the models. No batch crosses the end of a part, so a job that resumes
    at a part has the same batches as one that read all parts before it.
    """
    decode = Decoder(target.preprocessing, target.border, execution.threads or 1)

    def paths() -> Iterator[list[str]]:
        for part in parts(target.view, ["path"], first):
            every = part["path"].to_list()
            for start in range(0, len(every), execution.batch):
                yield every[start : start + execution.batch]

    def read(some: list[str]) -> torch.Tensor:
        return pinned(torch.from_numpy(decode(some)), execution.device)

    for images in prefetched(read, paths()):
        yield first, images.to(execution.device, non_blocking=True)
        first += len(images)


@dataclass(frozen=True, slots=True)
class PredictionTask:
    """A model that predicts the images of a target, and the file that it ends in.

    ``made_from`` is what the predictions depend on beside the target and the execution: work that
    was kept is taken up only if it is the same.
    """

    target: Path
    loaded: LoadedModel
    metadata: Mapping[str, Any]
    made_from: Mapping[str, Any] = field(default_factory=dict)


class PredictionRun:
    """One model on its way through a streamed target."""

    def __init__(self, task: PredictionTask, streamed: StreamedTarget, execution: Execution):
        self.task, self.streamed = task, streamed
        self.model = str(task.metadata["model"])
        self.count, digest = streamed.ids
        self.card = {
            **task.metadata,
            "ids": digest,
            **described(task.loaded, self.count, execution),
            "columns": ",".join(PREDICTION_COLUMNS),
        }
        told = {name: str(value) for name, value in self.card.items()}
        key = streamed.key_with({**task.made_from, **told, "batch": execution.batch})
        self.rows = ResumableRows(task.target, key, len(PREDICTION_COLUMNS))
        self.sample = SampledLogits.beside(self.rows, task.target, streamed)
        self.held: list[np.ndarray] = []
        self.forward: InPieces | None = None

    @property
    def finished(self) -> bool:
        """Whether all rows are kept."""
        return self.rows.done == self.count

    def load(self, execution: Execution) -> None:
        """Bring the model to its device."""
        pixels = self.streamed.preprocessing.size**2
        self.forward = fitting_forward(self.task.loaded, execution, pixels)

    def take(self, start: int, images: torch.Tensor) -> int:
        """Predict a batch if it is the next one for this model; how many images that were."""
        if start != self.sample.at or self.forward is None:
            return 0
        logits = self.forward(images)
        check_outputs(logits, self.streamed.classes, self.model)
        self.sample.take(logits)
        self.held.append(predictions_of(logits, self.streamed.among))
        if self.sample.at % PART == 0 or self.sample.at == self.count:
            self._keep()
        return len(images)

    def _keep(self) -> None:
        """Put a part on disk: the sample first, so that it never lags behind the predictions."""
        self.sample.keep()
        self.rows.keep(iter([np.concatenate(self.held)]))
        self.held.clear()

    def write(self) -> None:
        """Write the predictions and the sample's logits as one file; what was kept is dropped."""
        _write(self.task.target, self.rows, self.sample, self.count, self.card)
        self.rows.drop()
        self.sample.rows.drop()


def stream(
    runs: Sequence[PredictionRun], streamed: StreamedTarget, execution: Execution
) -> dict[str, str]:
    """Run models over a target in one pass over its images; the mistakes of models that can't.

    Each goes on where it stopped, and images before that are decoded for the others only. A model
    that fails leaves the pass; what it had kept stays.
    """
    going = [run for run in runs if not run.finished]
    mistakes: dict[str, str] = {}
    for run in going:
        run.load(execution)
    first = min((run.rows.done for run in going), default=0)
    what = f"{', '.join(run.model for run in going)} {streamed.view.stem}"
    total = sum(run.count - run.rows.done for run in going)
    with bar(None, what, total) as shown:
        for start, images in batches(streamed, execution, first) if going else ():
            for run in list(going):
                try:
                    shown.update(run.take(start, images))
                except UserError as mistake:
                    mistakes[run.model] = str(mistake)
                    going.remove(run)
            if not going:
                break
    return mistakes


def extract_predictions(
    target: Path,
    streamed: StreamedTarget,
    loaded: LoadedModel,
    metadata: Mapping[str, Any],
    execution: Execution,
    made_from: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Run a model over the images of a target and write one row of predictions per image.

    It resumes where this model stopped before, alone or with others, if ``made_from`` (see
    :class:`PredictionTask`) is the same.
    """
    task = PredictionTask(target, loaded, metadata, made_from)
    run = PredictionRun(task, streamed, execution)
    for mistake in stream([run], streamed, execution).values():
        raise UserError(mistake)
    run.write()


@dataclass(slots=True)
class SampledLogits:
    """The logits of the ``chosen`` rows of a view; ``at`` is the row that comes next."""

    chosen: np.ndarray
    rows: ResumableRows
    at: int
    held: list[np.ndarray] = field(default_factory=list)

    @classmethod
    def beside(cls, rows: ResumableRows, target: Path, streamed: StreamedTarget) -> SampledLogits:
        """What an earlier job kept, up to the rows that it kept; all again where some lack."""
        chosen = sampled_rows(streamed.view)
        kept = ResumableRows(target.with_name(f"{target.name}.sample"), rows.key, streamed.classes)
        wanted = int((chosen < rows.done).sum())
        if kept.done < wanted:
            rows.done = wanted = 0
        kept.done = wanted
        return cls(chosen, kept, rows.done)

    def take(self, logits: np.ndarray) -> None:
        """Hold those of a batch."""
        end = self.at + len(logits)
        own = self.chosen[(self.chosen >= self.at) & (self.chosen < end)]
        self.held.append(logits[own - self.at])
        self.at = end

    def keep(self) -> None:
        """Put what is held on disk."""
        self.rows.keep(iter([np.concatenate(self.held)]))
        self.held.clear()


def _write(
    target: Path, rows: ResumableRows, sample: SampledLogits, count: int, card: Mapping[str, Any]
) -> None:
    """Write the predictions and the sample's logits as one file."""
    chosen, width = sample.chosen, sample.rows.width
    shapes = packed_shapes(len(chosen), width)
    shapes["predictions"] = (np.float32, (count, len(PREDICTION_COLUMNS)))
    with atomic_write(target) as part:
        writer = ArrayWriter(part, shapes, card)
        for start, some in _numbered(rows.parts(PART)):
            writer.put("predictions", some, start)
        for start, some in _numbered(sample.rows.parts(PART)):
            for name, array in packed(some, chosen[start : start + len(some)]).items():
                writer.put(name, array, start)
        writer.close()


def _numbered(parts: Iterator[np.ndarray]) -> Iterator[tuple[int, np.ndarray]]:
    """Parts with the number of their first row."""
    start = 0
    for part in parts:
        yield start, part
        start += len(part)
