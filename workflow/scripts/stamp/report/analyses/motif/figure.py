"""The regression of an outcome on layers: coefficient, rho alone, and cost of shuffling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from stamp.report.analyses.layers.table import ARROW, KINDS
from stamp.report.plot import style
from stamp.report.plot.empty import in_words
from stamp.report.wording import MINUS, RHO, short_number, short_p

ROW, BETWEEN, UNDER = 0.24, 0.28, 0.26  # inches
COLOURS = {"raw": "#0072B2", "normalised": "#E69F00"}
NAMES = {"raw": "features as they are", "normalised": "features of length one"}
PANELS = {
    "coefficient": "standardised coefficient",
    "rho": f"{RHO} alone",
    "importance": "R\u00b2 lost by shuffling",
}
SUBTITLE = "Ridge regression of the outcome on the models' ranks in each layer's STAMP and gain"


@style.look()
def draw(table: pl.DataFrame, models: pl.DataFrame, texts: Mapping[str, Any]) -> Figure:
    """The figure of the analysis ``motif`` from its table; words where there is nothing."""
    rows = table.filter((pl.col("models") == "declared") & pl.col("coefficient").is_not_null())
    if rows.is_empty():
        reasons = table["reason"].drop_nulls()
        why = reasons[0] if len(reasons) else "no model is counted"
        return in_words(texts, SUBTITLE, f"Nothing to draw: {why}.")
    outcome = rows["outcome"].unique(maintain_order=True)[-1]
    rows = rows.filter(pl.col("outcome") == outcome)
    features = rows["feature"].unique(maintain_order=True).to_list()
    words = style.wrapped(_words(rows), style.INNER, style.BODY)
    start = style.heading_height(texts["title"], SUBTITLE)
    key = start + len(words) * style.line_height(style.BODY) + 0.06
    top = key + 2.4 * style.line_height(style.SMALL)
    height = ROW * len(features)
    note = _note()
    figure, page = style.sheet(top + height + UNDER + style.notes_height(note, texts["notice"]))
    style.heading(page, texts["title"], SUBTITLE)
    style.notes(page, note, texts["notice"])
    style.write(page, style.MARGIN, start, words, style.BODY)
    _key(page, key)
    titles = [feature.replace(ARROW, " \u2192 ") for feature in features]
    left = style.MARGIN + style.widest(titles, style.SMALL) + 0.12
    for y, title in enumerate(titles):
        place = top + (y + 0.5) * ROW
        page.text(left - 0.08, place, title, size=style.SMALL, ha="right", va="center")
    width = (style.WIDTH - style.MARGIN - left - BETWEEN * (len(PANELS) - 1)) / len(PANELS)
    for at, (name, title) in enumerate(PANELS.items()):
        x = left + at * (width + BETWEEN)
        style.write(
            page, x, top - style.line_height(style.SMALL) - 0.02, title, style.SMALL, weight="bold"
        )
        axes = style.panel(figure, (x, top, width, height), name)
        _bars(axes, rows, features, name)
    return figure


def _words(rows: pl.DataFrame) -> str:
    """The outcome, and how much of it the regression explains of models left out."""
    said = []
    for kind in KINDS:
        own = rows.filter(pl.col("kind") == kind)
        if len(own):
            one = own.row(0, named=True)
            said.append(
                f"{NAMES[kind]}: R\u00b2 of models left out {short_number(one['loo_r2'])} "
                f"({short_p(one['loo_p'])}), of those fitted {short_number(one['r2'])}, "
                f"n = {one['n']}"
            )
    return f"{rows['title'][0]}; {'; '.join(said)}."


def _key(page: Axes, top: float) -> None:
    x = style.MARGIN
    for kind in KINDS:
        middle = top + style.line_height(style.SMALL) / 2
        page.plot([x, x + 0.16], [middle] * 2, color=COLOURS[kind], lw=4, solid_capstyle="butt")
        style.write(page, x + 0.22, top, NAMES[kind], style.SMALL)
        x += 0.22 + style.widest([NAMES[kind]], style.SMALL) + 0.25


def _bars(axes: Axes, rows: pl.DataFrame, features: list[str], name: str) -> None:
    """Two bars a feature: of features as they are, and of length one."""
    axes.set(ylim=(len(features), 0), yticks=[])
    axes.spines["left"].set_visible(False)
    known = {(row["kind"], row["feature"]): row for row in rows.to_dicts()}
    values = [row[name] for row in known.values() if row[name] is not None]
    low, high = min([*values, 0.0]), max([*values, 0.0])
    room = 0.06 * (high - low) or 0.05
    axes.set_xlim(low - (room if low < 0 else 0), high + (room if high > 0 else 0))
    axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}".replace("-", MINUS))
    axes.grid(True, axis="x")
    axes.set_axisbelow(True)
    axes.axvline(0, color=style.MUTED, lw=0.8, zorder=1)
    for y, feature in enumerate(features):
        for at, kind in enumerate(KINDS):
            row = known.get((kind, feature))
            if row is None or row[name] is None:
                continue
            place = y + 0.34 + 0.32 * at
            bar = axes.barh(place, row[name], 0.28, color=COLOURS[kind], zorder=2)
            bar.patches[0].set_gid(f"{name}:{kind}:{feature}")
            if name == "rho" and row["p"] is not None and row["p"] < 0.05:
                gid = f"p:{kind}:{feature}"
                axes.plot(
                    [row[name]], [place], marker="d", ms=3.6, color=style.INK, zorder=3, gid=gid
                )


def _note() -> str:
    return (
        "Coefficients are in standard deviations of the outcome for one of a feature's ranks; the "
        "features are differences of each other, so that a coefficient depends on which others are "
        f"there. {RHO} is each feature's alone (diamond: permutation p below 0.05, not corrected "
        "for the number of features). R\u00b2 of models left out is 0 for a regression that knows "
        "no more than the mean of the others; its p is by permutation, the penalty chosen anew "
        "each time."
    )
