"""What picking the best of a few models loses by each predictor, and choices of close models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stamp.report.analyses.regret.table import RANDOM, shown_rows
from stamp.report.comparison.predictors import SOURCE_MATCHED, SOURCE_METRIC, STAMP
from stamp.report.plot import style
from stamp.report.plot.empty import nothing_to_draw
from stamp.report.wording import inside, level_text

RIGHT, GAP = 1.7, 0.25  # inches: the right panel, between the panels
LONGEST = 2.6  # inches: the widest name
SUBTITLE = "What picking one of a few models by each predictor loses against the best of them"
STRESSED = (STAMP, SOURCE_METRIC, SOURCE_MATCHED, RANDOM)
MARGINS = {"close": "one standard error", "point": "one point"}


@style.look()
def draw(table: pl.DataFrame, models: pl.DataFrame, texts: Mapping[str, Any]) -> Figure:
    """The figure of the analysis ``regret`` from its table; words where there is nothing."""
    rows = shown_rows(table).sort("regret", "name")
    if rows.is_empty():
        return nothing_to_draw(table, texts, SUBTITLE, "no predictor has a regret")
    near = next((one for one in MARGINS if (rows[f"{one}_pairs"].fill_null(0) > 0).any()), None)
    names = [style.shortened(name, LONGEST, style.SMALL) for name in rows["name"]]
    left = style.MARGIN + style.widest(names, style.SMALL) + 0.2
    width = style.WIDTH - left - style.MARGIN - (RIGHT + GAP if near else 0)
    note = _note(rows, near, texts)
    top = style.heading_height(texts["title"], SUBTITLE) + 0.1
    row = style.row_height(len(rows))
    height = row * len(rows)
    figure, page = style.sheet(top + height + 0.5 + style.notes_height(note, texts["notice"]))
    style.heading(page, texts["title"], SUBTITLE)
    style.notes(page, note, texts["notice"])
    for y, (name, predictor) in enumerate(zip(names, rows["predictor"], strict=True)):
        weight = "bold" if predictor == STAMP else "normal"
        place: dict[str, Any] = {"ha": "right", "va": "center", "weight": weight}
        page.text(left - 0.1, top + (y + 0.5) * row, name, size=style.SMALL, **place)
    axes = style.panel(figure, (left, top, width, height), "regret")
    _points(axes, rows, ("regret", "low", "high"), "loss, in units of the outcome")
    chance = rows.filter(pl.col("predictor") == RANDOM)["regret"][0]
    axes.axvline(chance, color=style.MUTED, lw=0.8, ls=":", zorder=1)
    axes.set_xlim(left=min(0.0, axes.get_xlim()[0]))
    if near:
        at = left + width + GAP
        beside = style.panel(figure, (at, top, RIGHT, height), "close")
        columns = tuple(f"{near}_right{end}" for end in ("", "_low", "_high"))
        _points(beside, rows, columns, "better of two close models")
        beside.axvline(0.5, color=style.MUTED, lw=0.8, ls=":", zorder=1)
        beside.set_xlim(-0.03, 1.03)
    return figure


def _points(axes: Axes, rows: pl.DataFrame, columns: tuple[str, ...], title: str) -> None:
    """A point with its interval for each predictor, in the rows of the names."""
    axes.set(ylim=(len(rows), 0), yticks=[])
    axes.spines["left"].set_visible(False)
    axes.grid(True, axis="x")
    axes.set_axisbelow(True)
    axes.set_xlabel(title, labelpad=2, size=style.SMALL)
    for y, row in enumerate(rows.iter_rows(named=True)):
        value, low, high = (row[name] for name in columns)
        if value is None:
            continue
        colour = style.STRONG if row["predictor"] in STRESSED else style.MUTED
        if low is not None:
            axes.plot([low, high], [y + 0.5] * 2, color=colour, lw=1, zorder=2)
        axes.plot([value], [y + 0.5], "o", color=colour, ms=3.5, zorder=3)


def _note(rows: pl.DataFrame, near: str | None, texts: Mapping[str, Any]) -> str:
    """How to read the figure."""
    said = (
        f"Left: the expected loss on {inside(rows['title'][0])} when one takes the first of "
        f"{rows['k'][0]} models by a predictor, over all choices of {rows['k'][0]} of "
        f"{rows['n'][0]} models; the dotted line is a random choice. Bars: {level_text(texts)} "
        "percentile intervals, the wider of resamples of models and of whole families. "
    )
    if near is None:
        return said
    pairs = int(rows[f"{near}_pairs"].max())  # type: ignore[arg-type]
    return (
        f"{said}Right: how often the better of two models is picked, for the {pairs} pairs within "
        f"{MARGINS[near]} of each other in the source metric; the dotted line is chance. "
    )
