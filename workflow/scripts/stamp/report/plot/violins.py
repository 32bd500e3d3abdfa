"""Scores and outcomes by stratum: a violin, its mean and every model a point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stamp.report.model_groups import PAIR, STAMP, STRATUM, TEST
from stamp.report.outcomes import MEAN
from stamp.report.plot import style
from stamp.report.plot.bands import Bands, Panel, axis_name, quantities
from stamp.report.plot.empty import in_words
from stamp.report.wording import level_text, short_number

ROW, LABEL = 0.52, 0.14  # inches: a stratum, and in it the line of its models' names
SWARM = (ROW - LABEL) / 2 - 0.05  # inches: how far points stand from the middle at the most
SIZE = 4.6  # points: a model's mark
STEP = 1.08 * SIZE / 72  # inches: between the middles of two marks that do not touch
FEWEST = 5  # counted models that a violin is drawn of
APART = 0.1  # inches: between two names
PANELS = 8
BODY_COLOUR = "#e3e3e3"


@style.look()
def draw(
    table: pl.DataFrame, models: pl.DataFrame, texts: Mapping[str, Any], column: str
) -> Figure:
    """The figure of an analysis of strata from its two tables; words where there is nothing."""
    subtitle = f"STAMP and what the models reached on the targets, by {column}"
    rows = table.filter(pl.col("models") == "declared")
    if rows.is_empty() or models["value"].is_null().all():
        reason = table["reason"].drop_nulls()
        words = reason[0] if len(reason) else "no model has a value"
        return in_words(texts, subtitle, f"Nothing to draw: {words}.")
    order = _order(models)
    panels = [_panel(rows, models, name) for name in quantities(models, PANELS, MEAN)]
    sizes = _sizes(rows, order)
    bands = Bands(panels, [*order, *sizes], 3, ROW * len(order))
    if len(panels) <= 4 or bands.width < 2 * style.widest(models["label"], style.FINE) + APART:
        bands = replace(bands, columns=2)
    key = style.key_of(models["objective"], models["family"])
    aside = "" if models["counted"].all() else "degenerate or excluded"
    shown, note = style.legend_blocks(key, aside), _note(rows, texts)
    top = style.heading_height(texts["title"], subtitle)
    foot = style.legend(shown, style.MARGIN, top + bands.total, style.INNER)
    figure, page = style.sheet(foot + style.notes_height(note, texts["notice"]))
    style.heading(page, texts["title"], subtitle)
    style.legend(shown, style.MARGIN, top + bands.total, style.INNER, axes=page)
    style.notes(page, note, texts["notice"])
    frames = bands.draw(figure, page, top)
    for at, start in enumerate(bands.tops(top)):
        words = sizes if at == 0 else [size.partition(",")[0] for size in sizes]  # of the scores
        _names(page, order, words, bands.left, start)
    for name, axes in frames.items():
        _draw(axes, models.filter(pl.col("of") == name).drop_nulls("value"), order, key, bands)
    return figure


def _order(models: pl.DataFrame) -> list[str]:
    """The strata, largest first, then by name."""
    found = models.filter(pl.col("of") == STAMP).drop_nulls("stratum")
    sizes = found.group_by("stratum").len().sort("len", "stratum", descending=[True, False])
    return sizes["stratum"].to_list()


def _panel(rows: pl.DataFrame, models: pl.DataFrame, name: str) -> Panel:
    own = models.filter(pl.col("of") == name)
    test = rows.filter((pl.col("of") == name) & (pl.col("what") == TEST)).rows(named=True)
    if not test or test[0]["statistic"] is None:
        words = f"No test: {test[0]['reason']}." if test else "No test."
    else:
        one = test[0]
        words = (
            f"Kruskal\u2013Wallis H = {one['statistic']:.1f}, p = {one['p']:.2g}, n = {one['n']}"
        )
    return Panel(name, own["title"][0].replace("_", " "), words, axis_name(own))


def _sizes(rows: pl.DataFrame, order: Sequence[str]) -> list[str]:
    """Each stratum's number of models, and how far the first stratum's scores are above its."""
    own = rows.filter(pl.col("of") == STAMP)
    sizes = dict(own.filter(pl.col("what") == STRATUM).select("stratum", "n").iter_rows())
    pairs = own.filter((pl.col("what") == PAIR) & (pl.col("stratum") == order[0]))
    known = dict(pairs.select("other", "delta").iter_rows())
    deltas = {name: f", \u03b4 = {short_number(value)}" for name, value in known.items()}
    return [f"n = {sizes.get(name, 0)}{deltas.get(name, '')}" for name in order]


def _names(page: Axes, order: Sequence[str], sizes: Sequence[str], left: float, top: float) -> None:
    """A stratum's name and what is said of its size, left of its row."""
    props: dict[str, Any] = {"ha": "right"}
    for at, (name, words) in enumerate(zip(order, sizes, strict=True)):
        middle = top + at * ROW + LABEL + (ROW - LABEL) / 2 - style.line_height(style.SMALL)
        room = left - style.MARGIN - 0.1
        below = style.write(
            page, left - 0.1, middle, style.shortened(name, room, style.SMALL), style.SMALL, **props
        )
        style.write(
            page,
            left - 0.1,
            below,
            style.shortened(words, room, style.FINE),
            style.FINE,
            color="#404040",
            **props,
        )


def _draw(
    axes: Axes, rows: pl.DataFrame, order: Sequence[str], key: style.Key, bands: Bands
) -> None:
    """The strata of one panel; y is in inches from its upper edge, so that marks can be placed."""
    low, high = style.limits(rows, "value")
    axes.set_xlim(low, high)
    axes.set_ylim(bands.height, 0)
    inch = bands.width / (high - low)
    for at, name in enumerate(order):
        own = rows.filter(pl.col("stratum") == name).sort("value", "model")
        if at:
            axes.axhline(at * ROW, color="#ececec", lw=0.6, zorder=1)
        if own.is_empty():
            continue
        middle = at * ROW + LABEL + (ROW - LABEL) / 2
        counted = own.filter("counted")["value"].to_numpy()
        _violin(axes, counted, middle, name)
        found = own["value"].to_numpy()
        places = swarm((found - low) * inch, STEP, SWARM)
        placed = own.with_columns(y=middle + pl.Series(places))
        style.points(axes, placed, "value", "y", key, SIZE)
        ends = (
            [own.row(0, named=True), own.row(-1, named=True)]
            if len(own) > 1
            else [own.row(0, named=True)]
        )
        _labels(axes, ends, at * ROW + LABEL / 2 + 0.02, low, inch, bands.width)


def _violin(axes: Axes, values: np.ndarray, middle: float, name: str) -> None:
    """The density of the counted models' values between their ends, and their mean."""
    if not values.size:
        return
    half = SWARM + 0.02
    if values.size >= FEWEST and np.ptp(values) > 0:
        body: dict[str, Any] = {"color": BODY_COLOUR, "linecolor": "#bdbdbd", "linewidth": 0.5}
        names = axes.get_xlabel(), axes.get_ylabel()
        sns.violinplot(
            x=values,
            y=np.full(values.size, middle),
            orient="h",
            native_scale=True,
            cut=0,
            width=2 * half,
            inner=None,
            saturation=1,
            ax=axes,
            zorder=2,
            **body,
        )
        axes.set(xlabel=names[0], ylabel=names[1])
    ends = [middle - half, middle + half]
    axes.plot([values.mean()] * 2, ends, color=style.INK, lw=1.0, zorder=3, gid=f"mean:{name}")


def swarm(places: np.ndarray, step: float, most: float) -> np.ndarray:
    """How far each of some sorted places is moved aside, so that marks ``step`` wide do not touch.

    The nearest free lane to the middle is taken; where all lanes up to ``most`` are full, the one
    whose last mark is the farthest away.
    """
    count = int(most / step)
    lanes = sorted(range(-count, count + 1), key=lambda lane: (abs(lane), lane))
    last = dict.fromkeys(lanes, -np.inf)
    found = np.empty(len(places))
    for at, place in enumerate(places):
        free = [lane for lane in lanes if place - last[lane] >= step]
        lane = free[0] if free else min(lanes, key=lambda one: last[one])
        last[lane], found[at] = place, lane * step
    return found


def _labels(
    axes: Axes, ends: Sequence[Mapping[str, Any]], y: float, low: float, inch: float, width: float
) -> None:
    """The names of a stratum's lowest and highest model, shortened where both do not fit."""
    texts = [row["label"] for row in ends]
    if sum(style.width_of(text, style.FINE) for text in texts) + APART * (len(texts) - 1) > width:
        room = (width - APART) / 2 if len(texts) > 1 else width
        texts = [style.shortened(text, room, style.FINE) for text in texts]
    wide = [style.width_of(text, style.FINE) for text in texts]
    spots = [(row["value"] - low) * inch for row in ends]
    starts = [min(max(0.0, spots[0]), width - wide[0])]
    if len(ends) > 1:
        starts.append(min(max(0.0, spots[1] - wide[1]), width - wide[1]))
        gap = starts[1] - (starts[0] + wide[0])
        if gap < APART:  # the names stand outwards of their marks, the lower one's first
            starts[0] = min(max(0.0, spots[0] - wide[0] / 2), width - wide[0] - APART - wide[1])
            starts[0] = max(0.0, starts[0])
            starts[1] = max(starts[0] + wide[0] + APART, min(spots[1], width - wide[1]))
    for text, start in zip(texts, starts, strict=True):
        props: dict[str, Any] = {
            "size": style.FINE,
            "va": "center",
            "ha": "left",
            "color": "#404040",
        }
        axes.text(low + start / inch, y, text, **props)


def _note(rows: pl.DataFrame, texts: Mapping[str, Any]) -> str:
    first = rows.filter(pl.col("what") == PAIR)["stratum"]
    against = (
        f"\u03b4 is Cliff's delta of the scores of {first[0]} against the stratum's; 1 where the "
        "two do not overlap and the former are larger. "
        if len(first)
        else ""
    )
    return (
        "Every mark is a model; the names are those of a stratum's lowest and highest. Violins "
        f"are Gaussian kernel densities of at least {FEWEST} counted models, cut at their ends; "
        f"upright lines are means of counted models. {against}Tests leave out strata of one model. "
        f"Exact tests of each pair, with {level_text(texts)} intervals, stand in the table."
    )
