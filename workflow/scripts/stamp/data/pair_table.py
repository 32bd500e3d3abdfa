"""A study's pairs of every kind in one table: the headline's first, random last.

Rows of a kind stand in the order in which they were drawn, so the first N of them are the pairs of
a study with a smaller N.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from stamp.core.errors import UserError
from stamp.data.pairs import class_pairs, endpoints, pool, random_pairs, sample, semantic_pairs
from stamp.data.views import calibration_rows, keep, label_columns, select, source_view


def drawn(
    rows: pl.DataFrame,
    kind: str,
    count: int,
    settings: Mapping[str, Any],
    columns: Sequence[str],
    seed: int,
) -> pl.DataFrame:
    """``count`` semantic pairs of one kind, in their fixed order."""
    if kind == "class":
        return class_pairs(rows, count, seed)
    how = (settings["mode"], settings["order"])
    eligible = semantic_pairs(rows, kind, *how, columns, settings["same"])
    return sample(eligible, count, seed, kind)


def study_pairs(
    rows: pl.DataFrame,
    settings: Mapping[str, Any],
    task: str,
    classes: Sequence[str],
    seed: int,
    where: str,
) -> pl.DataFrame:
    """All pairs of a study with their ``kind``, from the index rows that pairs may use."""
    columns = label_columns(task, classes)
    wanted = {settings["semantic"]: settings["max_pairs"]}
    wanted |= {kind: count for kind, count in settings["also"].items() if kind not in wanted}
    try:
        parts = {
            kind: drawn(rows, kind, count, settings, columns, seed)
            for kind, count in wanted.items()
        }
        semantic = parts[settings["semantic"]]
        images = endpoints(semantic) if settings["pool"] == "reuse" else rows
        images = images.select("image", "group")
        parts["random"] = random_pairs(images, settings["max_pairs"], seed, settings["random"])
    except UserError as mistake:
        raise UserError(f"{where}: {mistake}") from None
    return pl.concat(part.with_columns(kind=pl.lit(kind)) for kind, part in parts.items())


def source_rows(
    index: pl.DataFrame,
    pairs: pl.DataFrame,
    images: Mapping[str, Any],
    calibration: tuple[str, int],
    task: str,
    classes: Sequence[str],
    seed: int,
    where: str,
) -> pl.DataFrame:
    """The source view: the images of all pairs, then the calibration images (split and count)."""
    split, number = calibration
    at = f"{where}: calibration"
    source = select(index, {**images, "split": None}, at)
    held_out = calibration_rows(select(source, {"split": split}, at), number, seed, at)
    known = keep(source, task, classes, f"{where}: source")
    return source_view(known, pool(pairs), keep(held_out, task, classes, at), at)
