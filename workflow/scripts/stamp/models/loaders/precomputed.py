"""Outputs that the user brings: logits or probabilities of every image in a file, no model at all.

A file is Parquet or CSV with the column ``image`` and one column per class, or a NumPy array [n, C]
(``outputs.npy``) with the image ids beside it, one a line (``outputs.txt``). Nothing here imports
torch: such a model needs neither it nor pixels.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import polars as pl

from stamp.config.precomputed import PROBABILITIES, file_of, ids_file
from stamp.core.artifacts import ids_digest
from stamp.core.errors import UserError, suggest
from stamp.models import probabilities
from stamp.models.class_matching import choose, lacking

ENDINGS = (".parquet", ".csv", ".npy")
IMAGE = "image"
TWICE = re.compile(r"_duplicated_\d+$")  # how polars calls a column whose name was there before


@dataclass(frozen=True, slots=True)
class Table:
    """The ids of images and a model's outputs [n, outputs] for them, with the outputs' names."""

    ids: pl.Series
    names: list[str]
    values: np.ndarray


def load(block: Mapping[str, Any], classes: Sequence[str], weights: Path | None) -> NoReturn:
    """There is no module: whatever would run one gets the reason."""
    raise UserError("not available: the model is a file of outputs, so nothing can be run")


def read(path: Path, outputs: Sequence[str], classes: Sequence[str]) -> Table:
    """The outputs in a file, each image once, every number finite.

    ``outputs`` names the columns of an array; of a table those of ``classes`` are taken.
    """
    if path.suffix == ".npy":
        table = _array(path, outputs)
    elif path.suffix in (".parquet", ".csv"):
        table = _table(path, classes)
    else:
        raise UserError(f"{path}: is none of {', '.join(ENDINGS)}")
    twice = table.ids.filter(table.ids.is_duplicated())
    if len(twice):
        raise UserError(
            f"{path}: image '{twice[0]}' stands {twice.to_list().count(twice[0])} times"
        )
    wrong = np.argwhere(~np.isfinite(table.values))
    if len(wrong):
        row, column = wrong[0]
        raise UserError(
            f"{path}: image '{table.ids[int(row)]}': {table.names[column]} is empty or not finite"
        )
    return table


def _array(path: Path, outputs: Sequence[str]) -> Table:
    beside = ids_file(path)
    assert beside is not None
    try:
        values = np.load(path, allow_pickle=False)
        ids = beside.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, ValueError, EOFError) as error:
        raise UserError(f"{path}: can't be read: {error}") from None
    if not isinstance(values, np.ndarray):
        raise UserError(f"{path}: holds several arrays (npz), but one is expected")
    if values.dtype.kind not in "fiu":
        raise UserError(f"{path}: holds {values.dtype}, not numbers")
    if values.ndim != 2:
        raise UserError(
            f"{path}: has shape {list(values.shape)}, but [images, classes] is expected"
        )
    if len(ids) != len(values):
        raise UserError(f"{path}: has {len(values)} rows, but {beside} has {len(ids)} image ids")
    if values.shape[1] != len(outputs):
        raise UserError(
            f"{path}: has {values.shape[1]} columns for {len(outputs)} classes: "
            "give outputs, their names in order"
        )
    return Table(pl.Series(IMAGE, ids, pl.String), list(outputs), values.astype(np.float64))


def _table(path: Path, classes: Sequence[str]) -> Table:
    try:
        if path.suffix == ".csv":
            found = pl.read_csv(path, infer_schema_length=None, schema_overrides={IMAGE: pl.String})
        else:
            found = pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        line = str(error).strip().splitlines()[0]
        raise UserError(f"{path}: can't be read: {line}") from None
    # a column without a name, as pandas writes its row numbers, is nobody's
    if twice := next((name for name in found.columns if TWICE.search(name[1:])), None):
        raise UserError(f"{path}: the column '{TWICE.sub('', twice)}' stands twice")
    if IMAGE not in found.columns:
        raise UserError(f"{path}: no column '{IMAGE}': {suggest(IMAGE, found.columns)}")
    kind = found.schema[IMAGE]
    if kind.is_nested() or kind == pl.Binary:
        raise UserError(f"{path}: the column '{IMAGE}' holds {kind}, not image ids")
    columns = [name for name in found.columns if name != IMAGE]
    taken = [columns[one] for one in choose(columns, classes, str(path)) if one is not None]
    for name in taken:
        if not found.schema[name].is_numeric():
            raise UserError(f"{path}: the column '{name}' holds {found.schema[name]}, not numbers")
    values = found.select(pl.col(name).cast(pl.Float64).fill_null(np.nan) for name in taken)
    return Table(found[IMAGE].cast(pl.String), taken, values.to_numpy())


def logits_of(
    block: Mapping[str, Any], view: str, ids: Sequence[str], classes: Sequence[str], task: str
) -> np.ndarray:
    """Logits [ids, classes] of a view's images, in their order; NaN for classes that it lacks."""
    path = file_of(block, view)
    table = read(path, block.get("outputs", list(classes)), classes)
    wanted = pl.DataFrame({IMAGE: list(ids)})
    rows = pl.DataFrame({IMAGE: table.ids}).with_row_index("row")
    found = wanted.join(rows, on=IMAGE, how="left", maintain_order="left")
    absent = found.filter(pl.col("row").is_null())
    if len(absent):
        raise UserError(
            f"{path}: {len(absent)} of the {len(found)} images of the view '{view}' are missing, "
            f"the first is '{absent[IMAGE][0]}'"
        )
    chosen = choose(table.names, classes, f"{path}: outputs")
    values = as_logits(table.values[found["row"].to_numpy()], block, task, path, lacking(chosen))
    whole = np.full((len(values), len(classes)), np.nan, np.float32)
    for place, output in enumerate(chosen):
        if output is not None:
            whole[:, place] = values[:, output]
    return whole


def as_logits(
    values: np.ndarray,
    block: Mapping[str, Any],
    task: str,
    path: Path,
    missing: Sequence[int],
) -> np.ndarray:
    """The values themselves, or the logits of probabilities; it must be told which they are."""
    told = block.get("probabilities")
    if told:
        probabilities.check(values, told, str(path), all_classes=not missing)
        return probabilities.to_logits(values, told)
    if told is None and probabilities.in_percent(values, PROBABILITIES[task]):
        raise UserError(
            f"{path}: all numbers are in [0, 100], so these look like percent: "
            f"{probabilities.PERCENT} and say probabilities: true; if they are logits, say "
            "probabilities: false (--no-probabilities)"
        )
    if told is None and probabilities.looks_like(values, PROBABILITIES[task]):
        raise UserError(
            f"{path}: all numbers are in [0, 1], so these look like probabilities: say "
            "probabilities: true or false (--probabilities or --no-probabilities)"
        )
    return values


def metadata_of(
    model: str,
    view: str,
    block: Mapping[str, Any],
    ids: Sequence[str],
    digests: Sequence[str],
) -> dict[str, Any]:
    """The metadata of a model's outputs on a view: what other models' have, and the file.

    ``digests`` are the SHA-256 of the file and of that of its image ids, if they are apart.
    """
    path = file_of(block, view)
    # one file for all views is the model itself; of several each is of its own view alone
    what = "weights" if "files" not in block else "outputs"
    return {
        "model": model,
        "view": view,
        "ids": ids_digest(ids),
        "images": len(ids),
        "parameters": block.get("parameters"),
        "device": "none",
        f"{what}_file": str(path),
        f"{what}_sha256": " ".join(digests),
    }
