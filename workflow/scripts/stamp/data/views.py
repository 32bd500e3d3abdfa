"""Views: ordered lists of images, with their labels, that a model is run on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from stamp.core import shown_text
from stamp.core.errors import UserError, suggest

COLUMNS = {
    "image": pl.String,
    "path": pl.String,
    "group": pl.String,
    "order": pl.Int32,
    "domain": pl.String,
    "split": pl.String,
}


def label_columns(task: str, classes: Sequence[str]) -> list[str]:
    """The label columns of an index: ``label``, or one per class."""
    return ["label"] if task == "multiclass" else list(classes)


def check_index(index: pl.DataFrame, dataset: str) -> pl.DataFrame:
    """The index with its fixed columns typed, or what is wrong with it in one line."""
    missing = [name for name in COLUMNS if name not in index.columns]
    if missing:
        raise UserError(f"data set '{dataset}': the index has no column '{missing[0]}'")
    if index.is_empty():
        raise UserError(f"data set '{dataset}': the index has no image")
    twice = index.filter(pl.col("image").is_duplicated())
    if not twice.is_empty():
        raise UserError(f"data set '{dataset}': image '{twice['image'][0]}' stands twice")
    domains = index["domain"].cast(pl.String).unique().drop_nulls().sort()
    shown_text.check(domains, f"data set '{dataset}': domain")
    return index.with_columns(pl.col(name).cast(kind) for name, kind in COLUMNS.items())


def select(index: pl.DataFrame, wanted: Mapping[str, Any], where: str) -> pl.DataFrame:
    """The rows of the wanted domains and split (or splits), in the index's order."""
    rows, split = index, wanted.get("split")
    splits = [split] if isinstance(split, str) else split
    for column, values in (("domain", wanted.get("domains")), ("split", splits)):
        if values is None:
            continue
        known = rows[column].drop_nulls().unique().to_list()
        for value in values:
            if value not in known:
                raise UserError(f"{where}: unknown {column} '{value}': {suggest(value, known)}")
        rows = rows.filter(pl.col(column).is_in(values))
    return rows


def labels(rows: pl.DataFrame, task: str, classes: Sequence[str], where: str) -> np.ndarray:
    """Labels as float64, NaN where unlabeled: class numbers [n] (multiclass) or 0/1 [n, C]."""
    columns = label_columns(task, classes)
    for name in columns:
        if name not in rows.columns:
            raise UserError(f"{where}: no label column '{name}': {suggest(name, rows.columns)}")
        if not (rows.schema[name].is_numeric() or rows.schema[name] in (pl.Null, pl.Boolean)):
            raise UserError(f"{where}: {_no_label(rows, name)}")
    found = rows.select(pl.col(name).cast(pl.Float64) for name in columns).to_numpy()
    allowed = np.arange(len(classes)) if task == "multiclass" else np.arange(2)
    wrong = np.argwhere(~np.isnan(found) & ~np.isin(found, allowed))
    if len(wrong):
        row, column = wrong[0]
        raise UserError(
            f"{where}: image '{rows['image'][int(row)]}': {columns[column]} is "
            f"{found[row, column]:g}, but must be {allowed[0]} to {allowed[-1]} or empty"
        )
    return found[:, 0] if task == "multiclass" else found


def _no_label(rows: pl.DataFrame, name: str) -> str:
    """The first cell of a column of texts that is no number."""
    texts = rows.select("image", pl.col(name).cast(pl.String)).drop_nulls()
    wrong = texts.filter(pl.col(name).cast(pl.Float64, strict=False).is_null())
    first = (wrong if len(wrong) else texts).row(0, named=True)
    return f"image '{first['image']}': {name} is '{first[name]}', but must be a number or empty"


def scored_classes(
    among: str | Sequence[str] | None, classes: Sequence[str], view: str | Path
) -> np.ndarray:
    """The numbers of the classes among which predictions are taken.

    All of them for None; for ``labeled``, those that some image of the view may be.
    """
    if among is None:
        return np.arange(len(classes))
    if among != "labeled":
        number = {name: place for place, name in enumerate(classes)}
        return np.sort(np.array([number[name] for name in among], dtype=np.int64))
    lazy = pl.scan_parquet(view)
    names = lazy.collect_schema().names()
    column = pl.col("accepted").explode() if "accepted" in names else pl.col("label")
    found = lazy.select(column.alias("label")).unique().collect()["label"].drop_nulls()
    return np.sort(found.to_numpy().astype(np.int64))


def keep(rows: pl.DataFrame, task: str, classes: Sequence[str], where: str) -> pl.DataFrame:
    """The columns of a view: the fixed ones and the labels of the study's classes, checked."""
    labels(rows, task, classes, where)
    if task == "multiclass" and "class" in rows.columns:
        check_order(rows, classes, where)
    kind = pl.Int16 if task == "multiclass" else pl.Int8
    columns = label_columns(task, classes)
    more = [pl.col("accepted").cast(pl.List(pl.Int16))] if "accepted" in rows.columns else []
    return rows.select(*COLUMNS, *(pl.col(name).cast(kind) for name in columns), *more)


def check_order(rows: pl.DataFrame, classes: Sequence[str], where: str) -> None:
    """Refuse an index whose numbers stand for other classes than the study's, by its names."""
    known = rows.filter(pl.col("label").is_not_null() & pl.col("class").is_not_null())
    of_study = pl.Series(list(classes), dtype=pl.String).gather(known["label"].cast(pl.UInt32))
    wrong = (of_study != known["class"]).arg_true()
    if len(wrong):
        first = known.row(int(wrong[0]), named=True)
        raise UserError(
            f"{where}: image '{first['image']}' is of class '{first['class']}', number "
            f"{first['label']} of the data set, but that number is '{of_study[int(wrong[0])]}' in "
            "the study: give the data set the option 'classes' in the study's order"
        )
