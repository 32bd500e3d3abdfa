"""Models that share a backbone, best score first: what each reached on each target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stamp.report.model_groups import STAMP
from stamp.report.outcomes import MEAN
from stamp.report.plot import style
from stamp.report.plot.bands import Bands, Panel, axis_name, quantities, row_names
from stamp.report.plot.empty import in_words
from stamp.report.wording import RHO, short_number

ROW, PANELS = 0.2, 9  # inches: a model; panels at the most
SUBTITLE = "Models with the same backbone: STAMP, and what they reached on the targets"


@style.look()
def draw(table: pl.DataFrame, models: pl.DataFrame, texts: Mapping[str, Any]) -> Figure:
    """The figure of the analysis ``backbones`` from its two tables; words where there is none."""
    rows = table.filter(pl.col("models") == "declared")
    tested = rows.drop_nulls("rho")["backbone"].unique(maintain_order=True).to_list()
    if not tested:
        reason = [*rows["reason"].drop_nulls(), *table["reason"].drop_nulls()][0]
        return in_words(texts, SUBTITLE, f"Nothing to draw: {reason}.")
    key = style.key_of(models["objective"], models["family"])
    blocks = {
        name: _block(
            name,
            rows.filter(pl.col("backbone") == name),
            models.filter(pl.col("stratum") == name),
        )
        for name in tested
    }
    drawn = models.filter(pl.col("stratum").is_in(tested))
    aside = "" if drawn["counted"].all() else "degenerate or excluded"
    shown, note = style.legend_blocks(_used(key, drawn), aside), _note(rows, tested)
    top = style.heading_height(texts["title"], SUBTITLE)
    end = top + sum(bands.total for bands, _ in blocks.values())
    foot = style.legend(shown, style.MARGIN, end, style.INNER)
    figure, page = style.sheet(foot + style.notes_height(note, texts["notice"]))
    style.heading(page, texts["title"], SUBTITLE)
    style.legend(shown, style.MARGIN, end, style.INNER, axes=page)
    style.notes(page, note, texts["notice"])
    for bands, own in blocks.values():
        for start in bands.tops(top):
            row_names(page, bands.names, bands.left - 0.1, start, ROW)
        for name, axes in bands.draw(figure, page, top).items():
            _draw(axes, own, name, key)
        top += bands.total
    return figure


def _used(key: style.Key, models: pl.DataFrame) -> style.Key:
    """The colours and shapes of these models alone; which they are, all models decide."""
    colours = {name: one for name, one in key.colours.items() if name in models["objective"]}
    shapes = {name: one for name, one in key.shapes.items() if name in models["family"]}
    return style.Key(colours, shapes)


def _block(name: str, rows: pl.DataFrame, models: pl.DataFrame) -> tuple[Bands, pl.DataFrame]:
    """Room for the panels of a backbone, and its models with their place, the best score first."""
    known = {row["outcome"]: row for row in rows.iter_rows(named=True)}
    panels = []
    for of in quantities(models, PANELS, MEAN):
        own = models.filter(pl.col("of") == of)
        title = own["title"][0].replace("_", " ")
        panels.append(Panel(of, title, _words(known.get(of)), axis_name(own)))
    order = (
        models.filter(pl.col("of") == STAMP)
        .sort("counted", "stamp", descending=True, nulls_last=True)
        .select("model", "label")
        .with_row_index("place")
    )
    placed = models.join(order.select("model", "place"), on="model", maintain_order="left")
    names = order["label"].to_list()
    return Bands(
        panels, names, 4 if len(panels) in (4, 7, 8) else 3, ROW * len(names), name
    ), placed


def _words(row: Mapping[str, Any] | None) -> str:
    """Rho of the score with an outcome and its p; nothing over the score itself."""
    if row is None:
        return ""
    if row["rho"] is None:
        return row["reason"] or ""
    ties = ", ties" if row["ties"] else ""
    rho = f"{RHO} = {short_number(row['rho'])}"
    return f"{rho}, {row['method']} p = {row['p']:.2g}, n = {row['n']}{ties}"


def _draw(axes: Axes, models: pl.DataFrame, name: str, key: style.Key) -> None:
    """One mark per model in its row, a line through the counted ones, their ranks at the right."""
    rows = models.filter(pl.col("of") == name).drop_nulls("value").sort("place")
    count = models["place"].n_unique()
    low, high = style.limits(rows, "value")
    axes.set(ylim=(count, 0), xlim=(low, high + 0.14 * (high - low)))
    counted = rows.filter("counted").with_columns(rank=pl.col("value").rank(descending=True))
    heights = [place + 0.5 for place in counted["place"]]
    axes.plot(counted["value"], heights, color=style.MUTED, lw=0.8, zorder=2, gid="line")
    style.points(axes, rows.with_columns(y=pl.col("place") + 0.5), "value", "y", key, 5.2)
    right = axes.get_xlim()[1]
    for row in counted.iter_rows(named=True):
        props: dict[str, Any] = {
            "size": style.FINE,
            "ha": "right",
            "va": "center",
            "color": "#404040",
        }
        axes.text(right, row["place"] + 0.5, f"{row['rank']:g}", **props)


def _note(rows: pl.DataFrame, tested: list[str]) -> str:
    others = rows.filter(~pl.col("backbone").is_in(tested)).unique("backbone", maintain_order=True)
    few = ", ".join(f"{one['backbone']} ({one['n']})" for one in others.iter_rows(named=True))
    text = (
        "Models stand by STAMP, the best first; at the right of a panel each one's rank in it. "
        f"{RHO} is Spearman's with STAMP over the counted models; exact: over all orders of them. "
        "Without ties few values are possible: the table says how far they are apart, and the "
        "least p."
    )
    return f"{text} Too few models for a test: {few}." if few else text
