"""Score against outcome, one panel per outcome of the targets."""

from __future__ import annotations

from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from stamp.report.outcomes import shown_outcomes
from stamp.report.plot import figure_data, style
from stamp.report.plot.empty import in_words
from stamp.report.plot.figure_data import FigureData
from stamp.report.plot.panels import Header, columns, frame_under, grid_of, legend_place
from stamp.report.wording import RHO, short_number, short_p


@style.look()
def draw(data: FigureData) -> tuple[Figure, pl.DataFrame]:
    """A grid of panels of STAMP against each outcome, and a row for each of its points."""
    models, names = figure_data.board(data), shown_outcomes(data.outcomes)
    table = points(data, models, names)
    if not names:
        return _nothing(data), table
    texts, note = data.texts, _note(data, models)
    subtitle = "STAMP, from source images alone, against what each model reached on the targets"
    headers = [header(data, name, columns(len(names))[1]) for name in names]
    grid = grid_of(headers, style.heading_height(texts["title"], subtitle))
    key = style.key_of(models["objective"], models["family"])
    aside = "" if models["counted"].all() else "degenerate or excluded"
    blocks = style.legend_blocks(key, aside)
    place = legend_place(blocks, grid, len(names))
    foot = max(grid.bottom, style.legend(blocks, *place))
    figure, page = style.sheet(foot + style.notes_height(note, texts["notice"]))
    style.heading(page, texts["title"], subtitle)
    style.legend(blocks, *place, axes=page)
    style.notes(page, note, texts["notice"])
    for at, (name, head) in enumerate(zip(names, headers, strict=True)):
        axes = frame_under(figure, page, grid, at, head, figure_data.metric_name(data, name))
        axes.set_label(f"outcome:{name}")
        mine = table.filter(pl.col("outcome") == name)
        fixed = table.filter(~pl.col("matched"))
        axes.set_xlim(*style.limits(mine if matched(data, name) else fixed, "low", "score", "high"))
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(15 // grid.columns, steps=[1, 2, 2.5, 5, 10]))
        if matched(data, name):
            axes.set_xlabel("class-matched STAMP", labelpad=2)
        elif at + grid.columns >= len(names):
            axes.set_xlabel("STAMP", labelpad=2)
        _points(axes, mine, key)
    return figure, table


def points(data: FigureData, models: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """One row per outcome and model that has both a score and a value there."""
    what = ["model", "label", "family", "objective", "counted", "degenerate", "excluded"]
    own = models.select(*what, "score", "low", "high").with_columns(matched=pl.lit(False))
    order = ["outcome", *own.columns, "value", "se"]
    if not names:
        empty = own.clear().with_columns(outcome=pl.lit(""), value=0.0, se=0.0)
        return empty.select(order)
    joined = []
    for name in names:
        rows = _with_matched(data, own, name) if matched(data, name) else own
        values = figure_data.outcome_values(data, name).with_columns(outcome=pl.lit(name))
        joined.append(rows.drop_nulls("score").join(values, on="model", maintain_order="left"))
    return pl.concat(joined).select(order)


def matched(data: FigureData, outcome: str) -> bool:
    """Whether the study asks for this outcome's panel to show the class-matched score."""
    wanted = outcome.partition("/")[0] in data.texts.get("matched", ())
    return wanted and f"matched:{outcome}" in data.scores.columns


def _with_matched(data: FigureData, own: pl.DataFrame, outcome: str) -> pl.DataFrame:
    """The rows with the class-matched score in the place of the headline, without an interval."""
    scores = data.scores.select("model", pl.col(f"matched:{outcome}").alias("score"))
    empty = pl.lit(None, dtype=pl.Float64)
    return (
        own.drop("score")
        .join(scores, on="model", how="left", maintain_order="left")
        .with_columns(low=empty, high=empty, matched=pl.lit(True))
        .select(own.columns)
    )


def header(data: FigureData, outcome: str, width: float) -> Header:
    """A panel's title; rho, n, p; then the source metric's rho, the partial, and rho over all."""
    predictor = "stamp_matched" if matched(data, outcome) else "stamp"
    kept = figure_data.correlation(data, outcome, predictor)
    everyone = figure_data.correlation(data, outcome, predictor, which="all")
    source = figure_data.correlation(data, outcome, figure_data.SOURCE_MATCHED)
    said = "class-matched source metric"
    if source.rho is None:
        source = figure_data.correlation(data, outcome, figure_data.SOURCE_METRIC)
        said = "source metric"
    rho = f"{figure_data.rho_text(kept)}, {short_p(kept.p)}"
    if kept.rho is None:
        rho = f"{RHO} undefined: {kept.reason}"
    more = []
    if source.rho is not None:
        more = [
            f"{said} {RHO} = {short_number(source.rho)}; "
            f"partial {short_number(kept.partial)}, corrected {short_number(kept.corrected)}"
        ]
    if everyone.n != kept.n and everyone.rho is not None:
        more.append(f"all {everyone.n} models {RHO} = {short_number(everyone.rho)}")
    return Header(
        style.wrapped(figure_data.outcome_title(data, outcome), width, style.BODY, "bold"),
        style.wrapped(rho, width, style.SMALL),
        [line for text in more for line in style.wrapped(text, width, style.FINE)],
    )


def _points(axes: Axes, rows: pl.DataFrame, key: style.Key) -> None:
    """Every model's mark at its score and value, with its bars."""
    axes.grid(True)
    axes.set_axisbelow(True)
    if rows.is_empty():
        props: dict[str, Any] = {"transform": axes.transAxes, "ha": "center", "size": style.SMALL}
        axes.text(0.5, 0.5, "no model has a score and a value here", **props)
        axes.set(xticks=[], yticks=[])
        return
    half = style.Z * pl.col("se").fill_null(0)
    rows = rows.with_columns(down=pl.col("value") - half, up=pl.col("value") + half)
    axes.set_ylim(*style.limits(rows, "down", "up"))
    size = 5.5 if len(rows) <= 20 else 4.2
    for one in rows.iter_rows(named=True):
        model, x, y = one["model"], one["score"], one["value"]
        colour = key.colours[one["objective"]]
        bar: dict[str, Any] = {"color": colour, "solid_capstyle": "butt"}
        if one["se"] is not None:
            ends = [one["down"], one["up"]]
            axes.plot([x, x], ends, lw=0.8, alpha=0.35, zorder=2, gid=f"se:{model}", **bar)
        if one["low"] is not None and one["high"] is not None:
            ends = [one["low"], one["high"]]
            axes.plot(ends, [y, y], lw=1.0, alpha=0.8, zorder=3, gid=f"interval:{model}", **bar)
    style.points(axes, rows, "score", "value", key, size)


def _note(data: FigureData, models: pl.DataFrame) -> str:
    note = (
        f"{RHO}: Spearman's rank correlation of STAMP and outcome over the filled marks, p by "
        f"permutation; the source metric's {RHO} is over the same models; partial: given the "
        "source metric, which favours the score, and corrected for that metric's measurement error."
    )
    if data.outcomes["se"].is_not_null().any():
        note = f"Vertical bars: ±1.96 standard errors of the outcome. {note}"
    if models["low"].is_not_null().any():
        note = f"Horizontal bars: {figure_data.interval_name(data)} of STAMP. {note}"
    if models["degenerate"].any():
        note += " Degenerate models stand at the raw value of the formula."
    return note


def _nothing(data: FigureData) -> Figure:
    """A figure that says in words why there is nothing to draw."""
    subtitle = "STAMP against what each model reached on the targets"
    words = "This study has no targets: there is no outcome to set STAMP against."
    return in_words(data.texts, subtitle, words)
