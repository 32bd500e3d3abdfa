"""Published label tables of chest X-rays, and how their observations become 0, 1 or null.

CheXpert and MIMIC-CXR label each observation 1 (present), 0 (absent), -1 (uncertain) or not at all
(blank: the report does not mention it). What the last two stand for is a choice of the study.
Irvin et al., "CheXpert: a large chest radiograph dataset with uncertainty labels and expert
comparison", AAAI 2019.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from stamp.core.errors import UserError, suggest
from stamp.data.adapter_options import package_file

CLASSES = (
    "Atelectasis",
    "Cardiomegaly",
    "Consolidation",
    "Edema",
    "Effusion",
    "Emphysema",
    "Fibrosis",
    "Hernia",
    "Infiltration",
    "Mass",
    "Nodule",
    "Pleural_Thickening",
    "Pneumonia",
    "Pneumothorax",
)
NONE = "No Finding"

UNCERTAIN: Mapping[str, int | None] = {"ignore": None, "zero": 0, "one": 1}
BLANK: Mapping[str, int | None] = {"zero": 0, "ignore": None}


def read(file: Path, needed: Sequence[str], instructions: str) -> pl.DataFrame:
    """A CSV file, packed or not, as trimmed strings, null where empty; empty rows are left out."""
    if not file.is_file():
        raise UserError(f"{file}: no such file; {instructions}")
    try:
        table = pl.read_csv(file, infer_schema=False, truncate_ragged_lines=True)
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{file}: can't be read as a CSV file: {reason}") from None
    table = table.rename({name: name.strip() for name in table.columns})
    for name in needed:
        if name not in table.columns:
            raise UserError(f"{file}: no column '{name}': {suggest(name, table.columns)}")
    texts = pl.all().str.strip_chars()
    table = table.select(pl.when(texts != "").then(texts).name.keep())
    return table.filter(~pl.all_horizontal(pl.all().is_null()))


def shipped(name: str) -> Path | None:
    """A table inside torchxrayvision; None where there is none."""
    return package_file("torchxrayvision", f"data/{name}")


def labels(
    table: pl.DataFrame, classes: Mapping[str, str], uncertain: str, blank: str, where: str
) -> pl.DataFrame:
    """One Int8 column for each of the 14 classes, row by row; null for those not in ``classes``.

    ``classes`` maps the table's columns to classes. 1 and 0 stay; -1 becomes null (``ignore``), 0
    or 1; a blank becomes 0 or null (``ignore``), but always 0 where "No Finding" is 1: that report
    is known to name no finding.
    """
    healthy = pl.col(NONE).cast(pl.Float64, strict=False).eq_missing(1)
    if NONE not in table.columns:
        healthy = pl.lit(False)
    settled = {}
    for column, name in classes.items():
        value = _observed(table, column, where)
        settled[name] = (
            pl.when(value == -1)
            .then(pl.lit(UNCERTAIN[uncertain], dtype=pl.Int8))
            .when(value.is_null() & healthy)
            .then(pl.lit(0, dtype=pl.Int8))
            .otherwise(value.fill_null(pl.lit(BLANK[blank], dtype=pl.Int8)))
        )
    empty = pl.lit(None, dtype=pl.Int8)
    return table.with_columns(settled.get(name, empty).alias(name) for name in CLASSES).select(
        CLASSES
    )


def _observed(table: pl.DataFrame, column: str, where: str) -> pl.Expr:
    """A column's observations as -1, 0, 1 or null; anything else is a mistake in the file."""
    number = pl.col(column).cast(pl.Float64, strict=False)
    wrong = table.filter(
        pl.col(column).is_not_null() & ~number.is_in([-1.0, 0.0, 1.0]).fill_null(False)
    )
    if len(wrong):
        raise UserError(
            f"{where}: {column} is '{wrong[column][0]}' in {len(wrong)} rows; "
            "expected 1, 0, -1 or nothing"
        )
    return number.cast(pl.Int8)
