"""STAMP by the number of visits between two images: one line per model, and rho below each gap."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from stamp.report.plot import style
from stamp.report.plot.empty import in_words
from stamp.report.profiles.associations import STAMP
from stamp.report.wording import RHO, inside, models_text

HEIGHT, RHOS, BETWEEN = 2.5, 1.3, 0.3  # inches
COLOURS = {STAMP: ("#1a1a1a", "o")}
OUTCOME = ("#0072B2", "s")
SUBTITLE = "STAMP of pairs of visits by the number of visits between them"


@style.look()
def draw(table: pl.DataFrame, models: pl.DataFrame, texts: Mapping[str, Any]) -> Figure:
    """The figure of the analysis ``gaps`` from its two tables; words where there is nothing."""
    points = models.drop_nulls("gap_stamp")
    if points.is_empty():
        reasons = models["reason"].drop_nulls()
        why = reasons[0] if len(reasons) else "no model has a profile of gaps"
        return in_words(texts, SUBTITLE, f"Nothing to draw: {why}.")
    rows = table.filter(pl.col("models") == "declared")
    gaps = points["gap"].unique().sort().to_list()
    counts = table.filter(pl.col("gap").is_in(gaps)).unique("gap").sort("gap")
    names = ["gap, in visits", "pairs", "changed label"]
    left = style.MARGIN + max(style.widest(names, style.SMALL), 0.4) + 0.12
    key = style.key_of(models["objective"], models["family"])
    aside = "" if models["counted"].all() else "degenerate or excluded"
    blocks, note = style.legend_blocks(key, aside), _note(rows, texts)
    top = style.heading_height(texts["title"], SUBTITLE) + style.line_height(style.SMALL)
    second = top + HEIGHT + BETWEEN + style.line_height(style.SMALL)
    below = second + RHOS + 0.08
    under = below + 3 * style.line_height(style.SMALL) + 0.12
    foot = style.legend(blocks, style.MARGIN, under, style.INNER)
    figure, page = style.sheet(foot + style.notes_height(note, texts["notice"]))
    style.heading(page, texts["title"], SUBTITLE)
    style.legend(blocks, style.MARGIN, under, style.INNER, axes=page)
    style.notes(page, note, texts["notice"])
    width = style.WIDTH - style.MARGIN - left
    style.write(
        page, left, top - style.line_height(style.SMALL) - 0.02, "STAMP", style.SMALL, weight="bold"
    )
    axes = style.panel(figure, (left, top, width, HEIGHT), "scores")
    _lines(_framed(axes, gaps), points, gaps, key)
    axes.set_ylim(*style.limits(points, "gap_stamp"))
    axes = _framed(style.panel(figure, (left, second, width, RHOS), "rho"), gaps)
    _rhos(axes, page, rows, gaps, left, second)
    _counts(page, counts, gaps, (left, width, below), names)
    return figure


def _framed(axes: Axes, gaps: list[int]) -> Axes:
    axes.set_xlim(-0.5, len(gaps) - 0.5)
    axes.set_xticks(range(len(gaps)), labels=[""] * len(gaps))
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axes.grid(True, axis="y")
    axes.set_axisbelow(True)
    return axes


def _lines(axes: Axes, points: pl.DataFrame, gaps: list[int], key: style.Key) -> None:
    """One line per model through its scores, dashed and open where the study excludes it."""
    size = 4.6 if points["model"].n_unique() <= 20 else 3.4
    for (model,), own in points.group_by("model", maintain_order=True):
        one = own.row(0, named=True)
        places = [gaps.index(gap) for gap in own["gap"]]
        props: dict[str, Any] = {
            "color": key.colours[one["objective"]],
            "lw": 0.9,
            "alpha": 0.7,
            "zorder": 2,
        }
        if not one["counted"]:
            props["ls"] = (0, (3, 2))
        axes.plot(places, own["gap_stamp"], gid=f"line:{model}", **props)
    place = pl.col("gap").replace_strict(gaps, range(len(gaps)))
    style.points(axes, points.with_columns(place=place), "place", "gap_stamp", key, size)


def _rhos(
    axes: Axes, page: Axes, rows: pl.DataFrame, gaps: list[int], left: float, top: float
) -> None:
    """Rho of each gap's score with the study's own and with the outcome, and their intervals."""
    titles = dict(rows.select("outcome", "title").unique(maintain_order=True).iter_rows())
    outcomes = [name for name in titles if name != STAMP][-1:]
    shown = [*([STAMP] if STAMP in titles else []), *outcomes]
    known = rows.filter(pl.col("outcome").is_in(shown))
    low, high = style.limits(known, "low", "high", "rho")
    axes.set_ylim(max(low, -1.04), min(high, 1.04))
    if axes.get_ylim()[0] < 0 < axes.get_ylim()[1]:
        axes.axhline(0, color=style.MUTED, lw=0.6, zorder=1)
    x, above = left, top - style.line_height(style.SMALL) - 0.02
    for at, outcome in enumerate(shown):
        colour, shape = COLOURS.get(outcome, OUTCOME)
        name = "the study's own STAMP" if outcome == STAMP else inside(titles[outcome])
        text = style.shortened(f"{RHO} with {name}", 2.6, style.SMALL)
        middle = above + style.line_height(style.SMALL) / 2
        page.plot([x + 0.05], [middle], marker=shape, ms=4.4, color=colour, ls="none")
        style.write(page, x + 0.15, above, text, style.SMALL)
        x += 0.15 + style.widest([text], style.SMALL) + 0.25
        for one in known.filter(pl.col("outcome") == outcome).drop_nulls("rho").to_dicts():
            place = gaps.index(one["gap"]) + 0.12 * (2 * at - 1)
            gid = f"{outcome}:{one['gap']}"
            if one["low"] is not None:
                ends = [one["low"], one["high"]]
                axes.plot([place] * 2, ends, color=colour, lw=1.0, gid=f"interval:{gid}")
            point: dict[str, Any] = {"marker": shape, "ms": 4.4, "color": colour, "ls": "none"}
            axes.plot([place], [one["rho"]], gid=f"rho:{gid}", **point)


def _counts(
    page: Axes,
    counts: pl.DataFrame,
    gaps: list[int],
    box: tuple[float, float, float],
    names: list[str],
) -> None:
    """Under each gap its number of pairs, and how many changed label.

    ``box`` is the left edge, the width and the top of the cells.
    """
    left, width, top = box
    cells = {row["gap"]: row for row in counts.to_dicts()}
    for line, name in enumerate(names):
        y = top + (line + 0.5) * style.line_height(style.SMALL)
        page.text(left - 0.1, y, name, size=style.SMALL, ha="right", va="center")
        for at, gap in enumerate(gaps):
            row = cells[gap]
            pairs, changed = row["pairs"], row["changed"]
            share = "" if not pairs else f"{100 * changed / pairs:.0f} %"
            text = (str(gap), "" if pairs is None else f"{pairs:,}", share)[line]
            x = left + (at + 0.5) * width / len(gaps)
            page.text(x, y, text, size=style.FINE, ha="center", va="center")


def _note(rows: pl.DataFrame, texts: Mapping[str, Any]) -> str:
    level = f"{100 * texts['level']:g} %"
    count = models_text(rows.drop_nulls("rho")["n"])
    return (
        "All pairs of pooled images of one group that are so many visits apart, against the "
        "study's random pairs; changed label: the share of pairs whose labels differ. Patients "
        "with many visits make the longer gaps, so that a difference between gaps is not one of "
        f"time alone. {RHO}: Spearman's over {count}, bars its {level} interval (Bonett and "
        "Wright)."
    )
