"""A user's own images by a table: one row per image, with its file, group, order and labels.

The table is comma-, semicolon- or tab-separated text or Parquet. Columns are named by options; an
option that is not given takes the first column of its usual names, if there is one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from stamp.core.errors import UserError, suggest
from stamp.data import table_files
from stamp.data.adapter_options import choose
from stamp.data.splits import checked_shares, drawn
from stamp.data.table_files import ROW
from stamp.data.views import COLUMNS

HELP = (
    "put the table that option 'table' names and its images into the data set's folder, or set its "
    "'root': config/README.md, 'Your own images'"
)
OPTIONS: dict[str, Any] = {
    "table": "table.csv",
    "delimiter": "auto",
    "images": ".",
    "image": None,
    "id": None,
    "group": None,
    "order": None,
    "split": None,
    "splits": None,
    "unit": None,
    "domain": None,
    "label": None,
    "labels": None,
    "classes": None,
}
# Names of columns that an option takes by itself, in any case, with spaces or underscores.
USUAL = {
    "image": ("image", "path", "file", "filename", "file_name", "image_path"),
    "group": ("group", "patient", "patient_id", "subject", "subject_id"),
    "order": ("order", "visit", "date", "visit_date", "study_date"),
    "split": ("split",),
    "domain": ("domain",),
    "label": ("label",),
}
EITHER = {"split": "splits", "label": "labels"}
WHAT = {
    "image": "the image's file",
    "id": "the image's name",
    "group": "who or what it shows",
    "order": "visit or date",
    "split": "split",
    "unit": "who never crosses splits",
    "domain": "domain",
    "label": "class",
}
RESERVED = (*COLUMNS, "label", "class", "accepted", "role")
DOMAIN = "own"


def index(options: Mapping[str, Any], root: Path, seed: int) -> pl.DataFrame:
    """The index of the table's images, in its order.

    ``order`` is the visit's place within its group, equal for equal dates. A multiclass ``label``
    is the class's number in ``classes``, by default the sorted names, and ``class`` its name. Class
    columns hold 0, 1 or null. All other columns are kept as they are. Without a group, images of a
    class are one, and without classes each image is its own.
    """
    chosen = choose("csv", options, OPTIONS)
    file = root / str(chosen["table"])
    table = table_files.read(file, str(chosen["delimiter"]), HELP)
    if table.is_empty():
        raise UserError(f"{file}: has no row")
    named = _columns(chosen, table, file)
    paths = _paths(table, named["image"], file, root, chosen)
    ids = _ids(table, named.get("id") or named["image"], file)
    labels = _labels(chosen, table, named, file)
    groups, units = _groups(table, named, labels, ids, file)
    split = _split(chosen, table, named, units, seed)
    rows = pl.DataFrame({"image": ids, "path": paths, "group": groups}).with_columns(
        order=_order(table, named, groups, file),
        domain=table[named["domain"]] if "domain" in named else pl.lit(DOMAIN),
        split=split,
    )
    roles = {column for role, column in named.items() if role != "unit"}
    used = {*roles, *labels.columns, *_class_columns(chosen).values(), *RESERVED, ROW}
    others = [table_files.typed(table[name]) for name in table.columns if name not in used]
    return pl.concat([rows, labels, pl.DataFrame(others)], how="horizontal")


def tables(options: Mapping[str, Any], root: Path) -> list[Path]:
    """The files that the index is made of."""
    return [root / str(choose("csv", options, OPTIONS)["table"])]


def files(options: Mapping[str, Any], root: Path) -> Iterable[str]:
    """The image files that the table names."""
    chosen = choose("csv", options, OPTIONS)
    file = root / str(chosen["table"])
    table = table_files.read(file, str(chosen["delimiter"]), HELP)
    return _paths(table, _columns(chosen, table, file)["image"], file, root, chosen)


def roles(options: Mapping[str, Any], root: Path) -> dict[str, str]:
    """The column that each role is taken from, as named by the options or by its usual name."""
    chosen = choose("csv", options, OPTIONS)
    file = root / str(chosen["table"])
    return _columns(chosen, table_files.read(file, str(chosen["delimiter"]), HELP), file)


def usual_column(role: str, columns: Iterable[str]) -> str | None:
    """The column with the first of a role's usual names; one that is written so comes first."""
    there = {name.lower().replace(" ", "_"): name for name in columns}
    there |= {name: name for name in columns}
    return next((there[name] for name in USUAL.get(role, ()) if name in there), None)


def _columns(chosen: Mapping[str, Any], table: pl.DataFrame, file: Path) -> dict[str, str]:
    """The column of each role that has one."""
    found: dict[str, str] = {}
    for role, what in WHAT.items():
        if chosen[role] is not None:
            found[role] = table_files.column(
                table, str(chosen[role]), f"option '{role}', {what}", file
            )
        elif role in EITHER and chosen[EITHER[role]] is not None:
            continue
        elif usual := usual_column(role, table.columns):
            found[role] = usual
    if "image" not in found:
        known = ", ".join(name for name in table.columns if name != ROW)
        raise UserError(
            f"{file}: no column 'image', 'path' or 'file': name the one with the images' files, as "
            f"in --option 'image=NAME'; known: {known}"
        )
    for one, other in EITHER.items():
        if chosen[one] is not None and chosen[other] is not None:
            raise UserError(f"data set 'csv': options '{one}' and '{other}' exclude each other")
    return found


def _paths(
    table: pl.DataFrame, name: str, file: Path, root: Path, chosen: Mapping[str, Any]
) -> list[str]:
    """Where each image lies: paths of the table are relative to the folder of images."""
    folder, named = root / str(chosen["images"]), table_files.filled(table, name, "image", file)
    return [os.path.normpath(os.path.join(folder, path)) for path in named]


def _ids(table: pl.DataFrame, name: str, file: Path) -> pl.Series:
    ids = table_files.filled(table, name, "image", file)
    twice = table.filter(ids.is_duplicated())
    if len(twice):
        first = twice.filter(pl.col(name) == twice[name][0])[ROW].to_list()
        rows = " and ".join(str(row) for row in first[:2])
        raise UserError(f"{file}: image '{twice[name][0]}' stands twice, in rows {rows}")
    return ids.alias("image")


def _class_columns(chosen: Mapping[str, Any]) -> dict[str, str | None]:
    """The column of each class of a multilabel table, where the options name them.

    None: the table is not labeled for this class.
    """
    labels = chosen["labels"]
    if labels is None:
        return {}
    if isinstance(labels, Mapping) and labels:
        return {str(name): None if one is None else str(one) for name, one in labels.items()}
    if isinstance(labels, (list, tuple)) and labels:
        return {str(name): str(name) for name in labels}
    raise UserError(
        f"data set 'csv': option 'labels' is {labels!r}; expected a list of columns, or a column "
        "for each class"
    )


def _labels(
    chosen: Mapping[str, Any], table: pl.DataFrame, named: Mapping[str, str], file: Path
) -> pl.DataFrame:
    """``label`` and ``class``, or one column per class; without options, all columns of 0 and 1."""
    if "label" in named:
        return numbered(table, named["label"], chosen["classes"], file)
    columns = _class_columns(chosen)
    if not columns:
        free = [name for name in table.columns if name not in {*named.values(), *RESERVED, ROW}]
        columns = {name: name for name in free if table_files.is_binary(table[name])}
        for name in free:
            if name not in columns:
                table_files.check_not_a_label(table, name, file)
    for name, column in columns.items():
        if column is not None:
            table_files.column(table, column, f"option 'labels', class '{name}'", file)
        if name in RESERVED:
            raise UserError(f"data set 'csv': option 'labels': a class can't be called '{name}'")
    unknown = pl.Series([None] * len(table), dtype=pl.Int8)
    found = {
        name: unknown if column is None else table_files.binary(table, column, file)
        for name, column in columns.items()
    }
    return pl.DataFrame([values.alias(name) for name, values in found.items()])


def numbered(table: pl.DataFrame, name: str, classes: Any, file: Path) -> pl.DataFrame:
    """The number and the name of each row's class, null where the cell is empty.

    Cells are names of ``classes``, or their numbers from 0. Without ``classes``, numbers stay, and
    names are numbered in sorted order.
    """
    values = table[name].drop_nulls().unique().sort().to_list()
    if classes is None and (empty := [one for one in values if one.lower() in table_files.UNKNOWN]):
        row = table.filter(pl.col(name) == empty[0])[ROW][0]
        raise UserError(
            f"{file}: label '{empty[0]}' in row {row} (column '{name}'): leave unknown labels "
            "empty; if it is a class, list all of them by option 'classes'"
        )
    known = [str(one) for one in classes] if classes is not None else None
    if known is not None and len(set(known)) < len(known):
        raise UserError("data set 'csv': option 'classes' names a class twice")
    if table_files.whole_numbers(values) and (known is None or not set(values) <= set(known)):
        numbers = {value: int(value) for value in values}
        if known is None:
            names: dict[str, str | None] = dict.fromkeys(values)
        elif wrong := [value for value in values if int(value) >= len(known)]:
            row = table.filter(pl.col(name) == wrong[0])[ROW][0]
            raise UserError(
                f"{file}: class number {wrong[0]} in row {row}, but there are {len(known)} classes"
            )
        else:
            names = {value: known[int(value)] for value in values}
    else:
        order = known if known is not None else values
        if wrong := [value for value in values if value not in order]:
            row = table.filter(pl.col(name) == wrong[0])[ROW][0]
            raise UserError(
                f"{file}: unknown class '{wrong[0]}' in row {row} (column '{name}'): "
                f"{suggest(wrong[0], order)}"
            )
        numbers = {value: order.index(value) for value in values}
        names = {value: value for value in values}
    cells = table[name]
    return pl.DataFrame(
        {
            "label": cells.replace_strict(numbers, default=None, return_dtype=pl.Int32),
            "class": cells.replace_strict(names, default=None, return_dtype=pl.String),
        }
    )


def _groups(
    table: pl.DataFrame, named: Mapping[str, str], labels: pl.DataFrame, ids: pl.Series, file: Path
) -> tuple[pl.Series, pl.Series]:
    """The group of each row, and the unit that never crosses splits: the group, unless a class."""
    if "group" in named:
        groups = table_files.filled(table, named["group"], "group", file)
    elif "label" in named:
        groups = labels["class"].fill_null(labels["label"].cast(pl.String)).fill_null(ids)
    else:
        groups = ids
    by_class = "group" not in named or named["group"] == named.get("label")
    units = ids if by_class else groups
    if "unit" in named:
        units = table_files.filled(table, named["unit"], "unit", file)
    return groups.alias("group"), units


def _split(
    chosen: Mapping[str, Any],
    table: pl.DataFrame,
    named: Mapping[str, str],
    units: pl.Series,
    seed: int,
) -> pl.Series:
    if "split" in named:
        return table[named["split"]]
    return drawn(units, checked_shares("csv", chosen["splits"]), seed)


def _order(
    table: pl.DataFrame, named: Mapping[str, str], groups: pl.Series, file: Path
) -> pl.Series:
    """The place of each visit within its group, from 0; null where there is none."""
    if "order" not in named:
        return pl.Series("order", [None] * len(table), dtype=pl.Int32)
    when = table_files.moments(table, named["order"], file)
    rows = pl.DataFrame({"group": groups, "when": when})
    rank = pl.col("when").rank("dense").over("group").cast(pl.Int32) - 1
    return rows.select(rank.alias("order")).to_series()
