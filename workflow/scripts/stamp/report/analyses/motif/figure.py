"""The regression of an outcome on layers: coefficient, rho alone, and cost of shuffling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from stamp.report.analyses.layers.table import ARROW, KINDS
from stamp.report.plot.data import MINUS, RHO, number, p_value
from stamp.report.plot.style import (
    BODY,
    INK,
    INNER,
    MARGIN,
    MUTED,
    SMALL,
    WIDTH,
    heading,
    heading_height,
    line_height,
    look,
    notes,
    notes_height,
    panel,
    sheet,
    widest,
    wrapped,
    write,
)
from stamp.report.plot.words import in_words

ROW, BETWEEN, UNDER = 0.24, 0.28, 0.26  # inches
COLOURS = {"raw": "#0072B2", "normalised": "#E69F00"}
NAMES = {"raw": "features as they are", "normalised": "features of length one"}
PANELS = {
    "coefficient": "standardised coefficient",
    "rho": f"{RHO} alone",
    "importance": "R\u00b2 lost by shuffling",
}
SUBTITLE = "Ridge regression of the outcome on the models' ranks in each layer's STAMP and gain"


@look()
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
    words = wrapped(_words(rows), INNER, BODY)
    start = heading_height(texts["title"], SUBTITLE)
    key = start + len(words) * line_height(BODY) + 0.06
    top = key + 2.4 * line_height(SMALL)
    height = ROW * len(features)
    note = _note()
    figure, page = sheet(top + height + UNDER + notes_height(note, texts["notice"]))
    heading(page, texts["title"], SUBTITLE)
    notes(page, note, texts["notice"])
    write(page, MARGIN, start, words, BODY)
    _key(page, key)
    titles = [feature.replace(ARROW, " \u2192 ") for feature in features]
    left = MARGIN + widest(titles, SMALL) + 0.12
    for y, title in enumerate(titles):
        place = top + (y + 0.5) * ROW
        page.text(left - 0.08, place, title, size=SMALL, ha="right", va="center")
    width = (WIDTH - MARGIN - left - BETWEEN * (len(PANELS) - 1)) / len(PANELS)
    for at, (name, title) in enumerate(PANELS.items()):
        x = left + at * (width + BETWEEN)
        write(page, x, top - line_height(SMALL) - 0.02, title, SMALL, weight="bold")
        axes = panel(figure, (x, top, width, height), name)
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
                f"{NAMES[kind]}: R\u00b2 of models left out {number(one['loo_r2'])} "
                f"({p_value(one['loo_p'])}), of those fitted {number(one['r2'])}, n = {one['n']}"
            )
    return f"{rows['title'][0]}; {'; '.join(said)}."


def _key(page: Axes, top: float) -> None:
    x = MARGIN
    for kind in KINDS:
        middle = top + line_height(SMALL) / 2
        page.plot([x, x + 0.16], [middle] * 2, color=COLOURS[kind], lw=4, solid_capstyle="butt")
        write(page, x + 0.22, top, NAMES[kind], SMALL)
        x += 0.22 + widest([NAMES[kind]], SMALL) + 0.25


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
    axes.axvline(0, color=MUTED, lw=0.8, zorder=1)
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
                axes.plot([row[name]], [place], marker="d", ms=3.6, color=INK, zorder=3, gid=gid)


def _note() -> str:
    return (
        "Coefficients are in standard deviations of the outcome for one of a feature's ranks; the "
        "features are differences of each other, so that a coefficient depends on which others are "
        f"there. {RHO} is each feature's alone (diamond: permutation p below 0.05, not corrected "
        "for the number of features). R\u00b2 of models left out is 0 for a regression that knows "
        "no more than the mean of the others; its p is by permutation, the penalty chosen anew "
        "each time."
    )
