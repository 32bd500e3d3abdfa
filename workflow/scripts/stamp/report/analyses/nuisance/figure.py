"""The nuisance ratio against STAMP and the outcome, one mark per model, and rho by augmentation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from stamp.report.analyses.nuisance.table import DEFAULT
from stamp.report.plot import figure_data, style
from stamp.report.plot.empty import in_words
from stamp.report.plot.panels import Header
from stamp.report.profiles.associations import STAMP
from stamp.report.wording import MINUS, RHO, inside, short_number, short_p

LEFT, BETWEEN, UNDER, HEIGHT = 0.56, 0.66, 0.46, 2.15  # inches
ROWS = 1.45  # inches: the frame of the correlations by augmentation
OUTCOME, SCORE = "#0072B2", "#1a1a1a"
SUBTITLE = "How far augmentation moves the outputs, relative to random pairs, and how models do"


@style.look()
def draw(table: pl.DataFrame, models: pl.DataFrame, texts: Mapping[str, Any]) -> Figure:
    """The figure of the analysis ``nuisance`` from its two tables; words where there is nothing."""
    rows = table.filter(pl.col("models") == "declared")
    points = models.filter(pl.col("augmentation") == DEFAULT).drop_nulls("ratio")
    if points.is_empty() or rows.is_empty():
        reasons = table["reason"].drop_nulls()
        why = reasons[0] if len(reasons) else "no model has a nuisance ratio"
        return in_words(texts, SUBTITLE, f"Nothing to draw: {why}.")
    outcomes = [name for name in rows["outcome"].unique(maintain_order=True) if name != STAMP]
    shown = {STAMP: "stamp", **({outcomes[-1]: "outcome_value"} if outcomes else {})}
    key = style.key_of(models["objective"], models["family"])
    aside = "" if models["counted"].all() else "degenerate or excluded"
    blocks, note = style.legend_blocks(key, aside), _note(texts)
    top = style.heading_height(texts["title"], SUBTITLE)
    heads = {name: _head(rows, name, _width(len(shown))) for name in shown}
    head = max(one.height for one in heads.values())
    second = top + head + HEIGHT + UNDER + style.line_height(style.SMALL) + 0.06
    under = second + ROWS + 0.4
    foot = style.legend(blocks, style.MARGIN, under, style.INNER)
    figure, page = style.sheet(foot + style.notes_height(note, texts["notice"]))
    style.heading(page, texts["title"], SUBTITLE)
    style.legend(blocks, style.MARGIN, under, style.INNER, axes=page)
    style.notes(page, note, texts["notice"])
    for at, (outcome, column) in enumerate(shown.items()):
        left = LEFT + at * (_width(len(shown)) + BETWEEN)
        below = style.write(page, left, top, heads[outcome].title, style.BODY, weight="bold")
        style.write(page, left, below, heads[outcome].rho, style.SMALL)
        place = (left, top + head, _width(len(shown)), HEIGHT)
        axes = style.panel(figure, place, f"points:{outcome}")
        _points(axes, points, column, key)
        name = "STAMP" if outcome == STAMP else figure_data.task_metric(texts)
        props: dict[str, Any] = {
            "size": style.SMALL,
            "rotation": 90,
            "va": "center",
            "ha": "center",
        }
        page.text(left - LEFT + style.MARGIN, top + head + HEIGHT / 2, name, **props)
        axes.set_xlabel("nuisance ratio, all augmentations together", labelpad=2, size=style.SMALL)
    _rhos(figure, page, rows, list(shown), second)
    return figure


def _width(count: int) -> float:
    return (style.WIDTH - LEFT - style.MARGIN - BETWEEN * (count - 1)) / count


def _head(rows: pl.DataFrame, outcome: str, width: float) -> Header:
    """What a frame shows, and rho over the models that count."""
    own = rows.filter((pl.col("outcome") == outcome) & (pl.col("augmentation") == DEFAULT))
    one = own.row(0, named=True)
    words = (
        f"{RHO} = {short_number(one['rho'])}, n = {one['n']}, {short_p(one['p'])}; "
        f"partial {short_number(one['partial'])}, corrected "
        f"{short_number(one['partial_corrected'])}"
    )
    return Header(
        style.wrapped(one["title"], width, style.BODY, "bold"),
        style.wrapped(words, width, style.SMALL),
        [],
    )


def _points(axes: Axes, points: pl.DataFrame, column: str, key: style.Key) -> None:
    rows = points.drop_nulls(column)
    axes.set_xlim(*style.limits(rows, "ratio"))
    axes.set_ylim(*style.limits(rows, column))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axes.grid(True)
    axes.set_axisbelow(True)
    size = 5.2 if len(rows) <= 20 else 4.2
    style.points(axes, rows, "ratio", column, key, size)


def _rhos(figure: Figure, page: Axes, rows: pl.DataFrame, outcomes: list[str], top: float) -> None:
    """One row per augmentation: rho with STAMP and with the outcome, and their intervals."""
    names = rows["augmentation"].unique(maintain_order=True).to_list()
    titles = dict(rows.select("outcome", "title").unique(maintain_order=True).iter_rows())
    left = style.MARGIN + style.widest(names, style.SMALL) + 0.12
    axes = style.panel(figure, (left, top, style.WIDTH - style.MARGIN - left, ROWS), "rho")
    axes.set(xlim=(-1.04, 1.04), ylim=(len(names), 0), yticks=[])
    axes.spines["left"].set_visible(False)
    axes.set_xticks([-1, -0.5, 0, 0.5, 1])
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}".replace("-", MINUS))
    axes.grid(True, axis="x")
    axes.set_axisbelow(True)
    axes.axvline(0, color=style.MUTED, lw=0.8, zorder=1)
    axes.set_xlabel(f"Spearman's {RHO} of the nuisance ratio", labelpad=2)
    x = left
    above = top - style.line_height(style.SMALL) - 0.04
    for place, outcome in enumerate(outcomes):
        colour, shape = ((SCORE, "o"), (OUTCOME, "s"))[place]
        middle = above + style.line_height(style.SMALL) / 2
        page.plot([x + 0.05], [middle], marker=shape, ms=4.6, color=colour, ls="none")
        text = style.shortened(f"with {inside(titles[outcome])}", 2.4, style.SMALL)
        style.write(page, x + 0.15, above, text, style.SMALL)
        x += 0.15 + style.widest([text], style.SMALL) + 0.25
        own = {row["augmentation"]: row for row in rows.to_dicts() if row["outcome"] == outcome}
        for y, name in enumerate(names):
            _rho(axes, own[name], y + 0.35 + 0.3 * place, colour, shape)
    for y, name in enumerate(names):
        middle = top + (y + 0.5) * ROWS / len(names)
        page.text(left - 0.08, middle, name, size=style.SMALL, ha="right", va="center")


def _rho(axes: Axes, row: Mapping[str, Any], y: float, colour: str, shape: str) -> None:
    gid = f"{row['outcome']}:{row['augmentation']}"
    if row["rho"] is None:
        x, side = (-0.03, "right") if shape == "o" else (0.03, "left")  # apart from each other
        props: dict[str, Any] = {
            "size": style.FINE,
            "va": "center",
            "style": "italic",
            "color": colour,
        }
        axes.text(x, y, f"{RHO} undefined", ha=side, **props)
        return
    if row["low"] is not None:
        ends = [row["low"], row["high"]]
        axes.plot(ends, [y, y], color=colour, lw=1.0, zorder=2, gid=f"interval:{gid}")
    point: dict[str, Any] = {"marker": shape, "ms": 4.6, "color": colour, "ls": "none"}
    axes.plot([row["rho"]], [y], zorder=3, gid=f"rho:{gid}", **point)


def _note(texts: Mapping[str, Any]) -> str:
    level = f"{100 * texts['level']:g} %"
    return (
        "Nuisance ratio: mean squared distance of the outputs of an image and of its augmented "
        "self, over that of random pairs; 1 minus the ratio is STAMP with augmented pairs. The "
        "composite applies all five. Partial: given the source metric. Bars: "
        f"{level} interval of Bonett and Wright."
    )
