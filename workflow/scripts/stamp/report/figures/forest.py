"""Every model's score with its interval, best first; the source metric beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from math import ceil, floor
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from stamp.config.view_names import SOURCE
from stamp.report.plot import figure_data, style
from stamp.report.plot.figure_data import FigureData
from stamp.report.wording import DASH

BAND = "#f4f4f4"
LONGEST, FLAGS = 2.1, 1.3  # inches: the widest label, the widest flags


@dataclass(frozen=True, slots=True)
class Layout:
    """Columns in inches from the left: left edges and widths of the panels, edges of the words."""

    label: float
    score: tuple[float, float]
    source: tuple[float, float] | None
    rank: float
    flags: float
    words: list[list[str]]
    edges: list[float]  # of the rows, in inches from the first

    @property
    def middles(self) -> list[float]:
        return [(a + b) / 2 for a, b in zip(self.edges, self.edges[1:], strict=False)]


@style.look()
def draw(data: FigureData) -> tuple[Figure, pl.DataFrame]:
    """The forest plot, and its table with a row for each model in the same order."""
    down = [True, True, False]
    every = figure_data.board(data).sort(
        "counted", "score", "model", descending=down, nulls_last=True
    )
    rows = every.head(figure_data.MOST_ROWS)
    texts, layout = data.texts, _layout(rows)
    subtitle = "STAMP of each model, best first"
    if rows["low"].is_not_null().any():
        subtitle += f", with its {figure_data.interval_name(data)}"
    heads = _heads(data, layout)
    over = max(len(lines) for *_, lines in heads) * style.line_height(style.SMALL) + 0.06
    top = style.heading_height(texts["title"], subtitle) + over
    bottom = top + layout.edges[-1] + 0.32
    aside = "" if rows["counted"].all() else "degenerate or excluded"
    blocks = style.legend_blocks(style.key_of(rows["objective"], rows["family"]), aside)
    note = _note(data, rows) + figure_data.shown_note(len(every))
    foot = style.legend(blocks, style.MARGIN, bottom, style.INNER)
    figure, page = style.sheet(foot + style.notes_height(note, texts["notice"]))
    style.heading(page, texts["title"], subtitle)
    for x, align, lines in heads:
        start = top - 0.04 - len(lines) * style.line_height(style.SMALL)
        style.write(page, x, start, lines, style.SMALL, ha=align, weight="bold")
    _words(page, rows, layout, top)
    _panels(figure, rows, layout, top)
    style.legend(blocks, style.MARGIN, bottom, style.INNER, axes=page)
    style.notes(page, note, texts["notice"])
    what = ["model", "label", "family", "objective", "counted", "score", "low", "high", "source"]
    flags = pl.Series("flags", [figure_data.flag_words(one) for one in every.iter_rows(named=True)])
    return figure, every.select(
        *what, "source_se", "rank", "rank_low", "rank_high", flags, "excluded"
    )


def _layout(rows: pl.DataFrame) -> Layout:
    """Words get the room they need, the panels share the rest; long flags make a row higher."""
    words = [
        style.wrapped(figure_data.flag_words(one), FLAGS, style.FINE)
        for one in rows.iter_rows(named=True)
    ]
    label = style.MARGIN + min(LONGEST, style.widest(rows["label"], style.SMALL)) + 0.1
    flags = style.widest((line for lines in words for line in lines), style.FINE)
    right = style.WIDTH - style.MARGIN - (flags + 0.12 if flags else 0)
    ranks = style.widest((_rank(one) for one in rows.iter_rows(named=True)), style.SMALL)
    room = right - max(ranks, style.width_of("Rank", style.SMALL, "bold")) - 0.2 - label
    pitch = 0.19 if len(rows) <= 30 else 0.15
    heights = [max(pitch, len(lines) * style.line_height(style.FINE) + 0.03) for lines in words]
    score, source = (label, room), None
    if rows["source"].is_not_null().any():
        score = (label, 0.66 * (room - 0.2))
        source = (label + score[1] + 0.2, room - 0.2 - score[1])
    edges = list(accumulate(heights, initial=0.0))
    return Layout(label, score, source, right, style.WIDTH - style.MARGIN - flags, words, edges)


def _heads(data: FigureData, layout: Layout) -> list[tuple[float, str, list[str]]]:
    """The columns' titles: where, how aligned, and their lines."""
    heads = [(layout.score[0], "left", ["STAMP"]), (layout.rank, "right", ["Rank"])]
    if layout.source is not None:
        text = f"Source {figure_data.metric_name(data, SOURCE)}"
        heads.append(
            (layout.source[0], "left", style.wrapped(text, layout.source[1], style.SMALL, "bold"))
        )
    if any(layout.words):
        heads.append((layout.flags, "left", ["Flags"]))
    return heads


def _rank(one: Mapping[str, Any]) -> str:
    """The interval of a model's rank in whole ranks, its rank alone, or a dash without either."""
    if one["rank_low"] is None or one["rank_high"] is None:
        return DASH if one["rank"] is None else f"{one['rank']:g}"
    low, high = floor(one["rank_low"]), ceil(one["rank_high"])
    return f"{low}" if low == high else f"{low}{DASH}{high}"


def _words(page: Axes, rows: pl.DataFrame, layout: Layout, top: float) -> None:
    """Labels on the left, rank intervals and flags on the right, on bands that lead the eye."""
    for at, one in enumerate(rows.iter_rows(named=True)):
        y, lines = top + layout.middles[at], layout.words[at]
        label = style.shortened(one["label"], layout.label - style.MARGIN - 0.1, style.SMALL)
        page.text(layout.label - 0.1, y, label, size=style.SMALL, ha="right", va="center")
        page.text(layout.rank, y, _rank(one), size=style.SMALL, ha="right", va="center")
        start = y - len(lines) * style.line_height(style.FINE) / 2
        style.write(page, layout.flags, start, lines, style.FINE, style="italic")
        if at % 2 == 0:
            inset = style.MARGIN / 2 / style.WIDTH
            edges = (top + layout.edges[at], top + layout.edges[at + 1])
            page.axhspan(*edges, inset, 1 - inset, color=BAND, lw=0)
    counted = int(rows["counted"].sum())
    if 0 < counted < len(rows):
        y = top + layout.edges[counted]
        page.plot(
            [style.MARGIN / 2, style.WIDTH - style.MARGIN / 2], [y, y], color=style.MUTED, lw=0.7
        )


def _panels(figure: Figure, rows: pl.DataFrame, layout: Layout, top: float) -> None:
    """The scores, and the source metric where there is one; their y is in inches."""
    key, size = style.key_of(rows["objective"], rows["family"]), 4.8 if len(rows) <= 30 else 4.0
    axes = _panel(figure, layout, layout.score, top, "score", 6)
    axes.set_xlim(*style.limits(rows, "low", "score", "high"))
    for y, one in zip(layout.middles, rows.iter_rows(named=True), strict=True):
        colour, model = key.colours[one["objective"]], one["model"]
        if one["low"] is not None and one["high"] is not None:
            ends = [one["low"], one["high"]]
            axes.plot(ends, [y, y], color=colour, lw=1.4, gid=f"interval:{model}")
        if one["score"] is None:
            middle = sum(axes.get_xlim()) / 2
            axes.text(
                middle, y, "no score", size=style.FINE, ha="center", va="center", style="italic"
            )
    placed = rows.with_columns(y=pl.Series(layout.middles)).drop_nulls("score")
    style.points(axes, placed, "score", "y", key, size)
    if layout.source is not None:
        _source(_panel(figure, layout, layout.source, top, "source", 4), rows, layout)


def _source(axes: Axes, rows: pl.DataFrame, layout: Layout) -> None:
    half = style.Z * pl.col("source_se").fill_null(0)
    ends = rows.with_columns(down=pl.col("source") - half, up=pl.col("source") + half)
    axes.set_xlim(*style.limits(ends, "down", "up"))
    for y, one in zip(layout.middles, ends.iter_rows(named=True), strict=True):
        if one["source"] is not None:
            axes.plot([one["down"], one["up"]], [y, y], color="#a6a6a6", lw=1.0)
            props: dict[str, Any] = {"marker": "d", "ms": 4.5, "mfc": "#737373", "mec": "none"}
            gid = f"source:{one['model']}"
            axes.plot([one["source"]], [y], ls="none", gid=gid, clip_on=False, **props)


def _panel(
    figure: Figure, layout: Layout, column: tuple[float, float], top: float, label: str, ticks: int
) -> Axes:
    left, width = column
    axes = style.panel(figure, (left, top, width, layout.edges[-1]), label, facecolor="none")
    axes.set(ylim=(layout.edges[-1], 0), yticks=[])
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_locator(MaxNLocator(ticks, steps=[1, 2, 2.5, 5, 10]))
    axes.grid(True, axis="x", color="#dcdcdc")
    axes.set_axisbelow(True)
    return axes


def _note(data: FigureData, rows: pl.DataFrame) -> str:
    parts = ["Rank: among all models, by score."]
    if rows["rank_low"].is_not_null().any():
        parts = [f"Rank: {figure_data.interval_name(data)} of the rank among all scored models."]
    if rows["source_se"].is_not_null().any():
        parts.append("Grey: source metric, bars of ±1.96 standard errors.")
    if rows["degenerate"].any():
        parts.append("Degenerate models: at the raw value of the formula, no interval, no rank.")
    if not rows["counted"].all():
        which = "The models below the line" if rows["counted"].any() else "All models"
        parts.append(f"{which} are excluded by the study; leaderboard.csv says why.")
    return " ".join(parts)
