"""Score against outcome, one panel an outcome of the targets."""

from __future__ import annotations

from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from stamp.report.plot.data import (
    RHO,
    SOURCE_METRIC,
    Data,
    board,
    correlation,
    interval_name,
    metric_name,
    number,
    outcome_title,
    outcome_values,
    p_value,
    rho_text,
    shown_outcomes,
)
from stamp.report.plot.panels import Header, columns, frame_under, grid_of, legend_place
from stamp.report.plot.style import (
    BODY,
    FINE,
    INNER,
    SMALL,
    WIDTH,
    Key,
    Z,
    heading,
    heading_height,
    key_of,
    legend,
    legend_blocks,
    limits,
    line_height,
    look,
    mark,
    notes,
    notes_height,
    sheet,
    wrapped,
    write,
)


@look()
def draw(data: Data) -> tuple[Figure, pl.DataFrame]:
    """A grid of panels of STAMP against each outcome, and a row for each of its points."""
    models, names = board(data), shown_outcomes(data)
    table = points(data, models, names)
    if not names:
        return _nothing(data), table
    texts, note = data.texts, _note(data, models)
    subtitle = "STAMP, from source images alone, against what each model reached on the targets"
    headers = [header(data, name, columns(len(names))[1]) for name in names]
    grid = grid_of(headers, heading_height(texts["title"], subtitle))
    key = key_of(models["objective"], models["family"])
    aside = "" if models["counted"].all() else "degenerate or excluded"
    blocks = legend_blocks(key, aside)
    place = legend_place(blocks, grid, len(names))
    foot = max(grid.bottom, legend(blocks, *place))
    figure, page = sheet(foot + notes_height(note, texts["notice"]))
    heading(page, texts["title"], subtitle)
    legend(blocks, *place, axes=page)
    notes(page, note, texts["notice"])
    for at, (name, head) in enumerate(zip(names, headers, strict=True)):
        axes = frame_under(figure, page, grid, at, head, metric_name(data, name))
        axes.set_label(f"outcome:{name}")
        mine = table.filter(pl.col("outcome") == name)
        fixed = table.filter(~pl.col("matched"))
        axes.set_xlim(*limits(mine if matched(data, name) else fixed, "low", "score", "high"))
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(15 // grid.columns, steps=[1, 2, 2.5, 5, 10]))
        if matched(data, name):
            axes.set_xlabel("class-matched STAMP", labelpad=2)
        elif at + grid.columns >= len(names):
            axes.set_xlabel("STAMP", labelpad=2)
        _points(axes, mine, key)
    return figure, table


def points(data: Data, models: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """One row an outcome and model that has both a score and a value there."""
    what = ["model", "label", "family", "objective", "counted", "degenerate", "excluded"]
    own = models.select(*what, "score", "low", "high").with_columns(matched=pl.lit(False))
    order = ["outcome", *own.columns, "value", "se"]
    if not names:
        empty = own.clear().with_columns(outcome=pl.lit(""), value=0.0, se=0.0)
        return empty.select(order)
    joined = []
    for name in names:
        rows = _with_matched(data, own, name) if matched(data, name) else own
        values = outcome_values(data, name).with_columns(outcome=pl.lit(name))
        joined.append(rows.drop_nulls("score").join(values, on="model", maintain_order="left"))
    return pl.concat(joined).select(order)


def matched(data: Data, outcome: str) -> bool:
    """Whether the study asks for this outcome's panel to show the class-matched score."""
    wanted = outcome.partition("/")[0] in data.texts.get("matched", ())
    return wanted and f"matched:{outcome}" in data.scores.columns


def _with_matched(data: Data, own: pl.DataFrame, outcome: str) -> pl.DataFrame:
    """The rows with the class-matched score in the place of the headline, without an interval."""
    scores = data.scores.select("model", pl.col(f"matched:{outcome}").alias("score"))
    empty = pl.lit(None, dtype=pl.Float64)
    return (
        own.drop("score")
        .join(scores, on="model", how="left", maintain_order="left")
        .with_columns(low=empty, high=empty, matched=pl.lit(True))
        .select(own.columns)
    )


def header(data: Data, outcome: str, width: float) -> Header:
    """A panel's title; rho, n, p; then the source metric's rho, the partial, and rho over all."""
    predictor = "stamp_matched" if matched(data, outcome) else "stamp"
    kept = correlation(data, outcome, predictor)
    everyone = correlation(data, outcome, predictor, which="all")
    source = correlation(data, outcome, SOURCE_METRIC)
    rho = f"{rho_text(kept)}, {p_value(kept.p)}"
    if kept.rho is None:
        rho = f"{RHO} undefined: {kept.reason}"
    more = []
    if source.rho is not None:
        more = [f"source metric {RHO} = {number(source.rho)}; partial {number(kept.partial)}"]
    if everyone.n != kept.n and everyone.rho is not None:
        more.append(f"all {everyone.n} models {RHO} = {number(everyone.rho)}")
    return Header(
        wrapped(outcome_title(data, outcome), width, BODY, "bold"),
        wrapped(rho, width, SMALL),
        [line for text in more for line in wrapped(text, width, FINE)],
    )


def _points(axes: Axes, rows: pl.DataFrame, key: Key) -> None:
    """Every model's mark at its score and value, with its bars."""
    axes.grid(True)
    axes.set_axisbelow(True)
    if rows.is_empty():
        style: dict[str, Any] = {"transform": axes.transAxes, "ha": "center", "size": SMALL}
        axes.text(0.5, 0.5, "no model has a score and a value here", **style)
        axes.set(xticks=[], yticks=[])
        return
    half = Z * pl.col("se").fill_null(0)
    rows = rows.with_columns(down=pl.col("value") - half, up=pl.col("value") + half)
    axes.set_ylim(*limits(rows, "down", "up"))
    size = 5.5 if len(rows) <= 20 else 4.2
    for one in rows.iter_rows(named=True):
        paint, model, x, y = key.paints[one["objective"]], one["model"], one["score"], one["value"]
        bar: dict[str, Any] = {"color": paint.colour, "solid_capstyle": "butt"}
        if one["se"] is not None:
            ends = [one["down"], one["up"]]
            axes.plot([x, x], ends, lw=0.8, alpha=0.35, zorder=2, gid=f"se:{model}", **bar)
        if one["low"] is not None and one["high"] is not None:
            ends = [one["low"], one["high"]]
            axes.plot(ends, [y, y], lw=1.0, alpha=0.8, zorder=3, gid=f"interval:{model}", **bar)
        shape = key.shapes[one["family"]]
        mark(axes, (x, y), paint, shape, size, one["counted"], f"point:{model}")


def _note(data: Data, models: pl.DataFrame) -> str:
    note = (
        f"{RHO}: Spearman's rank correlation of STAMP and outcome over the filled marks, p by "
        f"permutation; the source metric's {RHO} is over the same models; partial: given the "
        "source metric."
    )
    if data.outcomes["se"].is_not_null().any():
        note = f"Vertical bars: ±1.96 standard errors of the outcome. {note}"
    if models["low"].is_not_null().any():
        note = f"Horizontal bars: {interval_name(data)} of STAMP. {note}"
    if models["degenerate"].any():
        note += " Degenerate models stand at the raw value of the formula."
    return note


def _nothing(data: Data) -> Figure:
    """A figure that says in words why there is nothing to draw."""
    texts, subtitle = data.texts, "STAMP against what each model reached on the targets"
    words = "This study has no targets: there is no outcome to set STAMP against."
    lines = wrapped(words, INNER, BODY)
    top = heading_height(texts["title"], subtitle) + 0.2
    foot = top + len(lines) * line_height(BODY) + 0.2
    figure, page = sheet(foot + notes_height("", texts["notice"]))
    heading(page, texts["title"], subtitle)
    write(page, WIDTH / 2, top, lines, BODY, ha="center")
    notes(page, "", texts["notice"])
    return figure
