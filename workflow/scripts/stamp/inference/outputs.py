"""A model's logits joined to the view that they were made for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from stamp.core.artifacts import array_metadata, ids_digest, read_arrays, read_table


@dataclass(frozen=True, slots=True)
class Outputs:
    """The rows of a view, the logits of one model on them, and its parameter count, if known."""

    rows: pl.DataFrame
    logits: np.ndarray
    parameters: int | None

    def only(self, role: str) -> Outputs:
        """The rows of one role: ``pool`` or ``calibration``."""
        chosen = (self.rows["role"] == role).to_numpy()
        return Outputs(self.rows.filter(chosen), self.logits[chosen], self.parameters)


def _parameters(path: str | Path) -> int | None:
    """How many parameters the model has that a file of outputs is from; None if it was not told."""
    told = array_metadata(path)["parameters"]
    return None if told == "None" else int(told)


def read_outputs(view: str | Path, logits: str | Path, model: str) -> Outputs:
    """A view and a model's logits on it; another model's or another view's are refused."""
    rows = read_table(view)
    digest = ids_digest(rows["image"])
    arrays = read_arrays(logits, model=model, ids=digest)
    return Outputs(rows, arrays["logits"], _parameters(logits))


def read_predictions(view: str | Path, records: str | Path, model: str) -> Outputs:
    """The labels of a streamed view and a model's records on it, in the place of logits."""
    names = pl.scan_parquet(view).collect_schema().names()
    wanted: list[str] = [
        name for name in ("image", "domain", "split", "label", "accepted") if name in names
    ]
    rows = pl.read_parquet(view, columns=wanted)
    arrays = read_arrays(records, model=model, ids=ids_digest(rows["image"]))
    return Outputs(rows, arrays["predictions"], _parameters(records))


def present(logits: np.ndarray) -> np.ndarray:
    """Which classes a model has an output for; the columns of the others are NaN throughout."""
    return ~np.isnan(logits).all(axis=0)


def merged(
    logits: np.ndarray, classes: Sequence[str], merge: Mapping[str, Sequence[str]]
) -> np.ndarray:
    """Logits with a column more for each merged class: the largest of its parts' that are there.

    The largest logit is that of the largest probability, whatever the temperature.
    """
    columns = [logits]
    for parts in merge.values():
        chosen = logits[:, [list(classes).index(part) for part in parts]]
        columns.append(np.fmax.reduce(chosen, axis=1, keepdims=True))
    return np.concatenate(columns, axis=1)


def combined(parts: list[Outputs], split: str | None) -> tuple[pl.DataFrame, np.ndarray]:
    """The labeled rows of several views with their logits; calibration images are left out."""
    rows, logits = [], []
    for part in parts:
        keep = np.ones(len(part.rows), dtype=bool)
        if "role" in part.rows.columns:
            keep &= (part.rows["role"] != "calibration").to_numpy()
        if split is not None:
            keep &= (part.rows["split"] == split).fill_null(False).to_numpy()
        rows.append(part.rows.filter(keep).drop("role", strict=False))
        logits.append(part.logits[keep])
    return pl.concat(rows), np.concatenate(logits)
