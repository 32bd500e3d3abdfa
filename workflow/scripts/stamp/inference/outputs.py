"""One model's outputs on a view: logits or, for a streamed target, predictions.

Of an image of a streamed target four numbers are kept: the predicted class among those that the
target is scored on, the predicted class among all, and the largest probability and the entropy
(nats) of the softmax over the former. A sample of the images has its logits kept as well, see
``stamp.inference.streamed_sample``. Nothing here needs torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from stamp.core.artifacts import array_metadata, ids_digest, read_arrays, read_table
from stamp.inference.streamed_sample import unpacked

PREDICTION_COLUMNS = ("predicted", "predicted_of_all", "confidence", "entropy")


@dataclass(frozen=True, slots=True)
class Outputs:
    """The rows of a view, one model's logits on them, and its parameter count, if known.

    For a streamed target ``logits`` are predictions, see ``PREDICTION_COLUMNS``, and ``sample`` has
    the row numbers and the logits of some images.
    """

    rows: pl.DataFrame
    logits: np.ndarray
    parameters: int | None
    sample: tuple[np.ndarray, np.ndarray] | None = None

    def only(self, role: str) -> Outputs:
        """The rows of one role: ``pool`` or ``calibration``."""
        chosen = (self.rows["role"] == role).to_numpy()
        return Outputs(self.rows.filter(chosen), self.logits[chosen], self.parameters)


def _parameters(path: str | Path) -> int | None:
    """The parameter count of the model that a file of outputs is from; None if unknown."""
    told = array_metadata(path)["parameters"]
    return None if told == "None" else int(told)


def read_outputs(view: str | Path, logits: str | Path, model: str) -> Outputs:
    """A view and a model's logits on it; another model's or another view's are refused."""
    rows = read_table(view)
    digest = ids_digest(rows["image"])
    arrays = read_arrays(logits, model=model, ids=digest)
    return Outputs(rows, arrays["logits"], _parameters(logits))


def read_predictions(view: str | Path, predictions: str | Path, model: str) -> Outputs:
    """The labels of a streamed view and a model's predictions on it, in the place of logits."""
    names = pl.scan_parquet(view).collect_schema().names()
    wanted: list[str] = [
        name for name in ("image", "group", "domain", "split", "label", "accepted") if name in names
    ]
    rows = pl.read_parquet(view, columns=wanted)
    arrays = read_arrays(predictions, model=model, ids=ids_digest(rows["image"]))
    return Outputs(rows, arrays["predictions"], _parameters(predictions), unpacked(arrays))


def predictions_of(logits: np.ndarray, among: np.ndarray) -> np.ndarray:
    """Predictions [n, 4] from logits [n, C]; ``among`` are the numbers of the scored classes."""
    z = logits[:, among].astype(np.float64)
    z -= z.max(axis=1, keepdims=True)
    p = np.exp(z)
    p /= p.sum(axis=1, keepdims=True)
    entropy = -np.sum(p * np.log(np.clip(p, 1e-12, None)), axis=1)
    chosen = among[z.argmax(axis=1)]
    return np.stack([chosen, logits.argmax(axis=1), p.max(axis=1), entropy], axis=1)


def present(logits: np.ndarray) -> np.ndarray:
    """Which classes a model has an output for; the columns of the others are all NaN."""
    return ~np.isnan(logits).all(axis=0)


def merged(
    logits: np.ndarray, classes: Sequence[str], merge: Mapping[str, Sequence[str]]
) -> np.ndarray:
    """Logits with one more column per merged class: the largest logit of its parts that exist.

    The largest logit belongs to the largest probability, whatever the temperature.
    """
    columns = [logits]
    for parts in merge.values():
        chosen = logits[:, [list(classes).index(part) for part in parts]]
        columns.append(np.fmax.reduce(chosen, axis=1, keepdims=True))
    return np.concatenate(columns, axis=1)


def merged_labels(
    labels: np.ndarray, classes: Sequence[str], merge: Sequence[Sequence[str]]
) -> np.ndarray:
    """Labels of merged classes [n, merged]: 1 where a part is, 0 where all are, NaN otherwise."""
    columns = [np.empty((len(labels), 0))]
    for parts in merge:
        chosen = labels[:, [list(classes).index(part) for part in parts]]
        whole = np.where((chosen == 1).any(axis=1), 1.0, chosen.max(axis=1))
        columns.append(whole[:, None])
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
