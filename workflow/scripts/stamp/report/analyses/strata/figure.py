"""What each model reached on each stratum of a target, and rho of the score there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from stamp.report.plot import figure_data, style
from stamp.report.plot.empty import in_words
from stamp.report.wording import RHO, short_number, short_p

LEFT, BETWEEN, UNDER, HEIGHT = 0.62, 0.66, 0.42, 2.3  # inches
SHARE = 0.6  # of the width: the models' panel
SUBTITLE = "What each model reached on each stratum of a target, and how well STAMP ordered them"
GREY = "#737373"


@dataclass(frozen=True, slots=True)
class Block:
    """One target: its rows of both tables, and what stands over its two panels."""

    target: str
    strata: pl.DataFrame
    models: pl.DataFrame
    title: list[str]
    gaps: list[str]

    @property
    def head(self) -> float:
        lines = len(self.title) * style.line_height(style.BODY) + len(
            self.gaps
        ) * style.line_height(style.SMALL)
        return lines + style.line_height(style.SMALL) + 0.1


@style.look()
def draw(table: pl.DataFrame, models: pl.DataFrame, texts: Mapping[str, Any]) -> Figure:
    """The figure of the analysis ``strata`` from its two tables; words where there is nothing."""
    rows = table.filter(pl.col("models") == "declared")
    if rows.is_empty():
        return in_words(texts, SUBTITLE, f"Nothing to draw: {table['reason'][0]}.")
    blocks = [
        _block(str(target), part, models.filter(pl.col("target") == target))
        for (target,), part in rows.group_by("target", maintain_order=True)
    ]
    key = style.key_of(models["objective"], models["family"])
    aside = "" if models["counted"].all() else "degenerate or excluded"
    shown, note = style.legend_blocks(key, aside), _note(texts)
    top = style.heading_height(texts["title"], SUBTITLE)
    tops = []
    for one in blocks:
        tops.append(top + one.head)
        top += one.head + HEIGHT + UNDER
    foot = style.legend(shown, style.MARGIN, top, style.INNER)
    figure, page = style.sheet(foot + style.notes_height(note, texts["notice"]))
    style.heading(page, texts["title"], SUBTITLE)
    style.legend(shown, style.MARGIN, top, style.INNER, axes=page)
    style.notes(page, note, texts["notice"])
    for one, start in zip(blocks, tops, strict=True):
        _draw(figure, page, one, start, key)
    return figure


def _block(target: str, rows: pl.DataFrame, models: pl.DataFrame) -> Block:
    """A target's title, and rho with its gaps in words."""
    by_what = {row["what"]: row for row in rows.iter_rows(named=True)}
    absolute, relative = by_what["absolute gap"], by_what["relative gap"]
    words = (
        f"STAMP and the gap, {absolute['label']}: {RHO} = {short_number(absolute['rho'])} "
        f"({short_p(absolute['p'])}); and the relative gap: "
        f"{RHO} = {short_number(relative['rho'])} "
        f"({short_p(relative['p'])}); n = {absolute['n']}"
    )
    strata = rows.filter(pl.col("what") == "stratum").sort("stratum")
    room = style.WIDTH - LEFT - style.MARGIN
    title = style.wrapped(rows["title"][0].replace("_", " "), room, style.BODY, "bold")
    return Block(target, strata, models, title, style.wrapped(words, room, style.SMALL))


def _draw(figure: Figure, page: Axes, block: Block, top: float, key: style.Key) -> None:
    """A target's two panels with their headings."""
    below = style.write(page, LEFT, top - block.head, block.title, style.BODY, weight="bold")
    below = style.write(page, LEFT, below, block.gaps, style.SMALL)
    room = style.WIDTH - LEFT - style.MARGIN - BETWEEN
    metric = block.models["metric"].drop_nulls()
    name = figure_data.METRICS.get(metric[0], metric[0]) if len(metric) else "value"
    heads = (f"{name} by stratum", f"{RHO} of STAMP by stratum")
    lefts = (LEFT, LEFT + SHARE * room + BETWEEN)
    widths = (SHARE * room, (1 - SHARE) * room)
    frames = []
    for left, width, text, kind in zip(lefts, widths, heads, ("models", "rho"), strict=True):
        style.write(
            page, left, below, style.shortened(text, width, style.FINE), style.FINE, color="#404040"
        )
        axes = style.panel(figure, (left, top, width, HEIGHT), f"{kind}:{block.target}")
        _ticks(axes, block.strata, width)
        frames.append(axes)
    _models(frames[0], block, key)
    _rhos(frames[1], block)


def _ticks(axes: Axes, strata: pl.DataFrame, width: float) -> None:
    room = width / (len(strata) + 0.2) - 0.04
    texts = [style.shortened(one, room, style.SMALL) for one in strata["label"]]
    axes.set_xlim(-0.6, len(strata) - 0.4)
    axes.set_xticks(range(len(strata)), labels=texts)
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    axes.grid(True, axis="y")
    axes.set_axisbelow(True)


def _models(axes: Axes, block: Block, key: style.Key) -> None:
    """One line per model through its values, dashed and open where the study excludes it."""
    rows, order = block.models.drop_nulls("value"), block.strata["stratum"].to_list()
    axes.set_ylim(*style.limits(rows, "value"))
    size = 4.6 if rows["model"].n_unique() <= 20 else 3.6
    for (model,), own in rows.group_by("model", maintain_order=True):
        one = own.row(0, named=True)
        places = [order.index(stratum) for stratum in own["stratum"]]
        props: dict[str, Any] = {
            "color": key.colours[one["objective"]],
            "lw": 1.0,
            "alpha": 0.75,
            "zorder": 2,
        }
        if not one["counted"]:
            props["ls"] = (0, (3, 2))
        axes.plot(places, own["value"], gid=f"line:{model}", **props)
    place = pl.col("stratum").replace_strict(order, range(len(order)))
    style.points(axes, rows.with_columns(place=place), "place", "value", key, size)


def _rhos(axes: Axes, block: Block) -> None:
    """Rho and its interval on each stratum, the source metric's rho beside it."""
    rows = block.strata
    low, high = style.limits(rows, "low", "high", "rho", "source_metric_rho")
    axes.set_ylim(max(low, -1.04), min(high, 1.04))
    if axes.get_ylim()[0] < 0 < axes.get_ylim()[1]:
        axes.axhline(0, color=GREY, lw=0.6, zorder=1)
    for x, one in enumerate(rows.iter_rows(named=True)):
        if one["low"] is not None:
            ends, gid = [one["low"], one["high"]], f"interval:{one['stratum']}"
            axes.plot([x - 0.1] * 2, ends, color=style.INK, lw=1.2, gid=gid)
        if one["rho"] is None:
            middle = sum(axes.get_ylim()) / 2
            props: dict[str, Any] = {
                "size": style.FINE,
                "ha": "center",
                "va": "center",
                "rotation": 90,
            }
            axes.text(x, middle, f"{RHO} undefined", style="italic", **props)
            continue
        point: dict[str, Any] = {"marker": "o", "ms": 5.5, "color": style.INK, "ls": "none"}
        axes.plot([x - 0.1], [one["rho"]], gid=f"rho:{one['stratum']}", **point)
        if one["source_metric_rho"] is not None:
            point = {"marker": "d", "ms": 5.5, "mfc": "white", "mec": GREY, "ls": "none"}
            gid = f"source:{one['stratum']}"
            axes.plot([x + 0.16], [one["source_metric_rho"]], mew=1.1, gid=gid, **point)


def _note(texts: Mapping[str, Any]) -> str:
    level = f"{100 * texts['level']:g} %"
    return (
        f"Left: one line per model. Right: Spearman's {RHO} over models of STAMP and the stratum's "
        f"result (black, {level} interval of Bonett and Wright), and of the source metric (open "
        "diamonds) over the same models. The gap is the last stratum's result minus the first's; "
        "the relative gap is that divided by the last's. A target with several kinds of domains "
        "has the mean over them at each level."
    )
