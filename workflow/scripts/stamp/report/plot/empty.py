"""A figure that says in words why there is nothing to draw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from stamp.report.plot import style


def nothing_to_draw(
    table: pl.DataFrame, texts: Mapping[str, Any], subtitle: str, otherwise: str
) -> Figure:
    """The figure of an analysis without rows to draw: the first reason of its table."""
    reasons = table["reason"].drop_nulls()
    words = reasons[0] if len(reasons) else otherwise
    return in_words(texts, subtitle, f"Nothing to draw: {words}.")


@style.look()
def in_words(texts: Mapping[str, Any], subtitle: str, words: str) -> Figure:
    """The study's title and notice around a sentence."""
    lines = style.wrapped(words, style.INNER, style.BODY)
    top = style.heading_height(texts["title"], subtitle) + 0.2
    foot = top + len(lines) * style.line_height(style.BODY) + 0.2
    figure, page = style.sheet(foot + style.notes_height("", texts["notice"]))
    style.heading(page, texts["title"], subtitle)
    style.write(page, style.WIDTH / 2, top, lines, style.BODY, ha="center")
    style.notes(page, "", texts["notice"])
    return figure
