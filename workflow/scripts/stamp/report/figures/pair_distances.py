"""How far apart a model's outputs on semantic and on random pairs lie: one panel per model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from stamp.report.plot import style

MOST = 48  # panels: more of them nobody reads
LEFT, BETWEEN, UNDER, GAP = 0.2, 0.18, 0.34, 0.2  # inches: at the left, between, x labels
COLOURS = {"semantic": style.PALETTE[0], "random": "#808080"}
SUBTITLE = "Distance between a model's outputs on the two images of a pair"
SCHEMA = {
    "model": pl.String,
    "label": pl.String,
    "from": pl.Float64,
    "to": pl.Float64,
    "semantic": pl.Float64,
    "random": pl.Float64,
}


@dataclass(frozen=True, slots=True)
class PanelGrid:
    """Where the panels stand, in inches."""

    columns: int
    count: int
    width: float
    height: float
    top: float

    @property
    def row(self) -> float:
        return style.line_height(style.SMALL) + self.height + GAP

    @property
    def bottom(self) -> float:
        return self.top + -(-self.count // self.columns) * self.row - GAP + UNDER

    def place(self, at: int) -> tuple[float, float]:
        """The upper left corner of a model's name."""
        left = LEFT + at % self.columns * (self.width + BETWEEN)
        return left, self.top + at // self.columns * self.row


@style.look()
def draw(
    records: Mapping[str, Mapping[str, Any]],
    labels: Mapping[str, str],
    texts: Mapping[str, Any],
) -> tuple[Figure, pl.DataFrame]:
    """Shares of the pairs by distance for each model, and one row per model and bin."""
    table = bins(records, labels)
    shown = list(records)[:MOST]
    first = style.heading_height(texts["title"], SUBTITLE)
    grid = _grid(len(shown), _key(first))
    note = _note(len(records))
    figure, page = style.sheet(grid.bottom + style.notes_height(note, texts["notice"]))
    style.heading(page, texts["title"], SUBTITLE)
    _key(first, page)
    style.notes(page, note, texts["notice"])
    for at, key in enumerate(shown):
        left, top = grid.place(at)
        name = style.shortened(labels[key], grid.width, style.SMALL, "bold")
        under = style.write(page, left, top, name, style.SMALL, weight="bold")
        axes = style.panel(figure, (left, under, grid.width, grid.height), f"pairs:{key}")
        _distributions(axes, table.filter(pl.col("model") == key))
        if at + grid.columns >= len(shown):
            axes.set_xlabel("distance", fontsize=style.SMALL, labelpad=1)
    return figure, table


def bins(records: Mapping[str, Mapping[str, Any]], labels: Mapping[str, str]) -> pl.DataFrame:
    """The histograms of the records: one row per model and bin."""
    rows = []
    for key, record in records.items():
        found = record["distances"]
        ends = zip(found["edges"], found["edges"][1:], strict=False)
        both = zip(ends, found["semantic"], found["random"], strict=True)
        rows += [
            {"model": key, "label": labels[key], "from": low, "to": high, "semantic": near,
             "random": far}
            for (low, high), near, far in both
        ]  # fmt: skip
    return pl.DataFrame(rows, schema=SCHEMA)


def _grid(count: int, top: float) -> PanelGrid:
    """Few models get large panels, many get small ones."""
    columns = {1: 2, 2: 2, 3: 3}.get(count, 4 if count <= 24 else 6)
    width = (style.WIDTH - LEFT - style.MARGIN - (columns - 1) * BETWEEN) / columns
    return PanelGrid(columns, count, width, min(1.3, 0.55 * width), top)


def _distributions(axes: Axes, rows: pl.DataFrame) -> None:
    """The steps of both kinds of pairs over a model's own range of distances."""
    edges = np.array([*rows["from"], rows["to"][-1]])
    for kind, colour in COLOURS.items():
        shares = rows[kind].to_numpy()
        axes.stairs(shares, edges, fill=True, color=colour, alpha=0.35, linewidth=0)
        axes.stairs(shares, edges, color=colour, linewidth=0.9)
    axes.set(xlim=(0, edges[-1]), yticks=[])
    axes.set_ylim(bottom=0)
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_locator(MaxNLocator(3))
    axes.tick_params(labelsize=style.FINE, pad=1.5)


def _key(top: float, axes: Axes | None = None) -> float:
    """Draw which colour is which kind of pairs; returns where that ends."""
    x = style.MARGIN
    for kind, colour in COLOURS.items():
        words = f"{kind} pairs"
        if axes is not None:
            middle = top + style.line_height(style.SMALL) / 2
            axes.plot(
                [x, x + 0.22], [middle] * 2, color=colour, lw=5, alpha=0.6, solid_capstyle="butt"
            )
            style.write(axes, x + 0.28, top, words, style.SMALL)
        x += 0.44 + style.width_of(words, style.SMALL)
    return top + style.line_height(style.SMALL) + 0.12


def _note(count: int) -> str:
    words = (
        "Shares of the pairs by the L2 distance of the two output vectors, each panel over the "
        "model's own range. SV and AV are the mean squared distances of the two kinds: the further "
        "the semantic pairs lie to the left of the random ones, the higher the score."
    )
    return words if count <= MOST else f"{words} The first {MOST} of {count} models are shown."
