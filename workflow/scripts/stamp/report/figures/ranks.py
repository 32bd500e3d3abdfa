"""Rank by STAMP against rank by outcome, as a slope chart; the source metric on the other side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from stamp.config.view_names import SOURCE
from stamp.report.outcomes import MEAN, shown_outcomes, source_outcome
from stamp.report.plot import figure_data, style
from stamp.report.plot.figure_data import FigureData
from stamp.report.wording import DASH, RHO
from stamp.stats.ranks import mid_ranks

LONGEST = 1.85  # inches: the widest label of a slope chart
HEAD = 1.3  # inches: the narrowest column of a title
GAP = 0.08  # inches: between a mark and its words
GREY = "#8c8c8c"
DASHES = (0, (3, 2))


@dataclass(frozen=True, slots=True)
class Side:
    """A column of ranks: the slot of each model, best on top, and the rank of each that counts."""

    slots: dict[str, int]
    ranks: dict[str, float]


@dataclass(frozen=True, slots=True)
class Chart:
    """The slope chart's columns in inches from the left, and its rows in inches from the top."""

    score: float
    outcome: tuple[float, float]
    source: float | None
    label: float
    number: float
    top: float
    pitch: float

    def y(self, slot: int) -> float:
        return self.top + (slot + 0.5) * self.pitch


@style.look()
def draw(data: FigureData) -> tuple[Figure, pl.DataFrame]:
    """The slope chart, or the rank intervals alone where there is no outcome; and its table."""
    models, outcome = figure_data.board(data), ranked_by(data)
    if outcome is None:
        return _intervals(data, models)
    values = figure_data.outcome_values(data, outcome).select("model", outcome="value")
    models = models.join(values, on="model", how="left", maintain_order="left")
    sides = {name: side(models, name) for name in ("score", "outcome", "source")}
    return _slopes(data, *_best(models, sides), outcome), _table(models, sides)


def _best(
    models: pl.DataFrame, sides: Mapping[str, Side]
) -> tuple[pl.DataFrame, Mapping[str, Side]]:
    """The models that are shown, by score, in slots of their own; ranks stay those among all."""
    if len(models) <= figure_data.MOST_ROWS:
        return models, sides
    order = models.sort("score", "model", descending=[True, False], nulls_last=True)
    shown = order.head(figure_data.MOST_ROWS)
    slots = {name: side(shown, name).slots for name in sides}
    return shown, {name: Side(slots[name], found.ranks) for name, found in sides.items()}


def ranked_by(data: FigureData) -> str | None:
    """The outcome to rank by: the mean of the targets, or the only one; None if there is none."""
    names = [
        name
        for name in shown_outcomes(data.outcomes)
        if not figure_data.outcome_values(data, name).is_empty()
    ]
    return names[-1] if MEAN in names or len(names) == 1 else None


def side(models: pl.DataFrame, column: str) -> Side:
    """The order of the models by a column, and the ranks of those that count; 1 is the best.

    Ties share the mean of their ranks and stand in the order of their scores. A model counts if the
    study's rule keeps it and it has both a score and an outcome: those are the ones behind rho.
    """
    order = models.sort(column, "score", "model", descending=[True, True, False], nulls_last=True)
    slots = order.drop_nulls(column)["model"].to_list()
    counted = order.filter("counted").drop_nulls(["score", "outcome", column])
    found = mid_ranks(-counted[column].to_numpy())
    return Side(
        {key: at for at, key in enumerate(slots)},
        dict(zip(counted["model"].to_list(), found.tolist(), strict=True)),
    )


def _table(models: pl.DataFrame, sides: Mapping[str, Side]) -> pl.DataFrame:
    keys = models["model"].to_list()
    ranks = {
        f"rank_{name}": pl.Series([found.ranks.get(key) for key in keys], dtype=pl.Float64)
        for name, found in sides.items()
    }
    what = ["model", "label", "family", "objective", "counted", "degenerate", "excluded"]
    return (
        models.select(*what, "score", "outcome", "source")
        .with_columns(**ranks)
        .with_columns(
            error_score=(pl.col("rank_score") - pl.col("rank_outcome")).abs(),
            error_source=(pl.col("rank_source") - pl.col("rank_outcome")).abs(),
        )
        .sort("counted", "score", descending=True, nulls_last=True)
    )


def _slopes(
    data: FigureData, models: pl.DataFrame, sides: Mapping[str, Side], outcome: str
) -> Figure:
    texts, aside = data.texts, not models["counted"].all()
    third = bool(sides["source"].slots)
    subtitle = "Models ranked by STAMP, by what they reached on the targets"
    subtitle += " and by the source metric" if third else ""
    top = style.heading_height(texts["title"], subtitle)
    chart = _chart(models, sides, third, top)
    heads = _heads(data, outcome, chart)
    over = (max(len(lines) for *_, lines in heads) + 1) * style.line_height(style.SMALL) + 0.1
    chart = _chart(models, sides, third, top + over)
    bottom = chart.y(len(models)) + 0.04
    blocks = style.legend_blocks(
        style.key_of(models["objective"], models["family"]),
        "degenerate or excluded, dashed lines: without a rank" if aside else "",
    )
    foot = style.legend(blocks, style.MARGIN, bottom, style.INNER)
    note = _note(aside) + figure_data.shown_note(len(data.scores))
    figure, page = style.sheet(foot + style.notes_height(note, texts["notice"]))
    style.heading(page, texts["title"], subtitle)
    for x, align, lines in heads:
        start = chart.top - 0.06 - (len(lines) + 1) * style.line_height(style.SMALL)
        style.write(page, x, start, lines, style.SMALL, ha=align, weight="bold")
    _agreement(page, data, outcome, chart)
    _rows(page, models, sides, chart)
    style.legend(blocks, style.MARGIN, bottom, style.INNER, axes=page)
    style.notes(page, note, texts["notice"])
    return figure


def _chart(models: pl.DataFrame, sides: Mapping[str, Side], third: bool, top: float) -> Chart:
    """Labels and ranks as wide as they need, and what remains for the lines."""
    label = min(LONGEST, style.widest(models["label"], style.SMALL))
    found = (_rank(rank) for one in sides.values() for rank in (*one.ranks.values(), None))
    rank = style.widest(found, style.SMALL)
    score = style.MARGIN + label + rank + 2 * GAP
    words = label + rank + 4 * GAP
    source = style.WIDTH - style.MARGIN - rank - GAP if third else None
    if source is None:
        outcome = (style.WIDTH - style.MARGIN - max(HEAD, label + rank + 2 * GAP), style.WIDTH)
    else:
        slope = (source - score - words) / 2
        outcome = (score + slope, score + slope + words)
    return Chart(score, outcome, source, label, rank, top, _pitch(len(models)))


def _heads(data: FigureData, outcome: str, chart: Chart) -> list[tuple[float, str, list[str]]]:
    """The columns' titles: where, how aligned, and their lines."""
    wide = chart.label + chart.number + GAP
    reached = (
        f"by {figure_data.metric_name(data, outcome)}, {figure_data.outcome_title(data, outcome)}"
    )
    if outcome == MEAN:
        reached = reached.replace("Mean", "mean")
    heads = [
        (chart.score, "right", ["by STAMP"]),
        (chart.outcome[0], "left", style.wrapped(reached, max(HEAD, wide), style.SMALL, "bold")),
    ]
    if chart.source is not None:
        text = f"by source {figure_data.metric_name(data, SOURCE)}"
        if source_outcome(data.outcomes, outcome) != SOURCE:
            text += ", all classes"  # the class-matched one is another, and not drawn here
        lines = style.wrapped(text, 1.0, style.SMALL, "bold")
        heads.append((style.WIDTH - style.MARGIN, "right", lines))
    return heads


def _agreement(page: Axes, data: FigureData, outcome: str, chart: Chart) -> None:
    """Over each pair of columns, how well their ranks agree."""
    pairs = [("stamp", chart.score, chart.outcome[0])]
    if chart.source is not None:
        pairs.append((figure_data.SOURCE_METRIC, chart.outcome[1], chart.source))
    for predictor, start, end in pairs:
        text = figure_data.rho_text(figure_data.correlation(data, outcome, predictor))
        top = chart.top - 0.03 - style.line_height(style.SMALL)
        style.write(page, (start + end) / 2, top, text, style.SMALL, ha="center")


def _rows(page: Axes, models: pl.DataFrame, sides: Mapping[str, Side], chart: Chart) -> None:
    """Every model's words, marks and lines."""
    key, size = style.key_of(models["objective"], models["family"]), _size(len(models))
    ends: dict[str, tuple[float, ...]] = {"score": (chart.score,), "outcome": chart.outcome}
    if chart.source is None:
        ends["outcome"] = chart.outcome[:1]
    else:
        ends["source"] = (chart.source,)
    marks = []
    for one in models.iter_rows(named=True):
        model = one["model"]
        y = {name: chart.y(sides[name].slots[model]) for name in ends if model in sides[name].slots}
        for name, xs in ends.items():
            own = {**one, "model": f"{name}:{model}"}
            marks += [{**own, "x": x, "y": y[name]} for x in xs if name in y]
        for name, across in (("score", chart.outcome[0]), ("source", chart.outcome[1])):
            if name in y and "outcome" in y:
                xs, ys = (ends[name][0], across), (y[name], y["outcome"])
                props = _line(one, sides[name], sides["outcome"], key)
                page.plot(xs, ys, gid=f"slope:{name}:{model}", zorder=2, **props)
        _words(page, one, sides, chart, y)
    style.points(page, pl.DataFrame(marks, infer_schema_length=None), "x", "y", key, size)


def _line(one: Mapping[str, Any], here: Side, there: Side, key: style.Key) -> dict[str, Any]:
    """The look of a line: up to five times as thick where the two ranks are far apart."""
    first, second = here.ranks.get(one["model"]), there.ranks.get(one["model"])
    if first is None or second is None:
        return {"color": GREY, "linestyle": DASHES, "lw": 0.8}
    width = 0.8 + 3.2 * abs(first - second) / max(1, len(there.ranks) - 1)
    return {"color": key.colours[one["objective"]], "lw": width, "alpha": 0.75}


def _words(
    page: Axes,
    one: Mapping[str, Any],
    sides: Mapping[str, Side],
    chart: Chart,
    y: Mapping[str, float],
) -> None:
    """A model's label beside its score and its outcome, and its rank beside every mark."""
    label = style.shortened(one["label"], chart.label, style.SMALL)
    ink = style.INK if one["counted"] else "#595959"
    props: dict[str, Any] = {"color": ink, "size": style.SMALL, "va": "center"}
    rank = {name: _rank(found.ranks.get(one["model"])) for name, found in sides.items()}
    if "score" in y:
        x = chart.score - GAP
        page.text(x, y["score"], rank["score"], ha="right", **props)
        page.text(x - chart.number - GAP, y["score"], label, ha="right", **props)
    if "outcome" in y:
        x = chart.outcome[0] + GAP + chart.number
        page.text(x, y["outcome"], rank["outcome"], ha="right", **props)
        page.text(x + GAP, y["outcome"], label, ha="left", **props)
    if "source" in y:
        page.text(style.WIDTH - style.MARGIN, y["source"], rank["source"], ha="right", **props)


def _note(aside: bool) -> str:
    note = (
        "Best on top. The thicker a line, the further its two ranks are apart: a level thin line "
        "is a right prediction, a steep thick one is wrong. Ties share their mean rank."
    )
    if aside:
        note += (
            " Models that the study excludes (grey, dashed) stand where their value puts them "
            f"and count neither in the ranks nor in {RHO}."
        )
    return note


def _rank(found: float | None) -> str:
    return DASH if found is None else f"{found:g}"


def _pitch(count: int) -> float:
    """The height of a row in inches."""
    return 0.18 if count <= 30 else 0.145


def _size(count: int) -> float:
    """The size of a mark in points."""
    return 5.5 if count <= 30 else 4.5


def _intervals(data: FigureData, models: pl.DataFrame) -> tuple[Figure, pl.DataFrame]:
    """Every model's median rank and its interval, where there is no outcome to compare with."""
    every = models.sort("rank", "score", "model", descending=[False, True, False], nulls_last=True)
    rows = every.head(figure_data.MOST_ROWS)
    texts, key = data.texts, style.key_of(models["objective"], models["family"])
    subtitle = "Models ranked by STAMP; there is no outcome on targets to compare the ranks with"
    top, pitch = style.heading_height(texts["title"], subtitle), _pitch(len(rows))
    bottom = top + len(rows) * pitch + 0.45
    aside = "" if models["counted"].all() else "degenerate or excluded"
    blocks = style.legend_blocks(key, aside)
    foot = style.legend(blocks, style.MARGIN, bottom, style.INNER)
    note = "Marks: median rank over bootstrap draws of all scores. "
    note += f"Bars: {figure_data.interval_name(data)} of the rank."
    note += figure_data.shown_note(len(every))
    figure, page = style.sheet(foot + style.notes_height(note, texts["notice"]))
    style.heading(page, texts["title"], subtitle)
    style.legend(blocks, style.MARGIN, bottom, style.INNER, axes=page)
    style.notes(page, note, texts["notice"])
    wide = min(2.4, style.widest(rows["label"], style.SMALL))
    left = style.MARGIN + wide + 0.1
    axes = style.panel(
        figure, (left, top, style.WIDTH - left - style.MARGIN, len(rows) * pitch), "ranks"
    )
    axes.set(ylim=(len(rows) - 0.5, -0.5), xlim=(0.4, _last_rank(rows) + 0.6), yticks=[])
    axes.xaxis.set_major_locator(MaxNLocator(10, integer=True))
    axes.grid(True, axis="x")
    axes.set_xlabel("rank by STAMP (1 is the best)", labelpad=2)
    for at, one in enumerate(rows.iter_rows(named=True)):
        text = style.shortened(one["label"], wide, style.SMALL)
        page.text(
            left - 0.08, top + (at + 0.5) * pitch, text, size=style.SMALL, ha="right", va="center"
        )
        _interval(axes, at, one, key)
    placed = rows.with_columns(place=pl.int_range(pl.len())).drop_nulls("rank")
    style.points(axes, placed, "rank", "place", key, _size(len(rows)))
    what = ["model", "label", "family", "objective", "counted", "degenerate", "excluded", "score"]
    return figure, every.select(*what, "rank", "rank_low", "rank_high")


def _last_rank(rows: pl.DataFrame) -> float:
    """The largest rank of a shown interval; the number of models where all are shown."""
    largest = rows["rank_high"].max()
    return max(len(rows), float(largest)) if isinstance(largest, float) else len(rows)


def _interval(axes: Axes, at: int, one: Mapping[str, Any], key: style.Key) -> None:
    if one["rank"] is None:
        words = f"no rank: {figure_data.flag_words(one) or 'no score'}"
        axes.text(0.7, at, words, size=style.SMALL, va="center", ha="left")
        return
    colour, model = key.colours[one["objective"]], one["model"]
    axes.axhline(at, color=style.FAINT, lw=0.5, zorder=1)
    props: dict[str, Any] = {"color": colour, "lw": 1.4}
    if not one["counted"]:
        props = {"color": GREY, "lw": 1.2, "ls": DASHES}
    ends = [one["rank_low"], one["rank_high"]]
    axes.plot(ends, [at, at], zorder=2, gid=f"interval:{model}", **props)
