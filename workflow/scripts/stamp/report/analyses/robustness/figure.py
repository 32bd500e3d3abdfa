"""The robustness profile: one row per model, one column per change, coloured by the fall."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stamp.report.analyses.robustness.table import ALL, CLEAN, MEAN
from stamp.report.plot import style
from stamp.report.plot.empty import nothing_to_draw
from stamp.report.plot.figure_data import task_metric

NUMBERED = 40  # models up to which each cell has its number
LONGEST, GAP = 1.9, 0.08  # inches: the widest label, beside the clean column
ROW, LOW = 0.18, 0.11  # inches: a row with numbers, one without
LEAST_SPAN = 0.05  # of the colours: smaller falls do not fill them


@style.look()
def draw(table: pl.DataFrame, models: pl.DataFrame, texts: Mapping[str, Any]) -> Figure:
    """The heat map from the analysis' tables; words where no model was stress-tested."""
    rows = models.filter(pl.col("classes") == ALL)
    metric = task_metric(texts)
    subtitle = f"What stress tests cost each model: {metric} on changed source images minus clean"
    order = ordered(rows)
    if order.is_empty():
        return nothing_to_draw(table, texts, subtitle, "no model was stress-tested")
    changes = table["change"].drop_nulls().to_list() or rows["change"].unique().sort().to_list()
    changes = [one for one in changes if one != CLEAN]
    values = {row["model"]: row for row in _wide(rows, "fall").iter_rows(named=True)}
    falls = np.array([[_number(values[key].get(one)) for one in changes] for key in order["model"]])
    names = [style.shortened(label, LONGEST, style.FINE) for label in order["label"]]
    heads = [one.replace("_", " ") for one in changes]
    note = _note(table, len(order))
    top = style.heading_height(texts["title"], subtitle)
    head = style.widest([*heads, CLEAN], style.FINE) + 0.1
    left = style.MARGIN + style.widest(names, style.FINE) + 0.1
    cell = (style.WIDTH - style.MARGIN - left - GAP) / (len(changes) + 1)
    height = ROW * len(names) if len(names) <= NUMBERED else max(ROW * NUMBERED, LOW * len(names))
    size = min(style.FINE, 0.62 * 72 * height / len(names))
    figure, page = style.sheet(top + head + height + style.notes_height(note, texts["notice"]))
    style.heading(page, texts["title"], subtitle)
    style.notes(page, note, texts["notice"])
    for at, name in enumerate(names):
        middle = top + head + (at + 0.5) * height / len(names)
        page.text(left - 0.06, middle, name, size=size, ha="right", va="center")
    for at, name in enumerate([CLEAN, *heads]):
        x = left + (at + 0.5) * cell + (GAP if at else 0)
        props: dict[str, Any] = {"size": style.FINE, "ha": "center", "va": "bottom"}
        page.text(x, top + head - 0.05, name, rotation=90, **props)
    clean = style.panel(figure, (left, top + head, cell, height), "clean")
    _clean(clean, order["clean"].to_numpy()[:, None], size)
    place = (left + cell + GAP, top + head, cell * len(changes), height)
    _falls(style.panel(figure, place, "falls"), -falls, size)
    return figure


def ordered(rows: pl.DataFrame) -> pl.DataFrame:
    """The models that have a metric, those that keep most of it first."""
    every = rows.filter(pl.col("change") == CLEAN).drop_nulls("clean")
    mean = rows.filter(pl.col("change") == MEAN).select("model", "value", "fall")
    found = every.select("model", "label", "clean").join(mean, on="model", how="left")
    return found.sort("value", "clean", "model", descending=[True, True, False], nulls_last=True)


def _wide(rows: pl.DataFrame, column: str) -> pl.DataFrame:
    return rows.pivot("change", index="model", values=column)


def _number(value: float | None) -> float:
    return float("nan") if value is None else value


def _clean(axes: Axes, values: np.ndarray, size: float) -> None:
    """The metric on the images as they are, in words and without a colour."""
    texts = np.array([[_short(one) if len(values) <= NUMBERED else "" for one in values[:, 0]]]).T
    look: dict[str, Any] = {"cmap": ["#f2f2f2"], "annot_kws": {"size": size}}
    style.heat_map(axes, values, texts, **look)


def _falls(axes: Axes, values: np.ndarray, size: float) -> None:
    """The differences from clean: orange where the metric rose, purple where it fell."""
    known = values[~np.isnan(values)]
    span = max(LEAST_SPAN, float(np.abs(known).max())) if known.size else LEAST_SPAN
    numbered = len(values) <= NUMBERED
    texts = np.array([[_short(one) if numbered else "" for one in row] for row in values])
    look: dict[str, Any] = {"cmap": style.DIVERGING, "vmin": -span, "vmax": span}
    style.heat_map(axes, values, texts, annot_kws={"size": size}, **look)


def _short(value: float) -> str:
    """A number with two decimals and without its zero: ``-.07``."""
    if np.isnan(value):
        return ""
    text = f"{abs(value):.2f}"
    if text == "0.00":
        return "0"
    return ("\u2212" if value < 0 else "") + text.removeprefix("0")


def _note(table: pl.DataFrame, count: int) -> str:
    images = max(table["images"].drop_nulls(), default=0)
    lost = table.filter((pl.col("change") != MEAN) & pl.col("fall").is_null())["change"].to_list()
    words = (
        f"{count} models; {images:,} labeled source images, the same under every change; "
        "each change is drawn from seed and image id alone. Models by their mean over all changes, "
        "the best first; changes by what they cost all models, the most first. White: not "
        "measured. "
        "Two models that differ by less than their intervals are not told apart: "
        "robustness_models.csv has those."
    )
    return words + (f" No model was run under {', '.join(lost)}." if lost else "")
