"""How often each model scores above each other one over the bootstrap draws: a heat map."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stamp.report.plot import figure_data, style
from stamp.report.plot.empty import in_words
from stamp.report.plot.figure_data import FigureData

MOST = 44  # models that are drawn: more cells than these nobody reads
NUMBERED = 24  # models up to which each cell has its number
LONGEST, LARGEST = 1.9, 0.3  # inches: the widest label, the side of a cell
SUBTITLE = "How often each model (row) scores above each other one (column)"


@style.look()
def draw(data: FigureData) -> tuple[Figure, pl.DataFrame]:
    """The heat map of the best models, and its table: one row per pair of models."""
    order = ranked(data)
    shown, texts = order[:MOST], data.texts
    if len(shown) < 2:
        return in_words(texts, SUBTITLE, "Fewer than two models have a score."), pairs(data, order)
    note = _note(len(order))
    top = style.heading_height(texts["title"], SUBTITLE)
    names = [style.shortened(data.models[key]["label"], LONGEST, style.FINE) for key in shown]
    wide = style.widest(names, style.FINE) + 0.1
    side = min(LARGEST * len(shown), style.INNER - wide)
    figure, page = style.sheet(top + wide + side + style.notes_height(note, texts["notice"]))
    style.heading(page, texts["title"], SUBTITLE)
    style.notes(page, note, texts["notice"])
    _names(page, names, style.MARGIN + wide, top + wide, side)
    axes = style.panel(figure, (style.MARGIN + wide, top + wide, side, side), "outranks")
    _cells(axes, shares(data, shown), side)
    return figure, pairs(data, order)


def ranked(data: FigureData) -> list[str]:
    """The models that have a score, by their median rank and then by score, best first."""
    board = figure_data.board(data).drop_nulls("rank")
    order = board.sort("rank", "score", "model", descending=[False, True, False])
    return order["model"].to_list()


def shares(data: FigureData, keys: list[str]) -> np.ndarray:
    """The share of draws in which a row's model scores above a column's, in the order of ``keys``.

    A model has no share with itself: NaN.
    """
    names = pl.DataFrame({"model": keys}, schema={"model": pl.String})
    rows = names.join(data.outranks, on="model", maintain_order="left")
    found = rows.select(keys).to_numpy().astype(float)
    np.fill_diagonal(found, np.nan)
    return found


def pairs(data: FigureData, keys: list[str]) -> pl.DataFrame:
    """One row per pair of models, the better one by rank first, with how often it is above."""
    found = shares(data, keys)
    first, second = np.triu_indices(len(keys), 1)
    return pl.DataFrame(
        {
            "model": [keys[at] for at in first],
            "other": [keys[at] for at in second],
            "above": found[first, second],
        },
        schema={"model": pl.String, "other": pl.String, "above": pl.Float64},
    )


def _cells(axes: Axes, values: np.ndarray, side: float) -> None:
    count = len(values)
    numbered = count <= NUMBERED
    texts = np.array([[_percent(one) if numbered else "" for one in row] for row in values])
    size = min(style.FINE, 72 * side / count / 2.6)
    props: dict[str, Any] = {"cmap": style.DIVERGING, "vmin": 0, "vmax": 1}
    style.heat_map(axes, values, texts, annot_kws={"size": size}, **props)


def _percent(share: float) -> str:
    """A share in per cent; only 0 and 1 themselves are written as such."""
    if np.isnan(share):
        return ""
    whole = round(100 * share)
    if share < 1 and whole == 100:
        return ">99"
    return "<1" if share > 0 and whole == 0 else f"{whole}"


def _names(page: Axes, names: list[str], left: float, top: float, side: float) -> None:
    """The models' names, left of the rows and upright over the columns."""
    step = side / len(names)
    for at, name in enumerate(names):
        props: Mapping[str, Any] = {"size": style.FINE}
        middle = (at + 0.5) * step
        page.text(left - 0.06, top + middle, name, ha="right", va="center", **props)
        page.text(left + middle, top - 0.06, name, ha="center", va="bottom", rotation=90, **props)


def _note(count: int) -> str:
    words = (
        "Share of bootstrap draws, in per cent; the draws resample patients or images, the same "
        "for all models. Near 50 two models can't be told apart by their scores. Models by median "
        f"rank, the best first; {count} models have a score."
    )
    if count > MOST:
        words += f" The best {MOST} are shown; outranks.csv has all."
    return words
