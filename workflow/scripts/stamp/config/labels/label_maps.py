"""Label maps: which label of a data set stands for which class of a study, as shipped data."""

from __future__ import annotations

import hashlib
from pathlib import Path

from stamp.core.errors import UserError
from stamp.core.shipped import RESOURCES

FOLDER = RESOURCES / "labels"


def file_of(name: str) -> Path:
    """Where the map of a data set lies."""
    return FOLDER / f"{name}.csv"


def digest(name: str) -> str | None:
    """A digest of a map's file, None where the data set has none."""
    file = file_of(name)
    return hashlib.sha256(file.read_bytes()).hexdigest()[:16] if file.is_file() else None


def read(name: str) -> dict[str, str]:
    """The classes of a data set's own labels, in the file's order."""
    file = file_of(name)
    if not file.is_file():
        raise UserError(f"{file}: no such label map")
    import polars as pl  # planning reads digests only

    table = pl.read_csv(file, schema={"label": pl.String, "class": pl.String})
    twice = table.filter(pl.col("label").is_duplicated())
    if len(twice):
        raise UserError(f"{file}: label '{twice['label'][0]}' stands twice")
    return dict(table.iter_rows())
