"""Rho of the score and of its parts with each outcome, over one set of models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from stamp.report.analyses.ablation.table import STAMP, TITLES
from stamp.report.plot import style
from stamp.report.plot.bands import Bands, Panel, rho_bars, row_names
from stamp.report.plot.empty import in_words
from stamp.report.plot.panels import columns
from stamp.report.wording import RHO, level_text

ROW = 0.24  # inches: a bar
SUBTITLE = f"{RHO} of STAMP and of its parts alone with what the models reached on the targets"


@style.look()
def draw(table: pl.DataFrame, models: pl.DataFrame, texts: Mapping[str, Any]) -> Figure:
    """The figure of the analysis ``ablation`` from its table; words where there is nothing."""
    declared = table.filter(pl.col("models") == "declared")
    rows = declared.drop_nulls("outcome").rename({"variant": "predictor"})
    if rows.is_empty():
        reason = [*declared["reason"].drop_nulls(), *table["reason"].drop_nulls()][0]
        return in_words(texts, SUBTITLE, f"Nothing to draw: {reason}.")
    outcomes = rows.unique("outcome", maintain_order=True)
    panels = [
        Panel(one["outcome"], one["title"].replace("_", " "), "", RHO)
        for one in outcomes.iter_rows(named=True)
    ]
    names = ["STAMP" if name == STAMP else title for name, title in TITLES.items()]
    bands = Bands(panels, names, columns(len(panels))[0], ROW * len(names))
    note = _note(rows.row(0, named=True), texts)
    top = style.heading_height(texts["title"], SUBTITLE)
    figure, page = style.sheet(top + bands.total + style.notes_height(note, texts["notice"]))
    style.heading(page, texts["title"], SUBTITLE)
    style.notes(page, note, texts["notice"])
    frames = bands.draw(figure, page, top)
    for start in bands.tops(top):
        row_names(page, names, bands.left - 0.1, start, ROW)
    for outcome, axes in frames.items():
        rho_bars(axes, rows.filter(pl.col("outcome") == outcome), list(TITLES), STAMP)
    return figure


def _note(row: Mapping[str, Any], texts: Mapping[str, Any]) -> str:
    return (
        f"Spearman's {RHO} over one set of {row['n']} models (set {row['subset']}), the same for "
        f"every bar; lines are {level_text(texts)} intervals of Bonett and Wright. STAMP is 1 "
        f"minus SV/AV, whose {RHO} is STAMP's with the other sign. SV enters with its sign "
        "changed, so that more should mean better. Differences from STAMP, with paired intervals, "
        "stand in the table."
    )
