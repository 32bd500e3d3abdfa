"""How fine-tuning went: one small panel per model, all on the same axes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from stamp.report.plot import style

LEFT, BETWEEN, UNDER = 0.62, 0.12, 0.3  # inches: y labels, between columns, x labels
GAP, ROW = 0.05, 0.14  # inches: between metric and loss, between rows
METRIC, LOSS, STAGE = style.STRONG, "#808080", "#efefef"
SCHEMA = {
    "label": pl.String,
    "epoch": pl.Int64,
    "stage": pl.Int64,
    "metric": pl.Float64,
    "train_loss": pl.Float64,
    "val_loss": pl.Float64,
    "learning_rate": pl.Float64,
    "backbone_learning_rate": pl.Float64,
    "best": pl.Boolean,
}


@dataclass(frozen=True, slots=True)
class CurveGrid:
    """Where the panels stand, in inches: a title, the metric's frame and below it the loss's."""

    columns: int
    count: int
    width: float
    metric: float
    loss: float
    top: float

    @property
    def title(self) -> float:
        return style.line_height(style.SMALL) + style.line_height(style.FINE) + 0.03

    @property
    def row(self) -> float:
        return self.title + self.metric + GAP + self.loss + ROW

    @property
    def bottom(self) -> float:
        return self.top + -(-self.count // self.columns) * self.row - ROW + UNDER

    def place(self, at: int) -> tuple[float, float]:
        """The upper left corner of a model's title."""
        left = LEFT + at % self.columns * (self.width + BETWEEN)
        return left, self.top + at // self.columns * self.row

    def last(self, at: int) -> bool:
        """Whether no panel stands below."""
        return at + self.columns >= self.count


@style.look()
def draw(
    records: Mapping[str, Mapping[str, Any]], texts: Mapping[str, Any]
) -> tuple[Figure, pl.DataFrame]:
    """Metric and losses by epoch for each model, by its label, and one row per epoch and model."""
    table = epochs(records)
    name = "macro-AUROC" if texts["task"] == "multilabel" else "accuracy"
    subtitle = f"Fine-tuning: {name} on the validation images, and below it the loss, by epoch"
    top = style.heading_height(texts["title"], subtitle)
    grid = _grid(len(records), _key(name, top))
    note = "All panels have the same axes. Losses are with smoothed labels."
    figure, page = style.sheet(grid.bottom + style.notes_height(note, texts["notice"]))
    style.heading(page, texts["title"], subtitle)
    _key(name, top, page)
    style.notes(page, note, texts["notice"])
    for at, label in enumerate(records):
        rows = table.filter(pl.col("label") == label)
        left, top = grid.place(at)
        _title(page, left, top, grid.width, rows)
        place = (left, top + grid.title, grid.width, grid.metric)
        upper = style.panel(figure, place, f"metric:{label}")
        place = (left, top + grid.title + grid.metric + GAP, grid.width, grid.loss)
        lower = style.panel(figure, place, f"loss:{label}")
        _axes(upper, lower, table, first=at % grid.columns == 0, last=grid.last(at), name=name)
        _lines(upper, lower, rows)
    return figure, table


def epochs(records: Mapping[str, Mapping[str, Any]]) -> pl.DataFrame:
    """One row per model and epoch, as the records have them."""
    rows = [
        {**epoch, "label": label, "best": epoch["epoch"] == record["best"]}
        for label, record in records.items()
        for epoch in record["curve"]
    ]
    return pl.DataFrame(rows, schema=SCHEMA)


def _grid(count: int, top: float) -> CurveGrid:
    """Few models get large panels, many get small ones."""
    least = {1: 2, 2: 2, 3: 3}.get(count, 4 if count <= 12 else 5 if count <= 20 else 6)
    width = (style.WIDTH - LEFT - style.MARGIN - (least - 1) * BETWEEN) / least
    return CurveGrid(least, count, width, min(1.2, 0.62 * width), min(0.6, 0.34 * width), top)


def _key(name: str, top: float, axes: Axes | None = None) -> float:
    """Draw what lines and marks mean, in a line or two; returns where it ends.

    Without ``axes`` nothing is drawn, so that the figure can make room first.
    """
    entries: dict[str, dict[str, Any]] = {
        name: {"color": METRIC, "lw": 1.2},
        "best epoch, kept": {"marker": "o", "color": METRIC, "mec": style.INK, "ms": 4},
        "training loss": {"color": LOSS, "lw": 1.0},
        "validation loss": {"color": LOSS, "lw": 1.0, "ls": (0, (2, 1.5))},
        "first stage: classifier alone": {"color": STAGE, "lw": 7},
    }
    x = style.MARGIN
    for text, props in entries.items():
        end = x + 0.28 + style.width_of(text, style.SMALL)
        if x > style.MARGIN and end > style.MARGIN + style.INNER:
            x, top = style.MARGIN, top + style.line_height(style.SMALL)
            end = x + 0.28 + style.width_of(text, style.SMALL)
        if axes is not None:
            at = [x + 0.11] if "marker" in props else [x, x + 0.22]
            middle = [top + style.line_height(style.SMALL) / 2] * len(at)
            axes.plot(at, middle, mew=0.4, solid_capstyle="butt", **props)
            style.write(axes, x + 0.28, top, text, style.SMALL)
        x = end + 0.16
    return top + style.line_height(style.SMALL) + 0.12


def _title(page: Axes, left: float, top: float, width: float, rows: pl.DataFrame) -> None:
    """A model's label, and what its best epoch reached."""
    room = width + BETWEEN - 0.03  # the title may reach over the gap to the next panel
    label = style.shortened(rows["label"][0], room, style.SMALL, "bold")
    top = style.write(page, left, top, label, style.SMALL, weight="bold")
    best = rows.row(by_predicate=pl.col("best"), named=True)
    words = f"{best['metric']:.3f} in epoch {best['epoch']}"
    style.write(
        page, left, top, style.shortened(words, width, style.FINE), style.FINE, color="#404040"
    )


def _axes(
    upper: Axes, lower: Axes, table: pl.DataFrame, first: bool, last: bool, name: str
) -> None:
    """The same limits for all models; numbers and names only at the left and at the foot."""
    most = int(table["epoch"].max() or 1)  # type: ignore[arg-type]
    upper.set_ylim(*style.limits(table, "metric"))
    lower.set_ylim(*style.limits(table, "train_loss", "val_loss"))
    names = (name.removeprefix("macro-"), "loss")
    for axes, what, ticks in zip((upper, lower), names, (4, 2), strict=True):
        axes.set_xlim(0.5, most + 0.5)
        axes.grid(True, axis="y")
        axes.set_axisbelow(True)
        axes.xaxis.set_major_locator(MaxNLocator(4, integer=True, steps=[1, 2, 5, 10]))
        axes.yaxis.set_major_locator(MaxNLocator(ticks, steps=[1, 2, 2.5, 5, 10]))
        axes.tick_params(labelsize=style.FINE, pad=1.5, labelleft=first)
        if first:
            axes.set_ylabel(what, fontsize=style.SMALL)
            axes.yaxis.set_label_coords(-0.44 / axes.get_position().width / style.WIDTH, 0.5)
    upper.tick_params(labelbottom=False)
    lower.tick_params(labelbottom=last)
    if last:
        lower.set_xlabel("epoch", fontsize=style.SMALL, labelpad=1)


def _lines(upper: Axes, lower: Axes, rows: pl.DataFrame) -> None:
    """A model's own curves, the first stage shaded, the best epoch marked."""
    label, x = rows["label"][0], rows["epoch"].to_list()
    head = rows.filter(pl.col("stage") == 1)["epoch"].to_list()
    for axes in (upper, lower):
        if head:
            axes.axvspan(0.5, head[-1] + 0.5, color=STAGE, lw=0, zorder=0, gid=f"stage:{label}")
    alone: dict[str, Any] = {"marker": "."} if len(x) == 1 else {}
    upper.plot(x, rows["metric"], color=METRIC, lw=1.2, gid=f"metric:{label}", zorder=3)
    lower.plot(x, rows["train_loss"], color=LOSS, lw=1.0, gid=f"train:{label}", **alone)
    dashed: dict[str, Any] = {"color": LOSS, "lw": 1.0, "ls": (0, (2, 1.5))}
    lower.plot(x, rows["val_loss"], gid=f"val:{label}", **dashed, **alone)
    best = rows.filter("best")
    mark: dict[str, Any] = {"marker": "o", "ms": 3.6, "mec": style.INK, "mew": 0.4, "color": METRIC}
    upper.plot(best["epoch"], best["metric"], gid=f"best:{label}", zorder=4, **mark)
