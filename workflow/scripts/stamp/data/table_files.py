"""A user's own table, comma- or tab-separated or Parquet, with its columns found by name."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from stamp.core.errors import UserError, suggest

DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
PARQUET = (".parquet", ".pq")
HEADER = 1  # rows above the first one of data, as a spreadsheet counts them
ROW = "\x00row"  # no column of a file is called so
UNKNOWN = ("na", "n/a", "nan", "null")  # how other programs write an empty cell
MOST_TYPOS = 0.1


def read(file: Path, delimiter: str = "auto", help: str = "") -> pl.DataFrame:
    """The table as trimmed texts, null where a cell is empty, with its ``row`` as people count.

    ``auto`` takes the delimiter that the header has most of. Empty rows are left out.
    """
    if not file.is_file():
        raise UserError(f"{file}: no such table" + (f"; {help}" if help else ""))
    try:
        table = _parquet(file) if file.suffix.lower() in PARQUET else _text(file, delimiter)
    except UnicodeDecodeError:
        raise UserError(f"{file}: is not UTF-8: save it as CSV in UTF-8") from None
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise UserError(f"{file}: can't be read as a table: {reason}") from None
    texts = pl.all().str.strip_chars()
    table = table.select(pl.when(texts != "").then(texts).name.keep())
    empty = pl.all_horizontal(pl.exclude(ROW).is_null())
    number = pl.int_range(1 + HEADER, table.height + 1 + HEADER).alias(ROW)
    return table.with_columns(number).filter(~empty)


def column(table: pl.DataFrame, name: str, what: str, file: Path) -> str:
    """The name of a column, if the table has it."""
    if name not in table.columns:
        known = [one for one in table.columns if one != ROW]
        raise UserError(f"{file}: no column '{name}' ({what}): {suggest(name, known)}")
    return name


def filled(table: pl.DataFrame, name: str, what: str, file: Path) -> pl.Series:
    """A column in which no cell may be empty."""
    empty = table.filter(pl.col(name).is_null())
    if len(empty):
        raise UserError(
            f"{file}: {len(empty)} of {len(table)} rows have no {what} (column '{name}'), "
            f"first row {empty[ROW][0]}"
        )
    return table[name]


def binary(table: pl.DataFrame, name: str, file: Path) -> pl.Series:
    """A column of labels as 0, 1 or null; anything else is a mistake in the table."""
    number = pl.col(name).cast(pl.Float64, strict=False)
    wrong = table.filter(pl.col(name).is_not_null() & ~number.is_in([0.0, 1.0]).fill_null(False))
    if len(wrong):
        raise UserError(
            f"{file}: label '{name}' is '{wrong[name][0]}' in {len(wrong)} rows, first row "
            f"{wrong[ROW][0]}; expected 0, 1 or nothing"
        )
    return table.select(number.cast(pl.Int8)).to_series()


def is_binary(values: pl.Series) -> bool:
    """Whether a column of texts holds 0, 1 and nothing else, and at least one of them."""
    known = values.drop_nulls().unique()
    numbers = known.cast(pl.Float64, strict=False)
    return len(known) > 0 and bool(numbers.is_in([0.0, 1.0]).fill_null(False).all())


def check_not_a_label(table: pl.DataFrame, name: str, file: Path) -> None:
    """Refuse a column of 0 and 1 but for a few texts: a class must not get lost by one of them.

    That is one whose other cells say that they are unknown or uncertain (-1), or are no numbers and
    at most a tenth.
    """
    cells = table.filter(pl.col(name).is_not_null())
    number = pl.col(name).cast(pl.Float64, strict=False)
    others = cells.filter(~number.is_in([0.0, 1.0]).fill_null(False))
    if not len(others) or len(others) == len(cells):
        return
    unknown = pl.col(name).str.to_lowercase().is_in(UNKNOWN) | (number == -1).fill_null(False)
    typos = number.is_null().all() & (pl.len() <= MOST_TYPOS * len(cells))
    if others.select(unknown.all() | typos).item():
        raise UserError(
            f"{file}: column '{name}' is 0 or 1 but for '{others[name][0]}' in {len(others)} rows, "
            f"first row {others[ROW][0]}: leave unknown labels empty; if it is no label, name "
            "those that are by option 'labels'"
        )


def moments(table: pl.DataFrame, name: str, file: Path) -> pl.Series:
    """A column of numbers, or of ISO dates with or without a time, as numbers that sort like it."""
    texts = table[name]
    numbers = texts.cast(pl.Float64, strict=False)
    if numbers.is_null().equals(texts.is_null()):
        wrong = table.filter(~numbers.is_finite())
        if len(wrong):
            raise UserError(
                f"{file}: '{name}' of {len(wrong)} rows is no number, first row {wrong[ROW][0]}: "
                f"'{wrong[name][0]}'; leave unknown ones empty"
            )
        return numbers
    found = {text: _seconds(text) for text in texts.drop_nulls().unique().to_list()}
    wrong = table.filter(pl.col(name).is_in([text for text, when in found.items() if when is None]))
    if len(wrong):
        raise UserError(
            f"{file}: '{name}' of {len(wrong)} rows is neither a number nor an ISO date like "
            f"2024-03-31 in every row, first row {wrong[ROW][0]}: '{wrong[name][0]}'"
        )
    return texts.replace_strict(found, default=None, return_dtype=pl.Float64)


def typed(values: pl.Series) -> pl.Series:
    """A column of texts as numbers where every cell is one."""
    for kind in (pl.Int64, pl.Float64):
        numbers = values.cast(kind, strict=False)
        if numbers.is_null().equals(values.is_null()):
            return numbers
    return values


def whole_numbers(values: Sequence[str]) -> bool:
    """Whether every text is a whole number, 0 or more."""
    return all(value.isascii() and value.isdigit() for value in values)


def _seconds(text: str) -> float | None:
    """An ISO date as seconds; without a zone it is taken as one place's own time."""
    if text.isdigit():  # numbers and dates are never mixed in a column
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def _check_names(names: Sequence[str], file: Path) -> None:
    if not names:
        raise UserError(f"{file}: the first line must name the columns")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UserError(f"{file}: the column '{twice}' stands twice")


def _text(file: Path, delimiter: str) -> pl.DataFrame:
    known: dict[str, Any] = {**DELIMITERS, **{mark: mark for mark in DELIMITERS.values()}}
    if delimiter == "auto":
        with open(file, encoding="utf-8-sig") as opened:
            head = opened.readline()
        separator = max(DELIMITERS.values(), key=head.count)
    elif delimiter in known:
        separator = known[delimiter]
    else:
        raise UserError(
            f"{file}: unknown delimiter '{delimiter}': {suggest(delimiter, ['auto', *DELIMITERS])}"
        )
    # the header is read as a row: polars would give a name that stands twice another one
    table = pl.read_csv(file, infer_schema=False, separator=separator, has_header=False)
    given = [(name or "").strip() for name in table.row(0)]
    # columns without a name, as pandas writes its row numbers, are nobody's
    table = table.select(one for one, name in zip(table.columns, given, strict=True) if name)
    names = [name for name in given if name]
    _check_names(names, file)
    table.columns = names
    return table[1:]


def _parquet(file: Path) -> pl.DataFrame:
    table = pl.read_parquet(file)
    nested = [name for name, kind in table.schema.items() if kind.is_nested() or kind == pl.Binary]
    if nested:
        raise UserError(f"{file}: column '{nested[0]}' is {table.schema[nested[0]]}, not plain")
    return table.select(
        (pl.col(name).cast(pl.Int8) if kind == pl.Boolean else pl.col(name)).cast(pl.String)
        for name, kind in table.schema.items()
    )
