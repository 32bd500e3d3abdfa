"""Rho and the scores' intervals by number of pairs: one row per outcome, one line for each N."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from stamp.report.outcomes import MEAN
from stamp.report.plot import style
from stamp.report.plot.empty import in_words
from stamp.report.wording import DASH, MINUS, RHO, models_text

BAND, THIN = "#f4f4f4", "#9a9a9a"
LIGHT, DARK = 0xC8, 0x10  # greys of the fewest and of the most pairs
RIGHT, APART = 2.3, 0.62  # inches: the column of the intervals, the room before it
LONGEST = 1.7  # inches: the widest name of an outcome
SUBTITLE = (
    f"{RHO} of STAMP with each outcome, and the width of the scores' intervals, by number of pairs"
)
ALONE = "Width of the scores' intervals, by number of pairs; there is no outcome to correlate with"
COLUMNS = ("N", "width", "|difference|", f"rank {RHO}")
NUMBERS = ("mean_width", "mean_difference", "rank_correlation")


@dataclass(frozen=True, slots=True)
class SweepLayout:
    """Where things stand, in inches: the rows of outcomes, and the column beside them."""

    left: float
    width: float
    top: float
    row: float
    pitch: float
    rows: int

    @property
    def height(self) -> float:
        return self.rows * self.row

    def middle(self, row: int, at: int, count: int) -> float:
        """The y of one N in a row, in inches from the first."""
        return row * self.row + self.row / 2 + (at - (count - 1) / 2) * self.pitch


@style.look()
def draw(table: pl.DataFrame, models: pl.DataFrame, texts: Mapping[str, Any]) -> Figure:
    """The figure of the analysis ``counts`` from its two tables; words where there is nothing."""
    rows = table.filter((pl.col("models") == "declared") & pl.col("number").is_not_null())
    if rows.is_empty():
        return in_words(texts, SUBTITLE, f"Nothing to draw: {table['reason'][0]}.")
    at = rows["number"].unique().sort().to_list()
    names = _names(rows)
    subtitle = SUBTITLE if names else ALONE
    entries = [f"{one:,} pairs" for one in at] + (["source metric"] if names else [])
    top = (
        _key(at, entries, style.heading_height(texts["title"], subtitle))
        + style.line_height(style.SMALL)
        + 0.06
    )
    layout = _layout(names, len(at), top)
    beside = layout.top + 1.45 + 0.42 + (len(at) + 2) * style.line_height(style.FINE)
    note = _note(rows, texts)
    foot = max(layout.top + layout.height + 0.42, beside)
    figure, page = style.sheet(foot + style.notes_height(note, texts["notice"]))
    style.heading(page, texts["title"], subtitle)
    style.notes(page, note, texts["notice"])
    _key(at, entries, style.heading_height(texts["title"], subtitle), page)
    if names:
        _rhos(figure, page, rows.drop_nulls("outcome"), names, at, layout)
    left = style.WIDTH - style.MARGIN - RIGHT + 0.02 if names else style.MARGIN + 0.4
    _widths(figure, page, models.filter("counted"), rows, at, (left, layout.top))
    return figure


def _names(rows: pl.DataFrame) -> dict[str, str]:
    """The outcomes' titles; without their target's where all are of one target."""
    found = rows.drop_nulls("outcome").unique("outcome", maintain_order=True)
    pairs = found.select("outcome", "title").iter_rows()
    targets = {name.partition("/")[0] for name in found["outcome"] if name != MEAN}
    return {
        name: (name.partition("/")[2] if len(targets) == 1 and "/" in name else title).replace(
            "_", " "
        )
        for name, title in pairs
    }


def _layout(names: Mapping[str, str], count: int, top: float) -> SweepLayout:
    left = style.MARGIN + min(LONGEST, style.widest(names.values(), style.SMALL)) + 0.1
    pitch = min(0.085, 0.5 / count)
    row = max(0.22, count * pitch + 0.1)
    width = style.WIDTH - style.MARGIN - RIGHT - APART - left
    return SweepLayout(left, width, top, row, pitch, len(names))


def _shade(at: int, count: int) -> str:
    """Grey by the number of pairs, black for the most."""
    level = LIGHT if count == 1 else round(LIGHT + (DARK - LIGHT) * at / (count - 1))
    return f"#{level:02x}{level:02x}{level:02x}"


def _mark(axes: Axes, x: float, y: float, at: int, count: int, gid: str = "") -> None:
    props: dict[str, Any] = {
        "ls": "none",
        "mec": style.INK,
        "mew": 0.5,
        "zorder": 4,
        "clip_on": False,
    }
    axes.plot([x], [y], marker="o", ms=4.4, mfc=_shade(at, count), gid=gid or None, **props)


def _key(at: list[int], entries: list[str], top: float, axes: Axes | None = None) -> float:
    """What shades and tick mean; returns where it ends. Without ``axes`` nothing is drawn."""
    x = style.MARGIN
    for place, text in enumerate(entries):
        end = x + 0.2 + style.width_of(text, style.SMALL)
        if x > style.MARGIN and end > style.MARGIN + style.INNER:
            x, top = style.MARGIN, top + style.line_height(style.SMALL)
            end = x + 0.2 + style.width_of(text, style.SMALL)
        if axes is not None:
            middle = top + style.line_height(style.SMALL) / 2
            if place < len(at):
                _mark(axes, x + 0.07, middle, place, len(at))
            else:
                _source(axes, x + 0.07, middle - 0.05, middle + 0.05)
            style.write(axes, x + 0.2, top, text, style.SMALL)
        x = end + 0.16
    return top + style.line_height(style.SMALL) + 0.08


def _source(axes: Axes, x: float, low: float, high: float, gid: str | None = None) -> None:
    props: dict[str, Any] = {"ls": (0, (1.5, 1)), "lw": 1.3, "color": "#0072B2", "zorder": 3}
    axes.plot([x, x], [low, high], gid=gid, **props)


def _rhos(
    figure: Figure,
    page: Axes,
    rows: pl.DataFrame,
    names: Mapping[str, str],
    at: list[int],
    layout: SweepLayout,
) -> None:
    """One row per outcome: rho at each N with its interval, and the source metric's rho."""
    above = layout.top - style.line_height(style.SMALL) - 0.04
    style.write(page, layout.left, above, f"{RHO} with the outcome", style.SMALL, weight="bold")
    place = (layout.left, layout.top, layout.width, layout.height)
    axes = style.panel(figure, place, "rho", facecolor="none")
    axes.set(ylim=(layout.height, 0), yticks=[])
    axes.spines["left"].set_visible(False)
    low, high = style.limits(rows, "low", "high", "rho", "source_metric_rho")
    axes.set_xlim(max(low, -1.04), min(high, 1.04))
    axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axes.grid(True, axis="x", color="#dcdcdc")
    axes.set_axisbelow(True)
    axes.set_xlabel(f"Spearman's {RHO}", labelpad=2)
    for row, (outcome, title) in enumerate(names.items()):
        middle = layout.top + (row + 0.5) * layout.row
        text = style.shortened(title, layout.left - style.MARGIN - 0.1, style.SMALL)
        page.text(layout.left - 0.1, middle, text, size=style.SMALL, ha="right", va="center")
        if row % 2 == 0:
            edges = (layout.top + row * layout.row, layout.top + (row + 1) * layout.row)
            end = (layout.left + layout.width) / style.WIDTH
            page.axhspan(*edges, style.MARGIN / 2 / style.WIDTH, end, color=BAND, lw=0)
        _row(axes, rows.filter(pl.col("outcome") == outcome), row, at, layout)


def _row(axes: Axes, rows: pl.DataFrame, row: int, at: list[int], layout: SweepLayout) -> None:
    drawn = []
    for one in rows.iter_rows(named=True):
        place = at.index(one["number"])
        y = layout.middle(row, place, len(at))
        gid = f"{one['outcome']}:{one['number']}"
        if one["low"] is not None:
            ends = [one["low"], one["high"]]
            axes.plot(ends, [y, y], color=THIN, lw=0.9, zorder=2, gid=f"interval:{gid}")
        if one["rho"] is not None:
            drawn.append((one["rho"], y))
            _mark(axes, one["rho"], y, place, len(at), f"rho:{gid}")
    if len(drawn) > 1:
        axes.plot(*zip(*drawn, strict=True), color=style.INK, lw=0.6, zorder=3)
    source = rows["source_metric_rho"].drop_nulls()
    if len(source):
        ends = [row * layout.row + 0.03, (row + 1) * layout.row - 0.03]
        _source(axes, source[-1], ends[0], ends[1], f"source:{rows['outcome'][0]}")
    if not drawn:
        middle = sum(axes.get_xlim()) / 2
        words = f"{RHO} undefined"
        y = (row + 0.5) * layout.row
        axes.text(middle, y, words, size=style.FINE, ha="center", va="center", style="italic")


def _widths(
    figure: Figure,
    page: Axes,
    models: pl.DataFrame,
    rows: pl.DataFrame,
    at: list[int],
    place: tuple[float, float],
) -> None:
    """Each model's interval width by N, their mean, and under it the numbers of the table."""
    (left, top), height = place, 1.45
    above = top - style.line_height(style.SMALL) - 0.04
    style.write(page, left, above, "Width of the scores' intervals", style.SMALL, weight="bold")
    axes = style.panel(figure, (left, top, RIGHT - 0.02, height), "width")
    means = rows.unique("number", maintain_order=True).sort("number")
    axes.set_xlim(-0.5, len(at) - 0.5)
    most = max([*models["width"].drop_nulls(), *means["mean_width"].drop_nulls()], default=1.0)
    axes.set_ylim(0, 1.08 * most)
    axes.set_xticks(range(len(at)), labels=_ticks(at))
    axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))
    axes.grid(True, axis="y")
    axes.set_axisbelow(True)
    axes.set_xlabel("number of pairs, N", labelpad=2)
    for (key,), own in models.drop_nulls("width").group_by("model", maintain_order=True):
        places = [at.index(one) for one in own["number"]]
        axes.plot(places, own["width"], color=THIN, lw=0.6, zorder=2, gid=f"width:{key}")
    known = means.drop_nulls("mean_width")
    places = [at.index(one) for one in known["number"]]
    axes.plot(places, known["mean_width"], color=style.INK, lw=1.4, zorder=3, gid="mean")
    for number, one in zip(places, known["mean_width"], strict=True):
        _mark(axes, number, one, number, len(at))
    _numbers(page, means, left, top + height + 0.44)


def _ticks(at: list[int]) -> list[str]:
    """The numbers under the frame, some left out where all would not fit."""
    texts = [f"{one:,}" for one in at]
    room = RIGHT / len(at)
    every = 1
    while every * room < style.widest(texts, style.SMALL) + 0.06 and every < len(at):
        every += 1
    last = len(at) - 1
    return [text if (last - place) % every == 0 else "" for place, text in enumerate(texts)]


def _numbers(page: Axes, means: pl.DataFrame, left: float, top: float) -> None:
    """N, mean width, mean difference from the largest N and rank correlation with it."""
    edges = [left + 0.36, left + 0.9, left + 1.62, left + RIGHT - 0.02]
    cells = [
        [f"{one['number']:,}", *(_three(one[name]) for name in NUMBERS)]
        for one in means.iter_rows(named=True)
    ]
    for place, line in enumerate([list(COLUMNS), *cells]):
        y = top + (place + 0.5) * style.line_height(style.FINE)
        for x, text in zip(edges, line, strict=True):
            page.text(x, y, text, size=style.FINE, ha="right", va="center", color="#404040")


def _three(value: float | None) -> str:
    return DASH if value is None else f"{value:.3f}".replace("-", MINUS)


def _note(rows: pl.DataFrame, texts: Mapping[str, Any]) -> str:
    level = f"{100 * texts['level']:g} %"
    most = rows["number"].sort()[-1]
    note = "All numbers of pairs share the same logits: fewer pairs are the first of more. "
    if rows["outcome"].is_not_null().any():
        note += f"Bars on the left: {level} interval of {RHO} (Bonett and Wright). On the right one"
    else:
        note += "One"
    note += (
        " grey line a model and the mean in black; below it the means over models of the "
        f"interval's width and of the score's difference from that with {most:,} pairs, and the "
        "rank correlation with it."
    )
    few = rows.drop_nulls("rho")
    return f"{note} {RHO} is over {models_text(few['n'])}." if len(few) else note
