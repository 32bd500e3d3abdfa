"""Accuracy on the line: outcome against source metric on probit scales, STAMP as the colour."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib
import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from scipy.special import ndtr, ndtri

from stamp.report.main_table import SCORES
from stamp.report.plot import figure_data, style
from stamp.report.plot.empty import nothing_to_draw
from stamp.report.plot.panels import Header, Words, header, lay_out, of_targets
from stamp.report.wording import MINUS, short_number, short_p

SUBTITLE = "Accuracy on the line: outcome against source metric, both on the probit scale"
COLOURS = "cividis"  # from blue to yellow, for every kind of colour vision
TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999)
MOST = 6  # ticks of an axis
BAR = (2.2, 0.1)  # inches: the colour bar


@style.look()
def draw(table: pl.DataFrame, models: pl.DataFrame, texts: Mapping[str, Any]) -> Figure:
    """The figure of the analysis ``probit`` from its two tables; words where there is nothing."""
    rows = of_targets(table, texts).drop_nulls("r_score")
    if rows.is_empty():
        return nothing_to_draw(table, texts, SUBTITLE, "no outcome has a line")
    heads = {row["outcome"]: _head(row, len(rows)) for row in rows.iter_rows(named=True)}
    points = of_targets(models, texts)
    metric = figure_data.task_metric(texts)
    labels = (f"{metric}, source", f"{metric}, target")
    made = lay_out(Words(texts, SUBTITLE, _note(texts)), heads, labels, {}, extra=0.34)
    for row in rows.iter_rows(named=True):
        own = points.filter(pl.col("outcome") == row["outcome"])
        _points(made.frames[row["outcome"]], own, row)
    place = (style.MARGIN + 1.6, made.foot + 0.08, *BAR)
    style.write(made.page, style.MARGIN, made.foot + 0.03, "Colour: STAMP, by rank", style.SMALL)
    bar = style.panel(made.figure, place, "bar")
    bar.imshow(np.linspace(0, 1, 64)[None], aspect="auto", cmap=COLOURS)
    bar.set_axis_off()
    end = made.foot + 0.08 + BAR[1]
    style.write(made.page, place[0], end, "lowest", style.FINE)
    style.write(made.page, place[0] + BAR[0], end, "highest", style.FINE, ha="right")
    return made.figure


def _points(axes: Axes, rows: pl.DataFrame, line: Mapping[str, Any]) -> None:
    """Every model at its two values, coloured by the rank of its score, and the line."""
    axes.set_xlim(*style.limits(rows, "probit_source"))
    axes.set_ylim(*style.limits(rows, "probit_outcome"))
    for axis in (axes.xaxis, axes.yaxis):
        _ticks(axis)
    ends = np.array(axes.get_xlim())
    fit = line["slope_source"] * ends + line["intercept_source"]
    axes.plot(ends, fit, color=style.INK, lw=1.0, zorder=2, gid="line")
    ranks = rows["value_score"].rank().to_numpy()
    props: dict[str, Any] = {"cmap": matplotlib.colormaps[COLOURS], "zorder": 3, "linewidths": 0.5}
    size = 26 if len(rows) <= 20 else 17
    axes.scatter(
        rows["probit_source"].to_numpy(),
        rows["probit_outcome"].to_numpy(),
        c=ranks,
        s=size,
        norm=Normalize(1, max(len(rows), 2)),
        edgecolors=style.INK,
        gid="points",
        **props,
    )


def _ticks(axis: Axis) -> None:
    """Ticks at round shares, at most six, on an axis in probits."""
    low, high = sorted(axis.get_view_interval())
    inside = [share for share in TICKS if low <= ndtri(share) <= high]
    if len(inside) < 3:
        inside = _between(low, high)
    chosen = inside[:: -(-len(inside) // MOST)]
    decimals = max(len(f"{one:g}".partition(".")[2]) for one in chosen)
    texts = [f"{one:.{decimals}f}" for one in chosen]
    axis.set_ticks([float(ndtri(share)) for share in chosen], texts)


def _between(low: float, high: float) -> list[float]:
    """Round shares between two probits that lie close together."""
    found = MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]).tick_values(ndtr(low), ndtr(high))
    return [round(float(one), 6) for one in found if ndtr(low) <= one <= ndtr(high)]


def _head(row: Mapping[str, Any], count: int) -> Header:
    matched = "matched " if row["score"] != SCORES["stamp"] else ""
    both = f"{matched}STAMP {short_number(row['r_score'])}, source {short_number(row['r_source'])}"
    ends = f"{row['low']:.2f} to {row['high']:.2f}".replace("-", MINUS)
    more = [
        f"difference {short_number(row['difference'])} ({ends})",
        f"Steiger's {short_p(row['steiger_p'])}",
        f"equivalent within {row['margin']:g}: {short_p(row['tost_p'])}",
    ]
    first = f"r: {both}, n = {row['n']}"
    return header(count, row["title"], first, more)


def _note(texts: Mapping[str, Any]) -> str:
    level = f"{100 * texts['level']:g} %"
    return (
        "Both axes are scaled by the probit. Line: least squares of the outcome on the source "
        "metric. "
        f"r: Pearson's, of the probit of the outcome with STAMP and with the probit of the source "
        f"metric; their difference with Zou's {level} interval, Steiger's Z1* test of it, and two "
        "one-sided tests of equivalence."
    )
