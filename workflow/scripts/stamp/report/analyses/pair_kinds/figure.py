"""The scores of two kinds of pairs against each other, and rho of each kind with each outcome."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from stamp.report.analyses.pair_kinds.table import BETWEEN, DIFFERENCE, KINDS, OUTCOME
from stamp.report.plot import style
from stamp.report.plot.bands import Bands, Panel, rho_bars, row_names
from stamp.report.plot.empty import in_words
from stamp.report.plot.panels import columns
from stamp.report.wording import RHO, level_text, short_number

LEFT, APART, UNDER = 0.55, 0.6, 0.42  # inches: before, between and under the scatter plots
LARGEST = 2.2  # inches: the side of a scatter plot at the most
ROW = 0.22  # inches: a bar
SUBTITLE = "STAMP by kind of pairs: temporal (T), labeled (L), changed (C), synthetic (S)"
WORDS = {letter: f"{letter}: {kind} pairs" for kind, letter in KINDS.items()}


@style.look()
def draw(table: pl.DataFrame, models: pl.DataFrame, texts: Mapping[str, Any]) -> Figure:
    """The figure of the analysis ``kinds`` from its two tables; words where there is nothing."""
    rows = table.filter(pl.col("models") == "declared")
    gaps = rows.filter(pl.col("what") == DIFFERENCE)
    if gaps.is_empty():
        reason = [*rows["reason"].drop_nulls(), *table["reason"].drop_nulls()][0]
        return in_words(texts, SUBTITLE, f"Nothing to draw: {reason}.")
    first = gaps["kind"][0]
    pairs = gaps.filter(pl.col("kind") == first).rows(named=True)
    found = rows.filter((pl.col("what") == OUTCOME) & pl.col("outcome").is_not_null())
    bands = _bands(found.rename({"kind": "predictor"}))
    key = style.key_of(models["objective"], models["family"])
    aside = "" if models["counted"].all() else "degenerate or excluded"
    shown, note = style.legend_blocks(key, aside), _note(gaps.row(0, named=True), texts)
    side = min(LARGEST, (style.WIDTH - style.MARGIN - LEFT - (len(pairs) - 1) * APART) / len(pairs))
    words = [style.wrapped(_words(rows, pair), side, style.FINE) for pair in pairs]
    head = (
        style.line_height(style.SMALL) + max(map(len, words)) * style.line_height(style.FINE) + 0.08
    )
    start = style.heading_height(texts["title"], SUBTITLE)
    below = start + head + side + UNDER
    end = below + (bands.total if bands else 0)
    foot = style.legend(shown, style.MARGIN, end, style.INNER)
    figure, page = style.sheet(foot + style.notes_height(note, texts["notice"]))
    style.heading(page, texts["title"], SUBTITLE)
    style.legend(shown, style.MARGIN, end, style.INNER, axes=page)
    style.notes(page, note, texts["notice"])
    for at, (pair, lines) in enumerate(zip(pairs, words, strict=True)):
        left = LEFT + at * (side + APART)
        title = f"{pair['other']} against {pair['kind']}"
        under = style.write(page, left, start, title, style.SMALL, weight="bold")
        style.write(page, left, under, lines, style.FINE, color="#404040")
        axes = style.panel(
            figure, (left, start + head, side, side), f"{pair['kind']}{pair['other']}"
        )
        _scatter(axes, models, pair["kind"], pair["other"], key)
    if bands:
        _bars(figure, page, bands, found.rename({"kind": "predictor"}), below)
    return figure


def _bands(rows: pl.DataFrame) -> Bands | None:
    """Room for the bars: one panel per outcome, one row per kind; none without an outcome."""
    if rows.is_empty():
        return None
    panels = [
        Panel(one["outcome"], one["title"].replace("_", " "), "", RHO)
        for one in rows.unique("outcome", maintain_order=True).iter_rows(named=True)
    ]
    names = rows["predictor"].unique(maintain_order=True).to_list()
    return Bands(panels, [WORDS[name] for name in names], columns(len(panels))[0], ROW * len(names))


def _bars(figure: Figure, page: Axes, bands: Bands, rows: pl.DataFrame, top: float) -> None:
    names = rows["predictor"].unique(maintain_order=True).to_list()
    for start in bands.tops(top):
        row_names(page, bands.names, bands.left - 0.1, start, ROW)
    for outcome, axes in bands.draw(figure, page, top).items():
        rho_bars(axes, rows.filter(pl.col("outcome") == outcome), names, names[0])


def _words(rows: pl.DataFrame, pair: Mapping[str, Any]) -> str:
    """The difference of two kinds, and rho between them, in words."""
    same = (pl.col("kind") == pair["kind"]) & (pl.col("other") == pair["other"])
    between = rows.filter(same & (pl.col("what") == BETWEEN)).row(0, named=True)
    return (
        f"{pair['kind']} \u2212 {pair['other']}: mean {short_number(pair['mean'])}, above 0 in "
        f"{pair['positive']} of {pair['n']}; {RHO} = {short_number(between['rho'])}"
    )


def _scatter(axes: Axes, models: pl.DataFrame, x: str, y: str, key: style.Key) -> None:
    """Every model's scores by two kinds of pairs, and the line where they are the same."""
    rows = models.drop_nulls([x, y])
    low, high = style.limits(rows, x, y)
    axes.set(xlim=(low, high), ylim=(low, high))
    axes.plot([low, high], [low, high], color=style.MUTED, lw=0.8, ls=(0, (3, 2)), zorder=1)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axes.grid(True)
    axes.set_axisbelow(True)
    axes.set_xlabel(f"STAMP, {x}", size=style.SMALL, labelpad=2)
    axes.set_ylabel(f"STAMP, {y}", size=style.SMALL, labelpad=2)
    style.points(axes, rows, x, y, key, 4.6)


def _note(row: Mapping[str, Any], texts: Mapping[str, Any]) -> str:
    return (
        f"Dashed: equal scores. Numbers and bars are over one set of {row['n']} models (set "
        f"{row['subset']}); bars are Spearman's {RHO} with the outcome, lines {level_text(texts)} "
        "intervals of Bonett and Wright. T: consecutive images of a group; L: those with identical "
        "labels; C: the others; S: an image and its augmented self."
    )
