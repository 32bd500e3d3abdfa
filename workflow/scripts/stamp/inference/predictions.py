"""Targets too large for a pixel cache and for logits: read image by image, one record each.

A record is four numbers: the predicted class among those that the target is scored on, the
predicted class among all, and the largest probability and the entropy (nats) of the softmax over
the former. Images are decoded by threads while the model runs, and both the list of images and the
records are taken in parts, so memory does not grow with the number of images. A job that was killed
goes on after the last part that it kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl
import torch

from stamp.config.preprocessing import Preprocessing
from stamp.core.array_writer import RowWriter
from stamp.core.artifacts import atomic_write
from stamp.core.progress import bar
from stamp.images.pixels import decode
from stamp.inference.extra_outputs.manifest import key_of
from stamp.inference.logits import Forward, check_outputs
from stamp.inference.prediction_columns import COLUMNS, predictions_of
from stamp.inference.resume import Unfinished
from stamp.models.loaded import Loaded

PART = 4096
AHEAD = 2


def parts(view: str | Path, columns: Sequence[str], first: int = 0) -> Iterator[pl.DataFrame]:
    """Columns of a view from a row on, some thousand rows at a time."""
    lazy = pl.scan_parquet(view).select(columns)
    total = lazy.select(pl.len()).collect().item()
    for start in range(first, total, PART):
        yield lazy.slice(start, PART).collect()


def count_and_digest(view: str | Path) -> tuple[int, str]:
    """How many images a view has, and the digest of their ids as :func:`stamp.core.artifacts.ids_digest`'s."""
    state, count = hashlib.sha256(), 0
    for part in parts(view, ["image"]):
        state.update("".join(f"{one}\0" for one in part["image"]).encode())
        count += len(part)
    return count, state.hexdigest()[:16]


def batches(
    view: str | Path, how: Preprocessing, size: int, threads: int, border: int = 0, first: int = 0
) -> Iterator[torch.Tensor]:
    """uint8 batches [n, h, w, c] of a view's images in order, decoded ahead of the model.

    No batch reaches over the end of a part, so that those from a part on are the same ones whether
    or not the parts before it were read.
    """
    with ThreadPoolExecutor(threads) as workers:
        waiting: list[list[Future[np.ndarray]]] = []
        for part in parts(view, ["path"], first):
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
    """Rows of batches, those of a part together; no batch reaches over the end of one."""
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
    view: Path,
    loaded: Loaded,
    how: Preprocessing,
    classes: Sequence[str],
    among: np.ndarray,
    device: str,
    metadata: Mapping[str, Any],
    threads: int,
    border: int = 0,
    batch: int = 128,
    made_from: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Run a model over the images of a view and write one record an image.

    ``made_from`` is what decides the records beside the other arguments: those that an earlier job
    kept are taken up if it is the same.
    """
    torch.set_num_threads(threads)
    forward = Forward(loaded, device)
    model, (count, digest) = str(metadata["model"]), count_and_digest(view)
    card = {
        **metadata,
        "ids": digest,
        "parameters": loaded.parameters,
        "images": count,
        "device": device,
        "columns": ",".join(COLUMNS),
        **{f"weights_{key}": value for key, value in loaded.origin.items()},
    }
    asked = {"how": str(how), "among": among.tolist(), "border": border, "batch": batch}
    key = key_of({**made_from, **asked, **{name: str(value) for name, value in card.items()}})
    unfinished = Unfinished(target, key, len(COLUMNS))
    with bar(None, f"{model} {metadata['view']}", count) as shown:
        shown.update(unfinished.done)

        def found() -> Iterator[np.ndarray]:
            for images in batches(view, how, batch, threads, border, unfinished.done):
                logits = forward(images)
                check_outputs(logits, len(classes), model)
                yield predictions_of(logits, among)
                shown.update(len(logits))

        unfinished.keep(by_part(found()))
    with atomic_write(target) as part:
        writer = RowWriter(part, "predictions", (count, len(COLUMNS)), card)
        for rows in unfinished.parts(PART):
            writer.append(rows)
        writer.close()
    unfinished.drop()
