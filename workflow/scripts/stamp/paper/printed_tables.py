"""The paper's printed tables as shipped in resources/paper, every number as it is printed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl

from stamp.core.errors import UserError, suggest
from stamp.core.shipped import RESOURCES
from stamp.paper.claims import Text
from stamp.paper.printed_numbers import number
from stamp.stats.ranks import Array

FOLDER = RESOURCES / "paper"
INDEX = "index"
TARGETS = ("vindr", "chexpert", "mimic")
# rows of Table 2
OURS, REFERENCE = "STAMP (ours)", "NIH AUROC (ref.)"


@dataclass(frozen=True)
class Paper:
    """Every shipped table, as text, and the statements of the running text by key."""

    tables: Mapping[str, pl.DataFrame]
    names: Mapping[str, str] = field(default_factory=dict)

    def table(self, name: str) -> pl.DataFrame:
        """A table of printed texts, empty cells null."""
        if name not in self.tables:
            raise UserError(f"resources/paper has no table '{name}': {suggest(name, self.tables)}")
        return self.tables[name]

    def where(self, name: str) -> str:
        """What the paper calls a table."""
        return self.names[name]

    def text(self, key: str) -> Text:
        """A statement of the running text."""
        if key not in self._texts:
            raise UserError(f"resources/paper/text.csv has no key '{key}'")
        return self._texts[key]

    def value(self, key: str) -> float:
        """The number of a statement of the running text."""
        return number(self.text(key).printed).value

    def cell(self, name: str, row: str, column: str) -> str:
        """What a table prints in a column of the row with that first cell."""
        table = self.table(name)
        found = table.filter(pl.col(table.columns[0]) == row)
        if len(found) != 1:
            raise UserError(f"resources/paper/{name}.csv: {len(found)} rows '{row}', expected 1")
        return found[column][0]

    @cached_property
    def _texts(self) -> dict[str, Text]:
        rows = self.table("text").iter_rows(named=True)
        return {
            row["key"]: Text(
                row["claim"], row["where"], row["printed"], int(row["n"]) if row["n"] else None
            )
            for row in rows
        }


def values(column: pl.Series) -> Array:
    """The numbers of a column, NaN where nothing is printed."""
    found = [float("nan") if text is None else number(text).value for text in column]
    return np.array(found)


def read(folder: Path = FOLDER) -> Paper:
    """The shipped tables that the index lists."""
    index = _read(folder / f"{INDEX}.csv")
    tables = {name: _read(folder / f"{name}.csv") for name in index["file"]}
    names = dict(zip(index["file"], index["table"], strict=True))
    return Paper({INDEX: index, **tables}, names)


def _read(file: Path) -> pl.DataFrame:
    if not file.is_file():
        raise UserError(f"{file}: no such file; it ships with the project")
    return pl.read_csv(file, infer_schema=False)
