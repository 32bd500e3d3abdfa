"""Predictions on targets too large for a pixel cache and for logits: images are streamed.

Images are decoded by threads while the model runs. Both the list of images and the predictions are
handled in parts, so memory does not grow with the number of images. A job that was killed resumes
after the last part that it kept. ``stamp.inference.outputs`` says what is kept of each image. The
logits of a small sample of the images are kept too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl
import torch

from stamp.config.preprocessing import Preprocessing
from stamp.core.array_writer import ArrayWriter
from stamp.core.artifacts import atomic_write
from stamp.core.progress import bar
from stamp.images.pixels import decode
from stamp.inference.logits import Execution, Forward, check_outputs, described
from stamp.inference.outputs import PREDICTION_COLUMNS, predictions_of
from stamp.inference.provenance import key_of
from stamp.inference.resume import ResumableRows
from stamp.inference.streamed_sample import packed, packed_shapes, sampled_rows
from stamp.models.loaded_model import LoadedModel

PART = 4096
AHEAD = 2


@dataclass(frozen=True, slots=True)
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
    target: StreamedTarget, size: int, threads: int, first: int = 0
) -> Iterator[torch.Tensor]:
    """uint8 batches [n, h, w, c] of the images in order, decoded ahead of the model.

    No batch crosses the end of a part, so a job that resumes at a part has the same batches as one
    that read all parts before it.
    """
    how, border = target.preprocessing, target.border
    with ThreadPoolExecutor(threads) as workers:
        waiting: list[list[Future[np.ndarray]]] = []
        for part in parts(target.view, ["path"], first):
            paths = part["path"].to_list()
            for start in range(0, len(paths), size):
                group = paths[start : start + size]
                waiting.append([workers.submit(decode, path, how, border) for path in group])
                if len(waiting) > AHEAD:
                    yield _stacked(waiting.pop(0))
        while waiting:
            yield _stacked(waiting.pop(0))


def _stacked(images: list[Future[np.ndarray]]) -> torch.Tensor:
    return torch.from_numpy(np.stack([image.result() for image in images]))


def by_part(found: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    """The rows of all batches of a part together; no batch crosses the end of a part."""
    held: list[np.ndarray] = []
    for rows in found:
        held.append(rows)
        if sum(map(len, held)) >= PART:
            yield np.concatenate(held)
            held = []
    if held:
        yield np.concatenate(held)


def extract_predictions(
    target: Path,
    streamed: StreamedTarget,
    loaded: LoadedModel,
    metadata: Mapping[str, Any],
    execution: Execution,
    made_from: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Run a model over the images of a target and write one row of predictions per image.

    ``made_from`` is what the predictions depend on beside the other arguments: the job resumes
    where an earlier one stopped only if it is the same.
    """
    threads = execution.threads or 1
    torch.set_num_threads(threads)
    forward = Forward(loaded, execution.device)
    model, (count, digest) = str(metadata["model"]), count_and_digest(streamed.view)
    card = {
        **metadata,
        "ids": digest,
        **described(loaded, count, execution.device),
        "columns": ",".join(PREDICTION_COLUMNS),
    }
    rows = ResumableRows(
        target, _key(made_from, streamed, execution.batch, card), len(PREDICTION_COLUMNS)
    )
    sample = SampledLogits.beside(rows, target, streamed)
    with bar(None, f"{model} {metadata['view']}", count) as shown:
        shown.update(rows.done)

        def predicted() -> Iterator[np.ndarray]:
            for images in batches(streamed, execution.batch, threads, rows.done):
                logits = forward(images)
                check_outputs(logits, streamed.classes, model)
                sample.take(logits)
                yield predictions_of(logits, streamed.among)
                shown.update(len(logits))

        # the sample first: what is kept of it never lags behind the predictions
        rows.keep(sample.kept_before(by_part(predicted())))
    _write(target, rows, sample, count, card)
    rows.drop()
    sample.rows.drop()


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

    def kept_before(self, parts: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
        """Parts of other rows; before each, what is held is on disk."""
        for part in parts:
            self.rows.keep(iter([np.concatenate(self.held)]))
            self.held.clear()
            yield part


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


def _key(
    made_from: Mapping[str, Any], streamed: StreamedTarget, batch: int, card: Mapping[str, Any]
) -> str:
    """A digest of everything that predictions depend on."""
    how = {
        "how": str(streamed.preprocessing),
        "among": streamed.among.tolist(),
        "border": streamed.border,
        "batch": batch,
    }
    return key_of({**made_from, **how, **{name: str(value) for name, value in card.items()}})
