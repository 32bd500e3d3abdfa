"""Which split of an index plays which part in a study, by the usual names."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stamp.core.errors import UserError

TRAIN = ("train", "training")
VAL = ("val", "valid", "validation", "dev")
CALIBRATION = ("calibration", *VAL)
TEST = ("test", "testing")


@dataclass(frozen=True, slots=True)
class Splits:
    """The splits that pairs and calibration images come from, and those that models learn from."""

    pairs: str
    calibration: str
    why_calibration: str
    train: str | None
    val: str | None


def splits_of(index: pl.DataFrame, where: str) -> Splits:
    """The splits' parts; there must be two, since pairs and calibration images are kept apart."""
    sizes = index.drop_nulls("split").group_by("split").len().sort("len", "split", descending=True)
    names = sizes["split"].to_list()
    if len(names) < 2:
        raise UserError(
            f"{where}: has the splits {names}, two are needed: give --option "
            "'splits={calibration: 0.2, test: 0.8}', which draws them"
        )
    train, val = _first(names, TRAIN), _first(names, VAL)
    others = [name for name in names if name not in (train, val, _first(names, CALIBRATION))]
    pairs = _first(names, TEST) or next(iter(others), None) or val or names[0]
    calibration = _first([name for name in names if name != pairs], CALIBRATION)
    why = "kept apart from the pairs"
    if calibration is None:
        left = [name for name in names if name not in (pairs, train)]
        calibration = left[0] if left else train
        if not left:
            why = "since there is no other: models that learned its images look too sure there"
    assert calibration is not None
    return Splits(pairs, calibration, why, train, val if val != pairs else None)


def _first(names: list[str], usual: tuple[str, ...]) -> str | None:
    """The split with the first of some usual names, in any case of letters."""
    known = {name.lower(): name for name in reversed(names)}
    return next((known[one] for one in usual if one in known), None)
