"""STAMP layer by layer, one row per model: the layers, the gains between them, and rho below."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stamp.report.analyses.layers.table import ARROW, KINDS, LAYERS, STEPS
from stamp.report.plot import style
from stamp.report.plot.empty import in_words
from stamp.report.profiles.associations import STAMP
from stamp.report.wording import MINUS, RHO, inside, models_text

ROW, APART, WIDEST = 0.155, 0.12, 1.9  # inches: a row, between blocks, the longest name
SUBTITLE = "STAMP of pooled features and of the outputs, layer by layer, and the gain of each step"
TITLES = {"raw": "features as they are", "normalised": "features of length one"}


@dataclass(frozen=True, slots=True)
class LayerBlock:
    """Columns that stand together: one kind of features, its layers or its gains."""

    kind: str
    what: str
    columns: Sequence[str]


BLOCKS = [
    LayerBlock(kind, what, columns)
    for kind in KINDS
    for what, columns in (
        ("layer", LAYERS),
        ("gain", [ARROW.join(step) for step in STEPS]),
    )
]


@dataclass(frozen=True, slots=True)
class LayerLayout:
    """Where the blocks stand, in inches, and the rows of models and of rho."""

    left: float
    top: float
    head: float
    cell: float
    models: dict[str, str]
    rhos: list[tuple[str, str]]

    @property
    def rows(self) -> float:
        """The number of rows; half a row keeps rho apart from the models."""
        return len(self.models) + len(self.rhos) + 0.5


@style.look()
def draw(table: pl.DataFrame, models: pl.DataFrame, texts: Mapping[str, Any]) -> Figure:
    """The figure of the analysis ``layers`` from its two tables; words where there is nothing."""
    taps = models.filter((pl.col("what") == "layer") & (pl.col("layer") != "output"))
    if taps["value"].is_null().all():
        reasons = taps["reason"].drop_nulls()
        why = reasons[0] if len(reasons) else "no model has layers"
        return in_words(texts, SUBTITLE, f"Nothing to draw: {why}.")
    layout = _layout(table, models, style.heading_height(texts["title"], SUBTITLE))
    note = _note(table, models)
    foot = layout.top + layout.rows * ROW + 0.1
    figure, page = style.sheet(foot + style.notes_height(note, texts["notice"]))
    style.heading(page, texts["title"], SUBTITLE)
    style.notes(page, note, texts["notice"])
    _row_names(page, layout)
    x = layout.left
    for block in BLOCKS:
        width = layout.cell * len(block.columns)
        _column_names(page, block, layout, x)
        place = (x, layout.top, width, layout.rows * ROW)
        axes = style.panel(figure, place, f"{block.kind}:{block.what}", facecolor="none")
        _cells(axes, models, block, layout)
        _rhos(axes, table, block, layout)
        axes.set(xlim=(0, len(block.columns)), ylim=(layout.rows, 0))
        axes.set_axis_off()
        x += width + APART
    return figure


def _layout(table: pl.DataFrame, models: pl.DataFrame, top: float) -> LayerLayout:
    """Names as wide as they need, and what remains for the cells."""
    order, below = _order(models), _rho_rows(table)
    bold = max((style.width_of(text, style.FINE, "bold") for _, text in below), default=0.0)
    left = style.MARGIN + max(style.widest(order.values(), style.FINE), bold) + 0.1
    count = sum(len(block.columns) for block in BLOCKS)
    cell = (style.WIDTH - style.MARGIN - left - APART * (len(BLOCKS) - 1)) / count
    names = [_short(column) for block in BLOCKS for column in block.columns]
    head = style.widest(names, style.FINE) + 0.1
    return LayerLayout(left, top + 1.6 * style.SMALL / 72 + head, head, cell, order, below)


def _row_names(page: Axes, layout: LayerLayout) -> None:
    """The models' names, and under them what rho is with."""
    props: dict[str, Any] = {"size": style.FINE, "ha": "right", "va": "center"}
    right = layout.left - 0.06
    for row, name in enumerate(layout.models.values()):
        page.text(right, layout.top + (row + 0.5) * ROW, name, **props)
    for row, (_, text) in enumerate(layout.rhos):
        middle = layout.top + (len(layout.models) + row + 1) * ROW
        page.text(right, middle, text, weight="bold", **props)


def _column_names(page: Axes, block: LayerBlock, layout: LayerLayout, left: float) -> None:
    """The layers' names, upright over their columns, and over them the kind of features."""
    if block.what == "layer":
        above = layout.top - layout.head - 1.4 * style.SMALL / 72
        style.write(page, left, above, TITLES[block.kind], style.SMALL, weight="bold")
    props: dict[str, Any] = {"size": style.FINE, "ha": "center", "va": "bottom", "rotation": 90}
    for at, column in enumerate(block.columns):
        page.text(left + (at + 0.5) * layout.cell, layout.top - 0.04, _short(column), **props)


def _order(models: pl.DataFrame) -> dict[str, str]:
    """The models and their labels, by the shown outcome, or by STAMP where there is none."""
    rows = models.unique("model", maintain_order=True)
    by = "outcome_value" if rows["outcome_value"].is_not_null().any() else "stamp"
    rows = rows.sort(by, descending=True, nulls_last=True)
    marks = ["" if counted else " *" for counted in rows["counted"]]
    labels = [
        style.shortened(label + mark, WIDEST, style.FINE)
        for label, mark in zip(rows["label"], marks, strict=True)
    ]
    return dict(zip(rows["model"], labels, strict=True))


def _rho_rows(table: pl.DataFrame) -> list[tuple[str, str]]:
    """The outcomes whose rho stands below, with their words: the last one shown, and STAMP."""
    rows = table.filter(pl.col("models") == "declared")
    titles = dict(rows.select("outcome", "title").unique(maintain_order=True).iter_rows())
    outcomes = [name for name in titles if name != STAMP]
    chosen = [*outcomes[-1:], *([STAMP] if STAMP in titles else [])]
    return [
        (name, f"{RHO} with {style.shortened(inside(titles[name]), 1.4, style.FINE)}")
        for name in chosen
    ]


def _short(column: str) -> str:
    first, _, second = column.partition(ARROW)
    return f"{first} \u2192 {second}" if second else first


def _cells(axes: Axes, models: pl.DataFrame, block: LayerBlock, layout: LayerLayout) -> None:
    """One coloured cell with its number per model and column; a missing one stays white."""
    rows = models.filter((pl.col("kind") == block.kind) & (pl.col("what") == block.what))
    known = {(row["model"], row["layer"]): row["value"] for row in rows.to_dicts()}
    cells = [[known.get((model, column)) for column in block.columns] for model in layout.models]
    values = np.array(cells, float)
    texts = np.array([["" if one is None else _number(one) for one in row] for row in cells])
    found = values[~np.isnan(values)]
    if block.what == "gain":
        most = float(np.abs(found).max(initial=0.0)) or 1.0
        scale: dict[str, Any] = {"cmap": style.DIVERGING, "vmin": -most, "vmax": most}
    else:
        ends = float(found.min(initial=0.0)), float(found.max(initial=0.1))
        scale = {"cmap": style.SEQUENTIAL, "vmin": ends[0], "vmax": ends[1]}
    style.heat_map(axes, values, texts, annot_kws={"size": _size(texts.ravel(), layout)}, **scale)


def _rhos(axes: Axes, table: pl.DataFrame, block: LayerBlock, layout: LayerLayout) -> None:
    """Rho of each column with the outcomes, under the models' rows."""
    rows = table.filter(
        (pl.col("models") == "declared")
        & (pl.col("kind") == block.kind)
        & (pl.col("what") == block.what)
    )
    known = {(row["outcome"], row["layer"]): row["rho"] for row in rows.to_dicts()}
    for y, (outcome, _) in enumerate(layout.rhos):
        for x, column in enumerate(block.columns):
            value = known.get((outcome, column))
            if value is not None:
                text, gid = _number(value), f"rho:{outcome}:{column}"
                size = _size([text], layout, "bold")
                props: dict[str, Any] = {"ha": "center", "va": "center", "weight": "bold"}
                middle = len(layout.models) + y + 1
                axes.text(x + 0.5, middle, text, size=size, gid=gid, **props)


def _number(value: float) -> str:
    """Two decimals without the leading zero."""
    value = round(value, 2) + 0.0  # never minus zero
    if abs(value) >= 9.995:
        return f"{value:.1f}".replace("-", MINUS)
    return f"{value:.2f}".replace("0.", ".", 1).replace("-", MINUS)


def _size(texts: Iterable[str], layout: LayerLayout, weight: str = "normal") -> float:
    """The size of numbers of which none is wider than its cell."""
    most = style.FINE - 0.7
    wide = max((style.width_of(text, most, weight) for text in texts), default=0.0)
    return min(most, 0.92 * most * layout.cell / wide) if wide else most


def _note(table: pl.DataFrame, models: pl.DataFrame) -> str:
    rows = table.filter(pl.col("models") == "declared").drop_nulls("rho")
    shown = models["outcome"].drop_nulls()
    by = "the mean of the targets" if len(shown) and shown[0] == "mean" else "the outcome"
    order = f"Models by {by}, the best first." if len(shown) else "Models by STAMP."
    aside = " * degenerate or excluded." if not models["counted"].all() else ""
    return (
        f"{order}{aside} Early, mid, late, penultimate: mean-pooled features after a quarter, "
        "half, three quarters and all of the network's blocks; output: probabilities. A gain is "
        "the difference of two neighbouring layers; an empty cell is one that a network "
        f"lacks. {RHO}: Spearman's, over {models_text(rows['n'])} that count; many are looked at, "
        "so the largest is large by choice. Intervals and p are in the table."
    )
