"""STAMP layer by layer, one row per model: the layers, the gains between them, and rho below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from stamp.report.analyses.layers.table import ARROW, KINDS, LAYERS, STEPS
from stamp.report.plot import style
from stamp.report.plot.empty import in_words
from stamp.report.profiles.associations import STAMP
from stamp.report.wording import MINUS, RHO, inside, models_text

ROW, APART, WIDEST = 0.155, 0.12, 1.9  # inches: a row, between blocks, the longest name
SEQUENTIAL, DIVERGING = "viridis", "PuOr_r"  # both readable by every kind of colour vision
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


@style.look()
def draw(table: pl.DataFrame, models: pl.DataFrame, texts: Mapping[str, Any]) -> Figure:
    """The figure of the analysis ``layers`` from its two tables; words where there is nothing."""
    taps = models.filter((pl.col("what") == "layer") & (pl.col("layer") != "output"))
    if taps["value"].is_null().all():
        reasons = taps["reason"].drop_nulls()
        why = reasons[0] if len(reasons) else "no model has layers"
        return in_words(texts, SUBTITLE, f"Nothing to draw: {why}.")
    order = _order(models)
    names = [style.shortened(name, WIDEST, style.FINE) for name in order.values()]
    below = _rho_rows(table)
    bold = max((style.width_of(text, style.FINE, "bold") for _, text in below), default=0.0)
    left = style.MARGIN + max(style.widest(names, style.FINE), bold) + 0.1
    count = sum(len(block.columns) for block in BLOCKS)
    cell = (style.WIDTH - style.MARGIN - left - APART * (len(BLOCKS) - 1)) / count
    head = (
        style.widest([_short(column) for block in BLOCKS for column in block.columns], style.FINE)
        + 0.1
    )
    top = style.heading_height(texts["title"], SUBTITLE) + 1.6 * style.SMALL / 72 + head
    foot = top + (len(order) + len(below) + 0.5) * ROW + 0.1
    note = _note(table, models)
    figure, page = style.sheet(foot + style.notes_height(note, texts["notice"]))
    style.heading(page, texts["title"], SUBTITLE)
    style.notes(page, note, texts["notice"])
    for row, name in enumerate(names):
        middle = top + (row + 0.5) * ROW
        page.text(left - 0.06, middle, name, size=style.FINE, ha="right", va="center")
    for row, (_, text) in enumerate(below):
        middle = top + (len(order) + 0.5 + row + 0.5) * ROW
        page.text(
            left - 0.06, middle, text, size=style.FINE, ha="right", va="center", weight="bold"
        )
    x = left
    for block in BLOCKS:
        width = cell * len(block.columns)
        if block.what == "layer":
            style.write(
                page,
                x,
                top - head - 1.4 * style.SMALL / 72,
                TITLES[block.kind],
                style.SMALL,
                weight="bold",
            )
        for at, column in enumerate(block.columns):
            place: dict[str, Any] = {
                "size": style.FINE,
                "ha": "center",
                "va": "bottom",
                "rotation": 90,
            }
            page.text(x + (at + 0.5) * cell, top - 0.04, _short(column), **place)
        height = (len(order) + len(below) + 0.5) * ROW
        name = f"{block.kind}:{block.what}"
        axes = style.panel(figure, (x, top, width, height), name, facecolor="none")
        axes.set(xlim=(0, len(block.columns)), ylim=(len(order) + len(below) + 0.5, 0))
        axes.set_axis_off()
        _cells(axes, models, block, list(order), cell)
        _rhos(axes, table, block, [outcome for outcome, _ in below], len(order), cell)
        x += width + APART
    return figure


def _order(models: pl.DataFrame) -> dict[str, str]:
    """The models and their labels, by the shown outcome, or by STAMP where there is none."""
    rows = models.unique("model", maintain_order=True)
    by = "outcome_value" if rows["outcome_value"].is_not_null().any() else "stamp"
    rows = rows.sort(by, descending=True, nulls_last=True)
    marks = ["" if counted else " *" for counted in rows["counted"]]
    labels = [label + mark for label, mark in zip(rows["label"], marks, strict=True)]
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


def _cells(
    axes: Axes, models: pl.DataFrame, block: LayerBlock, order: list[str], cell: float
) -> None:
    """One coloured cell with its number a model and column; a missing one stays white."""
    rows = models.filter((pl.col("kind") == block.kind) & (pl.col("what") == block.what))
    known = {(row["model"], row["layer"]): row["value"] for row in rows.to_dicts()}
    found = [value for value in known.values() if value is not None]
    most = max((abs(value) for value in found), default=1.0) or 1.0
    low, high = min([*found, 0.0]), max([*found, 0.1])
    for y, model in enumerate(order):
        for x, column in enumerate(block.columns):
            value = known.get((model, column))
            if value is None:
                continue
            if block.what == "gain":
                colour = matplotlib.colormaps[DIVERGING](0.5 + value / most / 2)
            else:
                colour = matplotlib.colormaps[SEQUENTIAL]((value - low) / (high - low))
            gid = f"cell:{model}:{column}"
            shape: dict[str, Any] = {"facecolor": colour, "edgecolor": "white", "lw": 0.4}
            axes.add_patch(Rectangle((x, y), 1, 1, gid=gid, **shape))
            _number(axes, x, y, value, cell, style.ink_on(colour))


def _rhos(
    axes: Axes, table: pl.DataFrame, block: LayerBlock, outcomes: list[str], start: int, cell: float
) -> None:
    """Rho of each column with the outcomes, under the models' rows."""
    rows = table.filter(
        (pl.col("models") == "declared")
        & (pl.col("kind") == block.kind)
        & (pl.col("what") == block.what)
    )
    known = {(row["outcome"], row["layer"]): row["rho"] for row in rows.to_dicts()}
    for y, outcome in enumerate(outcomes):
        for x, column in enumerate(block.columns):
            value = known.get((outcome, column))
            if value is not None:
                gid = f"rho:{outcome}:{column}"
                _number(axes, x, start + 0.5 + y, value, cell, style.INK, weight="bold", gid=gid)


def _number(
    axes: Axes, x: float, y: float, value: float, cell: float, ink: str, **more: Any
) -> None:
    """Two decimals without the leading zero, no wider than the cell."""
    value = round(value, 2) + 0.0  # never minus zero
    text = f"{value:.2f}".replace("0.", ".", 1).replace("-", MINUS)
    text = f"{value:.1f}".replace("-", MINUS) if abs(value) >= 9.995 else text
    weight = more.get("weight", "normal")
    size = min(
        style.FINE - 0.7,
        (style.FINE - 0.7) * 0.92 * cell / style.width_of(text, style.FINE - 0.7, weight),
    )
    props: dict[str, Any] = {"size": size, "ha": "center", "va": "center", "color": ink}
    axes.text(x + 0.5, y + 0.52, text, **props, **more)


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
