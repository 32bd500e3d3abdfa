"""Tables of text that fit the terminal; a pipe gets every cell on one line."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from itertools import zip_longest

GAP = "  "


def terminal_width() -> int | None:
    """The columns of the terminal that is written to; None where it is none and nobody says."""
    if os.environ.get("COLUMNS", "").isdigit() or sys.stdout.isatty():
        return shutil.get_terminal_size().columns
    return None


def table(rows: Sequence[Sequence[str]], indent: str = "") -> str:
    """Rows in columns; where the terminal is narrower, the widest columns are wrapped.

    The first column, of names, is never wrapped, and no word is broken.
    """
    widths, limit = _natural(rows), terminal_width()
    if limit is not None:
        widths = _narrowed(rows, widths, limit - len(indent) - len(GAP) * (len(widths) - 1))
    return "\n".join(line for row in rows for line in _lines(row, widths, indent))


def titled(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table below its titles; where it can't fit, a paragraph for each row."""
    limit, whole = terminal_width(), [titles, *rows]
    smallest = _narrowed(whole, _natural(whole), 0)
    if limit is not None and sum(smallest) + len(GAP) * (len(titles) - 1) > limit:
        return "\n\n".join(_paragraph(titles, row, limit) for row in rows)
    widths = _natural(whole)
    if limit is not None:
        widths = _narrowed(whole, widths, limit - len(GAP) * (len(titles) - 1))
    head = _lines(titles, widths, "")
    body = [line for row in rows for line in _lines(row, widths, "")]
    return "\n".join([*head, "-" * max(map(len, head)), *body])


def _natural(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]


def _narrowed(rows: Sequence[Sequence[str]], widths: list[int], room: int) -> list[int]:
    """Widths that sum to the room, or as little as the longest words allow."""
    words = [
        max((len(word) for row in rows for word in row[column].split()), default=0)
        for column in range(len(widths))
    ]
    found, least = list(widths), [widths[0], *words[1:]]
    while sum(found) > room:
        spare = [width - small for width, small in zip(found, least, strict=True)]
        wide = [column for column, left in enumerate(spare) if left > 0]
        if not wide:
            break
        found[max(wide, key=lambda column: found[column])] -= 1
    return found


def _lines(row: Sequence[str], widths: Sequence[int], indent: str) -> list[str]:
    cells = [
        textwrap.wrap(cell, width, break_long_words=False, break_on_hyphens=False) or [""]
        if len(cell) > width
        else [cell]
        for cell, width in zip(row, widths, strict=True)
    ]
    lines = [
        indent + GAP.join(part.ljust(width) for part, width in zip(parts, widths, strict=True))
        for parts in zip_longest(*cells, fillvalue="")
    ]
    return [line.rstrip() for line in lines]


def _paragraph(titles: Sequence[str], row: Sequence[str], limit: int) -> str:
    texts = [f"{title}: {cell}" for title, cell in zip(titles[1:], row[1:], strict=True)]
    rest = [textwrap.fill(text, limit, initial_indent="  ", subsequent_indent="    ")
            for text in texts]  # fmt: skip
    return "\n".join([row[0], *rest])
