"""F1 of the alarm over the threshold below which a model fails, beside alarming always."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from stamp.report.analyses.alarm.table import F1, SOURCE_METRIC
from stamp.report.plot import figure_data, style
from stamp.report.plot.empty import nothing_to_draw
from stamp.report.plot.panels import Header, Words, header, lay_out, of_targets

SUBTITLE = "STAMP as an alarm before deployment: F1 on the models that did not calibrate it"
OURS, SOURCE, ALWAYS = "#0072B2", "#E69F00", "#808080"
DASHES = (0, (4, 2))


@style.look()
def draw(table: pl.DataFrame, models: pl.DataFrame, texts: Mapping[str, Any]) -> Figure:
    """The figure of the analysis ``alarm`` from its table; words where there is nothing."""
    rows = of_targets(table.filter(pl.col("rule") == F1), texts)
    if rows.is_empty():
        return nothing_to_draw(table, texts, SUBTITLE, "no outcome has an alarm")
    parts = {str(name): part for (name,), part in rows.group_by("outcome", maintain_order=True)}
    heads = {name: _head(part, len(parts)) for name, part in parts.items()}
    blocks = {
        "F1 of": [
            style.Entry("STAMP", OURS),
            style.Entry("alarming always", ALWAYS),
        ]
    }
    if (rows["predictor"] == SOURCE_METRIC).any():
        blocks["F1 of"].insert(1, style.Entry("the source metric", SOURCE))
    labels = (f"fails below this {figure_data.task_metric(texts)}", "F1")
    page = lay_out(Words(texts, SUBTITLE, _note(texts, rows)), heads, labels, blocks)
    for name, part in parts.items():
        _draw(page.frames[name], part)
    return page.figure


def _draw(axes: Axes, rows: pl.DataFrame) -> None:
    axes.set_ylim(0, 1.02)
    axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    own = rows.filter(pl.col("predictor") != SOURCE_METRIC).sort("delta")
    other = rows.filter(pl.col("predictor") == SOURCE_METRIC).sort("delta")
    x = own["delta"].to_list()
    band: dict[str, Any] = {"color": OURS, "alpha": 0.15, "lw": 0}
    axes.fill_between(x, own["f1_low"].to_list(), own["f1_high"].to_list(), gid="band", **band)
    axes.plot(x, own["always_f1"], color=ALWAYS, lw=1.3, gid="always")
    axes.plot(other["delta"], other["f1"], color=SOURCE, lw=1.3, ls=DASHES, gid="source")
    axes.plot(x, own["f1"], color=OURS, lw=1.6, marker="o", ms=3, gid="stamp")
    chosen = own.filter(pl.col("delta_is").is_in(["median", "study"]))
    for delta in chosen["delta"]:
        axes.axvline(delta, color=style.INK, lw=0.7, ls=":", zorder=1)


def _head(rows: pl.DataFrame, count: int) -> Header:
    chosen = rows.filter(pl.col("delta_is").is_in(["median", "study"]))
    ours = chosen.filter(pl.col("predictor") != SOURCE_METRIC)
    title = rows["title"][0]
    if ours.is_empty():
        return header(count, title, "too few models fail at the study's threshold", [])
    row = ours.row(0, named=True)
    named = "the median" if row["delta_is"] == "median" else "the study's"
    precision = "undefined" if row["precision"] is None else f"{row['precision']:.2f}"
    first = f"F1 {row['f1']:.2f}, always {row['always_f1']:.2f}, n = {row['n']}"
    more = f"precision {precision}, recall {row['recall']:.2f}, below {row['delta']:.3f}, {named}"
    return header(count, title, first, [more])


def _note(texts: Mapping[str, Any], rows: pl.DataFrame) -> str:
    level, row = f"{100 * texts['level']:g} %", rows.row(0, named=True)
    return (
        f"Means over {row['splits']:,} stratified splits, shaded the {level} interval of STAMP's: "
        "35 % of the models calibrate the threshold on the score by their F1, the others test it. "
        "The calibration uses the target labels of its models. Dotted: the study's threshold on "
        "the outcome, or its median over the models. Always: alarming for every model."
    )
