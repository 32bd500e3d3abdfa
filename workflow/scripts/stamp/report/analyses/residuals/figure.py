"""STAMP against what the source metric leaves over of each outcome."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from stamp.report.plot import style
from stamp.report.plot.empty import nothing_to_draw
from stamp.report.plot.panels import Header, Words, header, lay_out, of_targets
from stamp.report.wording import MINUS, RHO, short_number, short_p

SUBTITLE = "STAMP against the residual of each outcome from its line on the source metric"


@style.look()
def draw(table: pl.DataFrame, models: pl.DataFrame, texts: Mapping[str, Any]) -> Figure:
    """The figure of the analysis ``residuals`` from its tables; words where there is nothing."""
    rows = of_targets(table, texts).drop_nulls("rho")
    if rows.is_empty():
        return nothing_to_draw(table, texts, SUBTITLE, "no outcome has residuals")
    points = of_targets(models, texts).drop_nulls("residual")
    key = style.key_of(points["objective"], points["family"])
    heads = {row["outcome"]: _head(row, len(rows)) for row in rows.iter_rows(named=True)}
    labels = ("STAMP", "residual, in probits")
    made = lay_out(Words(texts, SUBTITLE, _note(texts)), heads, labels, style.legend_blocks(key))
    for name, axes in made.frames.items():
        _points(axes, points.filter(pl.col("outcome") == name), key, 15 // made.grid.columns)
    return made.figure


def _points(axes: Axes, rows: pl.DataFrame, key: style.Key, ticks: int) -> None:
    axes.set_xlim(*style.limits(rows, "value_score"))
    axes.set_ylim(*style.limits(rows, "residual"))
    axes.axhline(0, color=style.MUTED, lw=0.8, zorder=1)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(ticks, steps=[1, 2, 2.5, 5, 10]))
    size = 5.5 if len(rows) <= 20 else 4.2
    style.points(axes, rows, "value_score", "residual", key, size)


def _head(row: Mapping[str, Any], count: int) -> Header:
    first = f"{RHO} = {short_number(row['rho'])}, n = {row['n']}, {short_p(row['p'])}"
    ends = f"{row['low']:.2f} to {row['high']:.2f}".replace("-", MINUS)
    return header(count, row["title"], first, [f"{row['score']}; interval {ends}"])


def _note(texts: Mapping[str, Any]) -> str:
    level = f"{100 * texts['level']:g} %"
    return (
        "Residual: how far the probit of a model's outcome lies above the line on the probit of "
        f"its source metric, drawn through all other models. {RHO}: Spearman's, p by permutation, "
        f"{level} interval of Bonett and Wright."
    )
