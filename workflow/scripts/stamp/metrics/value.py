"""The value of a metric, or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

COLUMNS = {
    "metric": pl.String,
    "view": pl.String,
    "domain": pl.String,
    "value": pl.Float64,
    "n": pl.Int64,
    "reason": pl.String,
}
NO_IMAGES = "no images"
NO_OUTPUTS = "no outputs for these classes"
ONE_IMAGE = "fewer than 2 images"
NO_LABELS = "no image has a label"
NO_EXTRA_OUTPUTS = "no extra inference outputs were made"
DEGENERATE = "degenerate: the outputs are nearly the same for every image"


@dataclass(frozen=True, slots=True)
class Value:
    """A metric's value, NaN where it can't be had; ``reason`` says why, or what to know of it."""

    value: float
    reason: str = ""


class Measured(NamedTuple):
    """A metric's value, and the number of images that it is of."""

    value: Value
    n: int


def missing(reason: str) -> Value:
    """No value, for this reason."""
    return Value(float("nan"), reason)
