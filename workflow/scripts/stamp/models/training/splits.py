"""The train and the val split that a network is fine-tuned and chosen on; pixels stay on disk."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from stamp.core.artifacts import read_json, read_table
from stamp.data import views
from stamp.images.pixel_cache import PixelCache
from stamp.images.prefetch import ahead_on, pinned, prefetched


@dataclass(frozen=True, slots=True)
class TrainingSplit:
    """The images of one split: pixels on disk, labels, which rows are labeled, and a digest."""

    cache: PixelCache
    labels: np.ndarray
    rows: np.ndarray
    digest: str


@dataclass(frozen=True, slots=True)
class SplitFiles:
    """The files of a split: its view, its pixel cache and the record of the cache."""

    view: str | Path
    pixels: str | Path
    record: str | Path


def split_of(cache: PixelCache, labels: np.ndarray, record: Mapping[str, Any]) -> TrainingSplit:
    """A split from its pixels, its labels (NaN where unlabeled) and the record of its cache."""
    known = ~np.isnan(labels.reshape(len(labels), -1)).all(axis=1)
    kept = labels.astype(np.float32)
    state = hashlib.sha256(json.dumps(record, sort_keys=True).encode() + kept.tobytes())
    return TrainingSplit(cache, kept, np.flatnonzero(known), state.hexdigest()[:16])


def read_split(
    name: str, files: SplitFiles, study: str, task: str, classes: Sequence[str]
) -> TrainingSplit:
    """A split of a study, read from its files."""
    rows = read_table(files.view, study=study, view=name)
    truth = views.labels(rows, task, classes, f"study '{study}': view '{name}'")
    cache = PixelCache(Path(files.pixels), Path(files.record), rows["image"].to_list())
    return split_of(cache, truth, read_json(files.record))


def read_splits(
    inputs: Any, study: str, task: str, classes: Sequence[str]
) -> tuple[TrainingSplit, TrainingSplit]:
    """The train and the val split of a job's input files: ``view``, ``val_view`` and so on."""
    train = SplitFiles(inputs.view, inputs.pixels, inputs.record)
    val = SplitFiles(inputs.val_view, inputs.val_pixels, inputs.val_record)
    return (
        read_split("train", train, study, task, classes),
        read_split("val", val, study, task, classes),
    )


def batches(
    split: TrainingSplit, groups: Sequence[np.ndarray], device: str
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Pixels and labels of each group of rows; on CUDA the next are read and pinned meanwhile."""

    def read(rows: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        pixels, labels = split.cache.take(rows), split.labels[rows]
        return pinned(torch.from_numpy(pixels), device), pinned(torch.from_numpy(labels), device)

    return prefetched(read, groups, ahead_on(device))
