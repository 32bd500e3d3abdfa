"""The page's charts as Vega-Lite specifications, made with Altair.

Charts name the page's data sets (``models``, ``values``, ...), so that each is in the page once.
Two signals are the same in all of them: ``target``, the outcome that the menu shows, and ``picks``,
the models that the reader marked. Colours of text, axes and
grid come from the page's style sheet, which knows light, dark and print.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import altair as alt
import polars as pl

from stamp.report.analyses.robustness.table import ALL, CLEAN
from stamp.report.analyses.robustness.table import MEAN as MEAN_CHANGE
from stamp.report.page.study_page import StudyPage
from stamp.report.wording import RHO

GREY = "#8c8c8c"
# Okabe & Ito (2008), without black and yellow: neither is seen on both a dark and a light page.
COLOURS = ["#0072B2", "#E69F00", "#009E73", "#56B4E9", "#D55E00", "#CC79A7", GREY]
SHAPES = [
    "circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-left",
    "triangle-right",
]  # fmt: skip
PICKED = "indexof(picks, datum.model) >= 0"
MOST_RANKED = 40  # models of a heat map, the first of the leaderboard
MOST_CURVES = 60
TICKS = 6  # about so many on an axis of a scatter: a phone has room for them
BAR = 0.7  # opacity of intervals: seen on a dark page too
LABELS, CELL, WRITTEN_CELL = 200, 15, 32  # pixels: names of rows, a column, one with numbers
LEAST_SPAN = 0.05  # of the colours of stress tests: smaller differences do not fill them
NUMBER = ".3f"
KINDS = {
    "stamp": "STAMP",
    "source_metric": "source metric",
    "source_matched": "source metric",
    "random": "random choice",
}
OTHERS = "other predictors"
FONT = "system-ui, -apple-system, Segoe UI, Roboto, Helvetica Neue, Arial, sans-serif"

Specification = dict[str, Any]
Drawn = alt.LayerChart | alt.FacetChart


def charts(page: StudyPage) -> dict[str, Specification]:
    """The charts that this study has something for, by the name of their place in the page."""
    found = {}
    common = [name for name, _ in Counter(row["objective"] for row in page.models).most_common()]
    if page.outcomes:
        found["stamp-outcome"] = against("STAMP", "score", common)
        found["source-outcome"] = against(f"source {page.source_metric}", "source", common)
    if page.tables.outranks is not None and len(ranked(page)) > 1:
        found["outranks"] = outranks(ranked(page))
    if baselines_rows(page):
        found["baselines"] = baselines(len({row["name"] for row in baselines_rows(page)}))
    if robustness_rows(page):
        found["robustness"] = robustness(page)
    if picks := regret_rows(page):
        found["regret"] = regret(len({row["name"] for row in picks}), [row["k"] for row in picks])
    if curves := training_rows(page):
        found["training"] = training(curves, common)
    if page.tables.pairs:
        found["distances"] = distances()
    first = page.outcomes[0].key if page.outcomes else ""
    return {name: finished(chart, first) for name, chart in found.items()}


def least_widths(page: StudyPage) -> dict[str, int]:
    """How wide the heat maps must be at least, in pixels; a phone scrolls them sideways."""
    changes = len({row["change"] for row in robustness_rows(page)})
    return {
        "outranks": LABELS + CELL * len(ranked(page)),
        "robustness": LABELS + WRITTEN_CELL * changes,
    }


def datasets(page: StudyPage) -> dict[str, list[dict[str, Any]]]:
    """The rows that the charts draw."""
    columns = ("model", "name", "family", "objective", "regime", "place", "counted", "low", "high")
    models = [
        {
            **{column: row.get(column) for column in columns},
            "score": row["raw"] if row.get("degenerate") else row.get("stamp"),
            "source": row["source_metric"],
            "source_low": row["source_low"],
            "source_high": row["source_high"],
            "flags": "; ".join(one["label"] for one in row["raised"]) or "none",
        }
        for row in page.models
    ]
    return {
        "models": models,
        "values": values_rows(page),
        "outranks": outranks_rows(page),
        "baselines": baselines_rows(page),
        "robustness": robustness_rows(page),
        "regret": regret_rows(page),
        "training": training_rows(page),
    }


def finished(chart: Drawn, target: str) -> Specification:
    """A chart as plain values, as wide as its place, with the signals that the page sets."""
    signals = [alt.param(name="target", value=target), alt.param(name="picks", value=[])]
    fit = alt.AutoSizeParams(type="fit-x", contains="padding")
    chart = chart.add_params(*signals).properties(width="container", autosize=fit)
    look = chart.configure(background="transparent", font=FONT, padding=2)
    sizes = {"labelFontSize": 12, "titleFontSize": 12}
    return (
        look.configure_view(stroke=None)
        .configure_axis(**sizes, titleFontWeight="normal", titlePadding=8, labelOverlap="greedy")
        .configure_legend(columns=2, **sizes, titleFontWeight="normal", symbolBaseFillColor=GREY)
        .to_dict()
    )


# --- score against outcome ------------------------------------------------------------------------


def values_rows(page: StudyPage) -> list[dict[str, Any]]:
    """One row per model and outcome; ``x`` where another score than the headline is shown.

    ``source`` is the class-matched source metric, where that is another than the plain one.
    """
    rows = []
    for one in page.outcomes:
        for row in page.models:
            found = row["values"][one.key]
            if found["value"] is None:
                continue
            own = {"model": row["model"], "outcome": one.key, **found}
            if one.matched:
                own["x"] = row.get(f"matched:{one.key}")
            if beside := row["sources"].get(one.key):
                own |= {"mixed": beside["value"], "mixed_low": beside["low"]}
                own["mixed_high"] = beside["high"]
            rows.append(own)
    return rows


TOLD = [  # of a model under the pointer
    alt.Tooltip("name:N", title="model"),
    alt.Tooltip("score:Q", title="STAMP", format=NUMBER),
    alt.Tooltip("low:Q", title="from", format=NUMBER),
    alt.Tooltip("high:Q", title="to", format=NUMBER),
    alt.Tooltip("source:Q", title="source metric", format=NUMBER),
    alt.Tooltip("value:Q", title="on the target", format=NUMBER),
    alt.Tooltip("flags:N"),
]


def against(title: str, x: str, objectives: Sequence[str]) -> Drawn:
    """A score (or the source metric) against the outcome that the menu shows."""
    chosen = alt.selection_point(name="kept", fields=["objective"], bind="legend")
    base, paints = _on_the_target(x), alt.Scale(domain=list(objectives), range=COLOURS)
    wide = alt.Scale(zero=False, nice=True)
    across = alt.X("at:Q", title=title, scale=wide, axis=alt.Axis(tickCount=TICKS))
    up = alt.Y("value:Q", title="on the target", scale=wide, axis=alt.Axis(tickCount=TICKS))
    colour = alt.Color("objective:N", title="objective", scale=paints, legend=_legend())
    bars = base.mark_rule(strokeWidth=1.2, aria=False).encode(
        color=colour, opacity=alt.condition(PICKED, alt.value(1), alt.value(0.5))
    )
    of_x = alt.X("x_low:Q", title=title, axis=alt.Axis(tickCount=TICKS))
    points = base.mark_point(filled=True, size=80, strokeWidth=1.5).encode(
        x=across,
        y=up,
        color=colour,
        shape=alt.Shape(
            "family:N", title="family", scale=alt.Scale(range=SHAPES), legend=_legend()
        ),
        stroke=alt.Stroke("objective:N", title="objective", scale=paints, legend=_legend()),
        fillOpacity=alt.condition("datum.counted", alt.value(0.9), alt.value(0)),
        opacity=alt.condition(chosen, alt.value(1), alt.value(0.12)),
        size=alt.condition(PICKED, alt.value(210), alt.value(80)),
        tooltip=TOLD,
    )
    return alt.layer(
        bars.encode(x=of_x, x2="x_high:Q", y=up),
        bars.encode(x=across, y=alt.Y("value_low:Q"), y2="value_high:Q"),
        points.add_params(chosen),
    ).properties(height=320)


def _on_the_target(x: str) -> alt.Chart:
    """The models' rows for the target of the menu, with what stands on the x axis as ``at``."""
    wanted = ["name", "family", "objective", "regime", "place", "counted", "score", "low", "high"]
    wanted += ["source", "source_low", "source_high", "flags"]
    own = "isDefined(datum.x) ? datum.x : datum.score"
    mixed = "isDefined(datum.mixed) ? datum.mixed{} : datum.source{}"
    ends = {
        f"x_{end}": f"isDefined(datum.x) ? null : datum.{end}"
        if x == "score"
        else mixed.format(f"_{end}", f"_{end}")
        for end in ("low", "high")
    }
    return (
        alt.Chart(alt.NamedData(name="values"))
        .transform_filter("datum.outcome === target")
        .transform_calculate(value_low="datum.low", value_high="datum.high")
        .transform_lookup(
            lookup="model",
            from_=alt.LookupData(data=alt.NamedData(name="models"), key="model", fields=wanted),
        )
        .transform_calculate(at=own if x == "score" else mixed.format("", ""), **ends)
        .transform_filter("isValid(datum.at)")
    )


def _legend() -> alt.Legend:
    return alt.Legend(orient="bottom", symbolLimit=12, labelLimit=150)


# --- who outranks whom ----------------------------------------------------------------------------


def ranked(page: StudyPage) -> list[dict[str, Any]]:
    """The models of the heat map: those with a score, the first so many."""
    return [row for row in page.models if row.get("stamp") is not None][:MOST_RANKED]


def outranks_rows(page: StudyPage) -> list[dict[str, Any]]:
    """One row per two models."""
    table = page.tables.outranks
    if table is None:
        return []
    shown = {row["model"]: row["name"] for row in ranked(page)}
    share = {row["model"]: row for row in table.iter_rows(named=True) if row["model"] in shown}
    return [
        {"model": a, "a": shown[a], "b": shown[b], "share": share[a][b]}
        for a in shown
        for b in shown
        if a != b and a in share and share[a].get(b) is not None
    ]


def outranks(models: Sequence[dict[str, Any]]) -> Drawn:
    """How often the model of the row is above that of the column, over the bootstrap draws."""
    order = [row["name"] for row in models]
    axis: dict[str, Any] = {"labelLimit": 190, "ticks": False, "domain": False, "title": None}
    axis["labelOverlap"] = False
    base = alt.Chart(alt.NamedData(name="outranks"))
    cells = base.mark_rect(stroke=None).encode(
        x=alt.X("b:N", sort=order, axis=alt.Axis(labelAngle=-50, **axis)),
        y=alt.Y("a:N", sort=order, axis=alt.Axis(**axis)),
        color=alt.Color(
            "share:Q",
            title="row above column",
            scale=alt.Scale(scheme="purpleorange", domain=[0, 1], domainMid=0.5),
            legend=alt.Legend(
                orient="bottom", gradientLength=200, format=".0%", values=[0, 0.5, 1]
            ),
        ),
        opacity=alt.condition(f"length(picks) === 0 || {PICKED}", alt.value(1), alt.value(0.35)),
        tooltip=[
            alt.Tooltip("a:N", title="row"),
            alt.Tooltip("b:N", title="column"),
            alt.Tooltip("share:Q", title="above in", format=".1%"),
        ],
    )
    return alt.layer(cells).properties(height=max(120, 24 * len(order)))


# --- other predictors -----------------------------------------------------------------------------


def baselines_rows(page: StudyPage) -> list[dict[str, Any]]:
    """One row per outcome and predictor, under the study's own rule of exclusion."""
    table = page.tables.baselines
    if table is None:
        return []
    kept = table.filter(
        pl.col("models") == "declared", pl.col("common"), pl.col("oriented").is_not_null()
    )
    known = {one.key for one in page.outcomes}
    return [
        {
            "outcome": row["outcome"],
            "name": row["name"],
            "rho": row["oriented"],
            "low": row["low"],
            "high": row["high"],
            "n": row["n"],
            "needs": row["needs"] or "nothing more",
            "kind": KINDS.get(row["predictor"], OTHERS),
        }
        for row in kept.iter_rows(named=True)
        if row["outcome"] in known
    ]


def _kind_colour(*more: str) -> alt.Color:
    """The colours of STAMP, the source metric and the others; ``more`` kinds come last."""
    kinds = [*dict.fromkeys(list(KINDS.values())[:3]), OTHERS, *more]
    colours = ["#D55E00", "#0072B2", GREY, "#009E73"]
    return alt.Color(
        "kind:N",
        title=None,
        scale=alt.Scale(domain=kinds, range=colours[: len(kinds)]),
        legend=alt.Legend(orient="top", symbolOpacity=1),
    )


def baselines(number: int) -> Drawn:
    """Rho of every predictor with the outcome that the menu shows, best first."""
    base = alt.Chart(alt.NamedData(name="baselines")).transform_filter("datum.outcome === target")
    order = alt.EncodingSortField("rho", op="max", order="descending")
    name = alt.Y(
        "name:N",
        sort=order,
        axis=alt.Axis(labelLimit=190, title=None, ticks=False, domain=False, labelOverlap=False),
    )
    colour = _kind_colour()
    title = f"Spearman's {RHO}, oriented"
    axis = alt.Axis(values=[-1, -0.5, 0, 0.5, 1])
    across = alt.X("rho:Q", title=title, scale=alt.Scale(domain=[-1, 1]), axis=axis)
    bars = base.mark_rule(strokeWidth=2, opacity=BAR, aria=False).encode(
        x=alt.X("low:Q", title=title, axis=axis), x2="high:Q", y=name, color=colour
    )
    points = base.mark_point(filled=True, size=55, opacity=1).encode(
        x=across,
        y=name,
        color=colour,
        tooltip=[
            alt.Tooltip("name:N", title="predictor"),
            alt.Tooltip("rho:Q", title=RHO, format=NUMBER),
            alt.Tooltip("low:Q", title="from", format=NUMBER),
            alt.Tooltip("high:Q", title="to", format=NUMBER),
            alt.Tooltip("n:Q", title="models"),
            alt.Tooltip("needs:N", title="needs"),
        ],
    )
    return alt.layer(bars, points).properties(height=40 + 15 * number)


# --- stress tests ---------------------------------------------------------------------------------


def robustness_rows(page: StudyPage) -> list[dict[str, Any]]:
    """One row per model and change: what the metric gains or, mostly, loses."""
    table = page.tables.robustness
    if table is None:
        return []
    every = table.filter(pl.col("classes") == ALL).drop_nulls("value")
    tested = set(every["model"])
    shown = [row for row in page.models if row["model"] in tested][:MOST_RANKED]
    names = {row["model"]: row["name"] for row in shown}
    return [
        {
            "model": row["model"],
            "name": names[row["model"]],
            "change": row["change"].replace("_", " "),
            "value": row["value"],
            "clean": row["clean"],
            "gain": None if row["fall"] is None else -row["fall"],
            "low": None if row["fall_high"] is None else -row["fall_high"],
            "high": None if row["fall_low"] is None else -row["fall_low"],
            "stability": row["stability"],
        }
        for row in every.iter_rows(named=True)
        if row["model"] in names
    ]


def robustness(page: StudyPage) -> Drawn:
    """The difference from clean images of every model (row) under every change (column)."""
    rows = robustness_rows(page)
    mean = {row["name"]: row["value"] for row in rows if row["change"] == MEAN_CHANGE}
    order = sorted({row["name"] for row in rows}, key=lambda name: (-mean.get(name, -1.0), name))
    costs: dict[str, list[float]] = {}
    for row in rows:
        costs.setdefault(row["change"], []).append(row["gain"] or 0.0)
    changes = sorted(costs, key=lambda name: (sum(costs[name]) / len(costs[name]), name))
    first = [one for one in (CLEAN, MEAN_CHANGE) if one in changes]
    span = max([LEAST_SPAN, *(abs(row["gain"]) for row in rows if row["gain"] is not None)])
    axis: dict[str, Any] = {"labelLimit": 190, "ticks": False, "domain": False, "title": None}
    axis["labelOverlap"] = False
    columns = [*first, *(one for one in changes if one not in first)]
    over = alt.Axis(labelAngle=-50, labelAlign="left", orient="top", **axis)
    base = alt.Chart(alt.NamedData(name="robustness")).encode(
        x=alt.X("change:N", sort=columns, axis=over),
        y=alt.Y("name:N", sort=order, axis=alt.Axis(**axis)),
    )
    told = [
        alt.Tooltip("name:N", title="model"),
        alt.Tooltip("change:N"),
        alt.Tooltip("clean:Q", title=f"{page.source_metric}, clean", format=NUMBER),
        alt.Tooltip("value:Q", title="changed", format=NUMBER),
        alt.Tooltip("gain:Q", title="difference", format="+.3f"),
        alt.Tooltip("low:Q", title="from", format="+.3f"),
        alt.Tooltip("high:Q", title="to", format="+.3f"),
        alt.Tooltip("stability:Q", title="stability, without labels", format=NUMBER),
    ]
    cells = base.mark_rect(stroke=None).encode(
        color=alt.Color(
            "gain:Q",
            title="changed minus clean",
            scale=alt.Scale(scheme="purpleorange", domain=[-span, span], domainMid=0),
            legend=alt.Legend(orient="top", gradientLength=220, format="+.2f", tickCount=5),
        ),
        opacity=alt.condition(f"length(picks) === 0 || {PICKED}", alt.value(1), alt.value(0.35)),
        tooltip=told,
    )
    cells = cells.transform_filter("isValid(datum.gain)")
    clean = (
        base.mark_text(fontSize=11, fill=GREY)
        .encode(text=alt.Text("value:Q", format=".2f"), tooltip=told)
        .transform_filter(f"datum.change === '{CLEAN}'")
    )
    room = {"left": 2, "top": 2, "right": 50, "bottom": 2}  # the last change is written slanting
    return alt.layer(cells, clean).properties(height=max(120, 22 * len(order)), padding=room)


# --- regret ---------------------------------------------------------------------------------------


def regret_rows(page: StudyPage) -> list[dict[str, Any]]:
    """One row per outcome, number of models at hand and predictor, a random choice among them."""
    table, known = page.tables.regret, {one.key for one in page.outcomes}
    if table is None:
        return []
    columns = ("outcome", "k", "n", "name", "regret", "low", "high", "close_pairs", "close_right")
    return [
        {
            **{column: row[column] for column in columns},
            "needs": row["needs"] or "nothing more",
            "kind": KINDS.get(row["predictor"], OTHERS),
        }
        for row in table.drop_nulls("regret").iter_rows(named=True)
        if row["outcome"] in known
    ]


def regret(number: int, subsets: Sequence[int]) -> Drawn:
    """What the best of k models by each predictor loses, for the outcome that the menu shows."""
    choices = sorted(set(subsets))
    first = next((k for k in reversed(choices[:-1])), choices[0])
    at_hand = alt.param(
        name="k", value=first, bind=alt.binding_radio(options=choices, name="Models at hand ")
    )
    base = alt.Chart(alt.NamedData(name="regret")).transform_filter(
        "datum.outcome === target && datum.k === k"
    )
    order = alt.EncodingSortField("regret", op="min", order="ascending")
    axis: dict[str, Any] = {"labelLimit": 190, "title": None, "ticks": False, "domain": False}
    name = alt.Y("name:N", sort=order, axis=alt.Axis(labelOverlap=False, **axis))
    colour, title = _kind_colour("random choice"), "expected loss"
    ticks = alt.Axis(tickCount=TICKS)
    bars = base.mark_rule(strokeWidth=2, opacity=BAR, aria=False).encode(
        x=alt.X("low:Q", title=title, axis=ticks), x2="high:Q", y=name, color=colour
    )
    points = base.mark_point(filled=True, size=55, opacity=1).encode(
        x=alt.X("regret:Q", title=title, axis=ticks),
        y=name,
        color=colour,
        tooltip=[
            alt.Tooltip("name:N", title="predictor"),
            alt.Tooltip("regret:Q", title="loss", format=".4f"),
            alt.Tooltip("low:Q", title="from", format=".4f"),
            alt.Tooltip("high:Q", title="to", format=".4f"),
            alt.Tooltip("n:Q", title="models"),
            alt.Tooltip("close_right:Q", title="better of two close models", format=".2f"),
            alt.Tooltip("close_pairs:Q", title="close pairs"),
            alt.Tooltip("needs:N", title="needs"),
        ],
    )
    layers = alt.layer(bars, points).add_params(at_hand)
    return layers.properties(height=40 + 15 * number)


# --- training -------------------------------------------------------------------------------------


def training_rows(page: StudyPage) -> list[dict[str, Any]]:
    """One row per model and epoch: the training loss.

    The loss of a linear head that is fitted at the end, on a frozen backbone, is of no epoch.
    """
    models = {row["model"]: row for row in page.models}
    chosen = [key for key in models if key in page.tables.training][:MOST_CURVES]
    rows = []
    for key in chosen:
        record = page.tables.training[key]
        losses = record.get("losses")
        if losses and key in page.facts.frozen:
            losses = losses[:-1]
        curve = [
            {"epoch": epoch, "train_loss": loss} for epoch, loss in enumerate(losses or [], start=1)
        ] or [one for one in record.get("curve", []) if "epoch" in one]
        rows += [
            {
                "model": key,
                "name": models[key]["name"],
                "objective": models[key]["objective"],
                "epoch": one["epoch"],
                "loss": one["train_loss"],
            }
            for one in curve
        ]
    return rows


def training(rows: Sequence[dict[str, Any]], objectives: Sequence[str]) -> Drawn:
    """The training loss of every model that the workflow trained, by epoch.

    The losses of one recipe can be a hundred times those of another: the scale is logarithmic
    where all are positive.
    """
    positive = all(row["loss"] > 0 for row in rows)
    shown = [one for one in objectives if any(row["objective"] == one for row in rows)]
    paints = alt.Scale(
        domain=shown, range=[COLOURS[objectives.index(one) % len(COLOURS)] for one in shown]
    )
    base = alt.Chart(alt.NamedData(name="training")).encode(
        x=alt.X(
            "epoch:Q",
            title="epoch",
            axis=alt.Axis(tickMinStep=1, tickCount=TICKS, format="d"),
            scale=alt.Scale(zero=False, nice=False),
        ),
        y=alt.Y(
            "loss:Q",
            title="training loss",
            scale=alt.Scale(type="log") if positive else alt.Scale(zero=False),
            axis=alt.Axis(tickCount=TICKS, format="~g"),
        ),
        detail="model:N",
        color=alt.Color("objective:N", title="objective", scale=paints, legend=_legend()),
    )
    picked = alt.condition(PICKED, alt.value(4), alt.value(1.3))
    lines = base.mark_line(aria=False).encode(strokeWidth=picked)
    points = base.mark_point(filled=True, size=45).encode(
        tooltip=[
            alt.Tooltip("name:N", title="model"),
            alt.Tooltip("epoch:Q"),
            alt.Tooltip("loss:Q", title="training loss", format=NUMBER),
        ],
    )
    return alt.layer(lines, points).properties(height=260)


# --- the pairs of one model -----------------------------------------------------------------------


def distances() -> Drawn:
    """How far a model's outputs lie apart: semantic pairs against random pairs."""
    kinds = ["semantic pairs", "random pairs"]
    bars = (
        alt.Chart(alt.NamedData(name="distances"))
        .mark_bar(opacity=0.55, binSpacing=0)
        .encode(
            x=alt.X("low:Q", bin="binned", title="distance between the outputs of two images"),
            x2="high:Q",
            y=alt.Y("share:Q", title="share of pairs", stack=None, axis=alt.Axis(format="%")),
            color=alt.Color(
                "kind:N",
                title=None,
                scale=alt.Scale(domain=kinds, range=["#0072B2", "#E69F00"]),
                legend=alt.Legend(orient="top"),
            ),
            tooltip=[
                alt.Tooltip("kind:N", title="pairs"),
                alt.Tooltip("low:Q", title="from", format=NUMBER),
                alt.Tooltip("high:Q", title="to", format=NUMBER),
                alt.Tooltip("share:Q", format=".1%"),
            ],
        )
    )
    return alt.layer(bars).properties(height=190)
