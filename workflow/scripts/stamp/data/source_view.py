"""The source view: the images of a study's pairs, and its calibration images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from stamp.core.errors import UserError
from stamp.data.pairs import pool
from stamp.data.views import keep, select


@dataclass(frozen=True, slots=True)
class SourceViewSettings:
    """Which images of the source a study uses, and the labels that they carry."""

    images: Mapping[str, Any]
    split: str  # of the calibration images
    number: int  # of calibration images
    task: str
    classes: Sequence[str]
    seed: int

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> SourceViewSettings:
        """The settings among the ``params`` of a rule."""
        return cls(**{name: params[name] for name in cls.__dataclass_fields__})


def source_view(
    index: pl.DataFrame, pairs: pl.DataFrame, settings: SourceViewSettings, where: str
) -> pl.DataFrame:
    """The images of all pairs, then the calibration images, each with its ``role``."""
    task, classes, at = settings.task, settings.classes, f"{where}: calibration"
    source = select(index, {**settings.images, "split": None}, at)
    candidates = select(source, {"split": settings.split}, at)
    held_out = calibration_rows(candidates, settings.number, settings.seed, at)
    known = keep(source, task, classes, f"{where}: source")
    return with_roles(known, pool(pairs), keep(held_out, task, classes, at), at)


def calibration_rows(rows: pl.DataFrame, count: int, seed: int, where: str) -> pl.DataFrame:
    """``count`` images of the calibration split, a fixed random choice; fewer are an error."""
    if len(rows) < count:
        raise UserError(
            f"{where}: {len(rows)} calibration images are there, {count} were asked for"
        )
    order = np.random.default_rng([seed, 0xCA11]).permutation(len(rows))[:count]
    return rows.sort("image")[np.sort(order)]


def with_roles(
    index: pl.DataFrame, pool: Sequence[str], calibration: pl.DataFrame, where: str
) -> pl.DataFrame:
    """The pool's and the calibration images, each with its ``role``; they may not overlap."""
    chosen = pl.DataFrame({"image": list(pool)}).join(
        index, on="image", how="left", maintain_order="left"
    )
    shared = calibration.filter(pl.col("image").is_in(list(pool)))
    if not shared.is_empty():
        raise UserError(
            f"{where}: image '{shared['image'][0]}' is in the calibration split and in the pool"
        )
    return pl.concat(
        [
            chosen.with_columns(role=pl.lit("pool")),
            calibration.with_columns(role=pl.lit("calibration")),
        ]
    )
