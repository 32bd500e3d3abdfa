"""What the metrics are made from, read from the files of a study."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from stamp.inference.outputs import read_outputs, read_predictions
from stamp.metrics.measure import Material, Records, columns_of
from stamp.scoring.score import pair_rows

Files = Iterable[str | Path]
CONFIDENCE, ENTROPY = 2, 3  # of ``PREDICTION_COLUMNS`` in ``stamp.inference.outputs``


def cached(
    names: Sequence[str], views: Files, logits: Files, model: str, how: Sequence[Any]
) -> dict[str, tuple[Material, pl.Series]]:
    """A model's outputs on each target whose logits are kept, and the images' domains.

    ``how`` is what :meth:`Material.read` takes: classes, those that are there, task, temperature.
    """
    found = {}
    for name, view, file in zip(names, views, logits, strict=True):
        outputs = read_outputs(view, file, model)
        found[name] = (Material.read(outputs, *how), outputs.rows["domain"])
    return found


def streamed(
    names: Sequence[str], views: Files, records: Files, model: str
) -> dict[str, tuple[Records, pl.Series]]:
    """A model's records on each streamed target, and the images' domains."""
    found = {}
    for name, view, file in zip(names, views, records, strict=True):
        outputs = read_predictions(view, file, model)
        kept = Records(outputs.logits[:, CONFIDENCE], outputs.logits[:, ENTROPY])
        found[name] = (kept, outputs.rows["domain"])
    return found


def images_of(names: Sequence[str], views: Mapping[str, str | Path]) -> dict[str, list[str]]:
    """The image ids of some targets' views."""
    read = {name: pl.read_parquet(views[name], columns=["image"]) for name in names}
    return {name: table["image"].to_list() for name, table in read.items()}


def columns(
    scored: Mapping[str, Mapping[str, Any]],
    views: Mapping[str, str | Path],
    classes: Sequence[str],
    there: np.ndarray,
    task: str,
) -> dict[str, dict[str, list[int]]]:
    """Which outputs estimates for each target are made from, see :func:`columns_of`."""
    return {
        name: columns_of(scored[name], classes, there, task, view) for name, view in views.items()
    }


def first_pairs(
    pairs: pl.DataFrame, kinds: Sequence[str], number: int, images: pl.Series
) -> list[tuple[np.ndarray, np.ndarray]]:
    """The first ``number`` pairs of each kind, as row numbers of the pool's images."""
    return [pair_rows(pairs.filter(pl.col("kind") == kind).head(number), images) for kind in kinds]
