"""What a table or folder of images tells: its columns, task, classes and splits.

Every guess becomes an option of the data set, so that it stands in its entry and can be edited.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from stamp.cli.check_data.description import class_names
from stamp.cli.data_argument import Named, of_dataset, of_path
from stamp.cli.new_study.folder_levels import guessed_levels
from stamp.config.plan import Plan
from stamp.core.errors import UserError, suggest
from stamp.data.adapters import csv
from stamp.data.splits import DEFAULT


@dataclass(frozen=True, slots=True)
class Found:
    """Images: their index, what they are, and the entry of their data set (None: it is there)."""

    key: str
    named: Named
    task: str
    classes: list[str]
    entry: dict[str, Any] | None = None
    reasons: dict[str, str] = field(default_factory=dict)  # of the entry's options

    @property
    def index(self) -> pl.DataFrame:
        return self.named.index


def look(key: str, argument: str, options: Mapping[str, Any], plan: Plan) -> Found:
    """The images that an argument names; ``options`` are what the user said of them."""
    if argument in plan.datasets:
        named = of_dataset(plan.datasets[argument], plan, plan.seed)
        return _found(argument, named, None, {})
    path = Path(argument)
    if not path.exists():
        known = suggest(argument, plan.datasets)
        raise UserError(f"'{argument}': no such file or folder, and no such data set: {known}")
    if key in plan.datasets:
        raise UserError(
            f"{plan.folders.datasets}: data set '{key}' is there already: take another name, or "
            f"give --data {key}"
        )
    if path.is_file():
        adapter, root = "csv", path.parent
        chosen, reasons = _of_table(path, options, plan.seed)
    else:
        adapter, root = "folder", path
        chosen, reasons = _of_folder(path, options, plan.seed)
    named = of_path(path, chosen, plan.seed)
    entry = {"adapter": adapter, "root": shown(root), "options": chosen}
    return _found(key, named, entry, reasons)


def shown(path: Path) -> str:
    """A path relative to the project where it lies inside, else the whole."""
    whole, here = path.resolve(), Path.cwd().resolve()
    return os.path.relpath(whole, here) if whole.is_relative_to(here) else str(whole)


def _found(key: str, named: Named, entry: dict[str, Any] | None, reasons: dict[str, str]) -> Found:
    classes = class_names(named.index)
    if len(classes) < 2:
        raise UserError(
            f"{named.name}: no labels found ({len(classes)} classes): name the column of the class "
            "by --option label=COLUMN, or the columns of 0 and 1 by --option 'labels=[A, B]'"
        )
    task = "multiclass" if "label" in named.index.columns else "multilabel"
    return Found(key, named, task, classes, entry, reasons)


def _of_table(
    path: Path, options: Mapping[str, Any], seed: int
) -> tuple[dict[str, Any], dict[str, str]]:
    """Options of the adapter ``csv`` with every column that it would find by itself."""
    given = {"table": path.name, **options}
    roles = csv.roles(given, path.parent)
    index = of_path(path, given, seed).index
    found, reasons = {**given, **roles}, {role: csv.WHAT[role] for role in roles}
    classes = class_names(index)
    if "label" not in index.columns and len(classes) == 1 and "labels" not in options:
        found |= {"label": classes[0], "classes": [f"no {classes[0]}", classes[0]]}
        reasons |= {"label": "one column of 0 and 1: two classes, softmax outputs"}
    elif "label" in index.columns:
        found["classes"] = classes
        reasons["classes"] = "in the order of the numbers of 'label'"
    elif classes:
        found.setdefault("labels", classes)
        reasons["labels"] = "columns of 0, 1 and nothing; null: not labeled for it"
    values = index["split"].drop_nulls().unique().to_list() if "split" in roles else []
    if len(values) < 2:
        said = f"column '{roles['split']}' is '{values[0]}' everywhere, so " if values else ""
        found.pop("split", None)
        reasons.pop("split", None)
        found.setdefault("splits", dict(DEFAULT))
        reasons["splits"] = f"{said}drawn, all images of a group into one"
    return found, reasons


def _of_folder(
    path: Path, options: Mapping[str, Any], seed: int
) -> tuple[dict[str, Any], dict[str, str]]:
    """Options of the adapter ``folder``."""
    told = options.get("levels")
    levels, why = guessed_levels(path) if told is None else (told, "as you said")
    found, reasons = {**options, "levels": levels}, {"levels": f"from the outermost: {why}"}
    index = of_path(path, found, seed).index
    found.setdefault("classes", class_names(index))
    reasons["classes"] = "in the order of the models' outputs"
    if "split" not in levels:
        found.setdefault("splits", dict(DEFAULT))
        reasons["splits"] = "shares by which splits are drawn"
    return found, reasons
