"""Images as Python users name them: groups, visits and labels in arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from stamp.api import arrays
from stamp.config.precomputed import PROBABILITIES
from stamp.core.errors import UserError
from stamp.data.views import label_columns, labels


@dataclass(frozen=True, slots=True)
class Images:
    """Who and what the images show, one entry per image: arrays, lists or tensors.

    ``groups`` (patients) and ``visits`` (their order in time) make temporal pairs, ``labels`` class
    pairs: class numbers [n], or 0, 1 and NaN [n, classes] of a multilabel task. ``ids`` are the
    images' names, which fix the order in which pairs are drawn; without them it is that of the
    rows. Groups are left out where every image stands for itself.
    """

    groups: Any = None
    visits: Any = None
    labels: Any = None
    ids: Any = None


def index_of(images: Images, number: int, task: str, classes: Sequence[str]) -> pl.DataFrame:
    """The images as an index: id, group, visit and labels, one row per image."""
    if task not in PROBABILITIES:
        raise UserError(f"settings.task is 'multiclass' or 'multilabel', not '{task}'")
    ids = [f"{row:0{len(str(number))}d}" for row in range(number)]
    if images.ids is not None:
        ids = [str(one) for one in arrays.per_image(images.ids, "images.ids", number)]
        if twice := pl.Series(ids).filter(pl.Series(ids).is_duplicated()).to_list():
            raise UserError(f"images.ids: '{twice[0]}' stands twice")
    columns: dict[str, Any] = {"image": ids, "group": ids, "order": [None] * number}
    if images.groups is not None:
        groups = arrays.per_image(images.groups, "images.groups", number)
        columns["group"] = [str(one) for one in groups]
    if images.visits is not None:
        columns["order"] = arrays.per_image(images.visits, "images.visits", number)
    typed = {"image": pl.String, "group": pl.String, "order": pl.Int64}
    rows = pl.DataFrame(columns, schema=typed, strict=False)
    if images.labels is None:
        return rows
    truth = arrays.numbers(images.labels)
    wanted = (number,) if task == "multiclass" else (number, len(classes))
    if truth.shape != wanted:
        raise UserError(f"images.labels are {list(wanted)}, not {list(truth.shape)}")
    named = dict(zip(label_columns(task, classes), np.atleast_2d(truth.T), strict=True))
    rows = rows.with_columns(
        pl.Series(name, values).fill_nan(None) for name, values in named.items()
    )
    labels(rows, task, classes, "images.labels")
    return rows.with_columns(pl.col(name).cast(pl.Int64) for name in named)
