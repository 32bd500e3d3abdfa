"""A grid of panels, one an outcome: their heads, their places, and where the legends go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stamp.report.main_table import SCORES
from stamp.report.plot import style

LEFT, BETWEEN, UNDER = 0.56, 0.45, 0.42  # inches: y labels, between columns, x labels


@dataclass(frozen=True, slots=True)
class Header:
    """What stands over a panel, already broken into lines."""

    title: list[str]
    rho: list[str]
    more: list[str]

    @property
    def height(self) -> float:
        sizes = ((self.title, style.BODY), (self.rho, style.SMALL), (self.more, style.FINE))
        return sum(len(lines) * style.line_height(size) for lines, size in sizes) + 0.06


@dataclass(frozen=True, slots=True)
class Grid:
    """Where the panels stand: their columns, their size in inches, the top of each one's frame."""

    columns: int
    width: float
    height: float
    tops: list[float]

    @property
    def bottom(self) -> float:
        return self.tops[-1] + self.height + UNDER

    def left(self, at: int) -> float:
        return LEFT + at % self.columns * (self.width + BETWEEN)


def columns(count: int) -> tuple[int, float]:
    """How many columns of panels, and how wide each is in inches."""
    many = 2 if count in (1, 2, 4) else 3
    return many, (style.WIDTH - LEFT - style.MARGIN - (many - 1) * BETWEEN) / many


def header(count: int, title: str, first: str, more: Sequence[str]) -> Header:
    """The texts over one of ``count`` panels, broken into lines of its width."""
    width = columns(count)[1]
    return Header(
        style.wrapped(title.replace("_", " "), width, style.BODY, "bold"),
        style.wrapped(first, width, style.SMALL),
        [line for text in more for line in style.wrapped(text, width, style.FINE)],
    )


def grid_of(headers: list[Header], top: float) -> Grid:
    """The places of panels under these headers, from ``top`` downwards."""
    many, width = columns(len(headers))
    height, tops = 0.78 * width, []
    for start in range(0, len(headers), many):
        row = headers[start : start + many]
        top += max(one.height for one in row)
        tops += [top] * len(row)
        top += height + UNDER
    return Grid(many, width, height, tops)


def legend_place(
    blocks: dict[str, list[style.Entry]], grid: Grid, count: int
) -> tuple[float, float, float]:
    """Where the legends go: beside the last panel if a place is free and they fit, else below."""
    if count % grid.columns:
        left = grid.left(count)
        beside = (left, grid.tops[-1], style.WIDTH - style.MARGIN - left)
        if style.legend(blocks, *beside) <= grid.bottom:
            return beside
    return style.MARGIN, grid.bottom, style.INNER


@dataclass(frozen=True, slots=True)
class Panels:
    """A figure with its sheet and an empty frame for each outcome, heads and legends written."""

    figure: Figure
    page: Axes
    grid: Grid
    frames: dict[str, Axes]
    foot: float


@dataclass(frozen=True, slots=True)
class Words:
    """What stands around the panels: the study's texts, the line under its title, the note."""

    texts: Mapping[str, Any]
    subtitle: str
    note: str


def lay_out(
    words: Words,
    heads: Mapping[str, Header],
    labels: tuple[str, str],
    blocks: dict[str, list[style.Entry]],
    extra: float = 0.0,
) -> Panels:
    """A figure of one frame per outcome; ``labels`` of x and y stand at the edge of the grid.

    ``extra`` inches under the legends stay free, from ``foot``.
    """
    texts = words.texts
    grid = grid_of(list(heads.values()), style.heading_height(texts["title"], words.subtitle))
    place = legend_place(blocks, grid, len(heads))
    foot = max(grid.bottom, style.legend(blocks, *place))
    figure, page = style.sheet(foot + extra + style.notes_height(words.note, texts["notice"]))
    style.heading(page, texts["title"], words.subtitle)
    style.legend(blocks, *place, axes=page)
    style.notes(page, words.note, texts["notice"])
    frames = {}
    for at, (name, head) in enumerate(heads.items()):
        frames[name] = frame_under(figure, page, grid, at, head, labels[1])
        frames[name].set_label(f"outcome:{name}")
        frames[name].grid(True)
        frames[name].set_axisbelow(True)
        if at + grid.columns >= len(heads):
            frames[name].set_xlabel(labels[0], labelpad=2)
    return Panels(figure, page, grid, frames, foot)


def frame_under(figure: Figure, page: Axes, grid: Grid, at: int, head: Header, label: str) -> Axes:
    """The empty frame at a place of the grid, its head over it, the y label left of a row."""
    left, top = grid.left(at), grid.tops[at]
    below = style.write(page, left, top - head.height, head.title, style.BODY, weight="bold")
    below = style.write(page, left, below, head.rho, style.SMALL)
    style.write(page, left, below, head.more, style.FINE, color="#404040")
    if at % grid.columns == 0:
        props: dict[str, Any] = {"size": style.BODY, "rotation": 90, "va": "center", "ha": "center"}
        page.text(style.MARGIN, top + grid.height / 2, label, **props)
    return style.panel(figure, (left, top, grid.width, grid.height), f"panel:{at}")


def of_targets(rows: pl.DataFrame, texts: Mapping[str, Any]) -> pl.DataFrame:
    """The rows under the study's rule, of each target with the score that its panels show."""
    kept = rows.filter(pl.col("models") == "declared")
    target = pl.col("outcome").str.split("/").list.first()
    both = kept.filter(pl.col("score") == SCORES["stamp_matched"])["outcome"].unique()
    wanted = target.is_in(texts["matched"]) & pl.col("outcome").is_in(both.implode())
    name = pl.when(wanted).then(pl.lit(SCORES["stamp_matched"])).otherwise(pl.lit(SCORES["stamp"]))
    return kept.filter(pl.col("score") == name)
