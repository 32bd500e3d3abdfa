"""A figure that says in words why there is nothing to draw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from stamp.report.plot.style import (
    BODY,
    INNER,
    WIDTH,
    heading,
    heading_height,
    line_height,
    look,
    notes,
    notes_height,
    sheet,
    wrapped,
    write,
)


def nothing_to_draw(
    table: pl.DataFrame, texts: Mapping[str, Any], subtitle: str, otherwise: str
) -> Figure:
    """The figure of an analysis without rows to draw: the first reason of its table."""
    reasons = table["reason"].drop_nulls()
    words = reasons[0] if len(reasons) else otherwise
    return in_words(texts, subtitle, f"Nothing to draw: {words}.")


@look()
def in_words(texts: Mapping[str, Any], subtitle: str, words: str) -> Figure:
    """The study's title and notice around a sentence."""
    lines = wrapped(words, INNER, BODY)
    top = heading_height(texts["title"], subtitle) + 0.2
    foot = top + len(lines) * line_height(BODY) + 0.2
    figure, page = sheet(foot + notes_height("", texts["notice"]))
    heading(page, texts["title"], subtitle)
    write(page, WIDTH / 2, top, lines, BODY, ha="center")
    notes(page, "", texts["notice"])
    return figure
