"""Every predictor with every outcome: a heat map, and bars with intervals for the mean outcome."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stamp.report.analyses.baselines.table import AVERAGE
from stamp.report.comparison.predictors import STAMP
from stamp.report.outcomes import MEAN
from stamp.report.plot import style
from stamp.report.plot.empty import nothing_to_draw
from stamp.report.wording import MINUS, RHO, inside, level_text, models_text, short_number

BARS = 1.7  # inches
LONGEST = 1.5  # inches: the widest name of a column, which stands upright
WIDEST = 0.9  # inches: a column of the heat map at the most
SUBTITLE = f"Oriented {RHO} of each predictor with each outcome, over one common set of models"
MARKS = {
    "labels": "*",
    "class mix": "~",
    "target images": "+",
    "target labels": "\u2020",
    "other models": "#",
}


@style.look()
def draw(table: pl.DataFrame, models: pl.DataFrame, texts: Mapping[str, Any]) -> Figure:
    """The figure of the analysis ``baselines`` from its table; words where there is nothing."""
    rows = table.filter((pl.col("models") == "declared") & pl.col("oriented").is_not_null())
    if rows.is_empty():
        return nothing_to_draw(table, texts, SUBTITLE, "no predictor has a correlation")
    mean = rows.filter(pl.col("outcome") == AVERAGE).sort("oriented", descending=True)
    order = mean["predictor"].to_list()
    columns = [name for name in rows["outcome"].unique(maintain_order=True) if name != MEAN]
    if len(columns) == 2:  # the average of a single outcome is that outcome
        columns.remove(AVERAGE)
    names = _names(mean)
    left = style.MARGIN + max(style.width_of(name, style.SMALL, "bold") for name in names) + 0.1
    width = min(WIDEST * len(columns), style.WIDTH - left - BARS - 3 * style.MARGIN)
    shown = MEAN if (rows["outcome"] == MEAN).any() else columns[0]
    note = _note(rows.filter(pl.col("outcome") == shown), texts)
    over = style.wrapped(f"{_title(rows, shown)}, with intervals", BARS, style.FINE)
    titles = [_title(rows, name) for name in columns]
    room = (
        max(
            min(LONGEST, style.widest(titles, style.FINE)),
            len(over) * style.line_height(style.FINE),
        )
        + 0.1
    )
    top = style.heading_height(texts["title"], SUBTITLE) + room
    height = style.row_height(len(order)) * len(order)
    figure, page = style.sheet(top + height + 0.45 + style.notes_height(note, texts["notice"]))
    style.heading(page, texts["title"], SUBTITLE)
    style.notes(page, note, texts["notice"])
    heat = style.panel(figure, (left, top, width, height), "heat")
    _heat(heat, rows, order, columns)
    _named(page, names, order, left - 0.1, top)
    for at, title in enumerate(titles):
        props: dict[str, Any] = {"ha": "center", "va": "bottom", "size": style.FINE, "rotation": 90}
        x = left + (at + 0.5) * width / len(columns)
        page.text(x, top - 0.04, style.shortened(title, LONGEST, style.FINE), **props)
    start = left + width + 2 * style.MARGIN
    style.write(
        page, start, top - 0.06 - len(over) * style.line_height(style.FINE), over, style.FINE
    )
    bars = style.panel(figure, (start, top, BARS, height), "bars")
    _bars(bars, rows.filter(pl.col("outcome") == shown), order)
    return figure


def _names(mean: pl.DataFrame) -> list[str]:
    """The predictors' names, each with the marks of what it needs."""
    found = []
    for row in mean.iter_rows(named=True):
        needs = (row["needs"] or "").split(", ")
        marks = "".join(sign for need, sign in MARKS.items() if need in needs)
        found.append(f"{row['name']} {marks}".rstrip())
    return found


def _title(rows: pl.DataFrame, outcome: str) -> str:
    if outcome == AVERAGE:
        return "average"
    return rows.filter(pl.col("outcome") == outcome)["title"][0].replace("_", " ")


def _heat(axes: Axes, rows: pl.DataFrame, order: list[str], columns: list[str]) -> None:
    """A coloured cell with its number for each predictor and outcome."""
    known = {(row["predictor"], row["outcome"]): row["oriented"] for row in rows.to_dicts()}
    cells = [[known.get((predictor, outcome)) for outcome in columns] for predictor in order]
    texts = [["" if one is None else short_number(one) for one in row] for row in cells]
    size = min(style.FINE, style.FINE * 8 / max(8, len(columns)))
    limits: dict[str, Any] = {"cmap": style.DIVERGING, "vmin": -1, "vmax": 1}
    style.heat_map(
        axes, np.array(cells, float), np.array(texts), annot_kws={"size": size}, **limits
    )


def _named(page: Axes, names: list[str], order: list[str], right: float, top: float) -> None:
    """The predictors' names, ending at ``right``."""
    for y, (name, predictor) in enumerate(zip(names, order, strict=True)):
        weight = "bold" if predictor == STAMP else "normal"
        props: dict[str, Any] = {
            "ha": "right",
            "va": "center",
            "size": style.SMALL,
            "weight": weight,
        }
        page.text(right, top + (y + 0.5) * style.row_height(len(names)), name, **props)


def _bars(axes: Axes, rows: pl.DataFrame, order: list[str]) -> None:
    """One bar per predictor with its interval, in the heat map's rows."""
    axes.set(ylim=(len(order), 0), xlim=(-1.05, 1.05), yticks=[])
    axes.spines["left"].set_visible(False)
    axes.axvline(0, color=style.MUTED, lw=0.8, zorder=1)
    axes.set_xticks([-1, -0.5, 0, 0.5, 1])
    axes.grid(True, axis="x")
    axes.set_axisbelow(True)
    axes.set_xlabel(f"oriented {RHO}", labelpad=2, size=style.SMALL)
    known = {row["predictor"]: row for row in rows.to_dicts()}
    for y, predictor in enumerate(order):
        row = known.get(predictor)
        if row is None:
            continue
        colour = style.STRONG if predictor == STAMP else style.PALE
        axes.barh(y + 0.5, row["oriented"], 0.6, color=colour, zorder=2)
        if row["low"] is not None:
            axes.plot([row["low"], row["high"]], [y + 0.5] * 2, color=style.INK, lw=0.9, zorder=3)


def _note(rows: pl.DataFrame, texts: Mapping[str, Any]) -> str:
    """How to read the figure; ``rows`` are those of the bars."""
    rare = rows.filter(~pl.col("common"))
    few = "Predictors that few models have stand in the table alone. " if len(rare) else ""
    count = models_text(rows.filter("common")["n"])
    return (
        f"Oriented {RHO}: Spearman's rank correlation with the outcome over the {count} "
        f"that have every predictor, times {MINUS}1 for metrics of which less should be better. "
        f"Rows by their average over the targets. Bars: {inside(rows['title'][0])}, with the "
        f"{level_text(texts)} percentile interval of a joint bootstrap of the models. * needs "
        f"labeled source images, ~ the target's mix of classes, + images of the target, "
        f"\u2020 its labels, # several models. {few}"
    )
