"""What one model's cached outputs show beyond its score, one module a profile.

A module has ``rows(material)``, the rows of a tidy table with the columns ``PROFILE``. A quantity
that a model has not stands there with the reason. No module knows models, pixels or torch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

PROFILE = {
    "model": pl.String,
    "quantity": pl.String,
    "part": pl.String,
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "n": pl.Int64,
    "reason": pl.String,
}


def entry(quantity: str, part: Any = None, value: float | None = None, **more: Any) -> dict:
    """One row: a quantity, which part of it (a layer, a gap, a draw), and its value or reason."""
    row = {"quantity": quantity, "part": None if part is None else str(part), "value": value}
    return {**row, **more}


def as_table(model: str, rows: list[dict[str, Any]]) -> pl.DataFrame:
    """The rows of one model as a table; what is not a finite number is null."""
    filled = [{**dict.fromkeys(PROFILE), **row, "model": model} for row in rows]
    table = pl.DataFrame(filled, schema=PROFILE, orient="row")
    return table.with_columns(
        pl.when(pl.col(pl.Float64).is_finite()).then(pl.col(pl.Float64)).name.keep()
    )


def finite(value: float) -> float | None:
    """The number, or None where it is none."""
    return float(value) if np.isfinite(value) else None
