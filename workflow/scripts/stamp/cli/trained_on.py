"""What a model was trained on, and whether it has met the images or groups that it is scored on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from stamp.core.errors import UserError, suggest
from stamp.data import table_files
from stamp.data.adapters.csv import USUAL, usual_column
from stamp.data.pairs import groups_are_classes

LISTED = (*USUAL["image"], *USUAL["group"])
YES = ("1", "1.0", "true", "yes")


@dataclass(frozen=True, slots=True)
class TrainedOn:
    """Splits of the data, and names of images or groups; both None where nobody said."""

    splits: tuple[str, ...] | None = None
    names: frozenset[str] | None = None
    origin: str = ""  # the file or column that has the names


@dataclass(frozen=True, slots=True)
class Meeting:
    """Whether a model has met what it is scored on, and what it was trained on in words."""

    leaks: bool
    told: list[str] | None


def meeting(
    trained: TrainedOn,
    index: pl.DataFrame,
    pairs: pl.DataFrame,
    semantic: str,
    columns: Sequence[str],
) -> Meeting:
    """Which groups of the pairs, such as patients, the model was trained on.

    Images count instead for class pairs where the groups are the classes themselves (by the label
    ``columns``): every model has met these.
    """
    if trained.splits is None and trained.names is None:
        return Meeting(False, None)
    ends = pl.concat([pairs["a"], pairs["b"]]).unique()
    behind = index.filter(pl.col("image").is_in(ends.implode()))
    by_image = semantic == "class" and groups_are_classes(behind, columns)
    unit = "image" if by_image else "group"
    scored = behind[unit].unique()
    parts = {name: pl.col("split") == name for name in trained.splits or ()}
    if trained.names is not None:
        known = list(trained.names)
        parts[trained.origin] = pl.col("image").is_in(known) | pl.col("group").is_in(known)
    told, leaks = [], False
    for what, seen in parts.items():
        met = scored.is_in(index.filter(seen)[unit].unique().implode()).sum()
        leaks |= met > 0
        some = f", with {met:,} of the {len(scored):,} {unit}s behind the score" if met else ""
        told.append(f"{what}{some}")
    return Meeting(leaks, told)


def listed(file: Path) -> frozenset[str]:
    """The images or groups that a file names: one per line, or a column of a table."""
    if file.suffix.lower() in (".txt", ".list", ""):
        if not file.is_file():
            raise UserError(f"--trained-on-list: no such file '{file}'")
        lines = (line.strip() for line in file.read_text(encoding="utf-8-sig").splitlines())
        found = frozenset(line for line in lines if line)
    else:
        table = table_files.read(file)
        column = usual_column("image", table.columns) or usual_column("group", table.columns)
        if column is None:
            raise UserError(f"{file}: none of the columns {', '.join(LISTED)} is there")
        found = frozenset(table[column].drop_nulls().to_list())
    if not found:
        raise UserError(f"{file}: names no image and no group")
    return found


def marked(index: pl.DataFrame, column: str) -> frozenset[str]:
    """The images whose cell of a column of the data's table says 1, true or yes."""
    if column not in index.columns:
        raise UserError(
            f"--trained-on-column: no column '{column}': {suggest(column, index.columns)}"
        )
    cells = index[column].cast(pl.String).str.to_lowercase()
    return frozenset(index.filter(cells.is_in(list(YES)))["image"].to_list())
