"""Panels in bands: one panel per quantity, several side by side, row names at the left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from stamp.report.plot import figure_data, style
from stamp.report.wording import short_number

BETWEEN, UNDER = 0.28, 0.42  # inches: between two panels, and under one for its axis
LONGEST = 1.5  # inches: the widest name of a row


@dataclass(frozen=True, slots=True)
class Panel:
    """One quantity: its name, its title, words under it, and the label of its axis."""

    of: str
    title: str
    words: str
    axis: str


@dataclass(frozen=True, slots=True)
class Bands:
    """Where panels stand, in inches: ``columns`` beside each other, each ``height`` high."""

    panels: Sequence[Panel]
    names: Sequence[str]
    columns: int
    height: float
    title: str = ""

    @property
    def left(self) -> float:
        """Where the panels begin: after the names of the rows."""
        return style.MARGIN + min(LONGEST, style.widest(self.names, style.SMALL)) + 0.1

    @property
    def width(self) -> float:
        """The width of a panel."""
        count = min(self.columns, len(self.panels))
        return (style.WIDTH - style.MARGIN - self.left - (count - 1) * BETWEEN - 0.05) / count

    def lines(self, band: Sequence[Panel]) -> list[list[str]]:
        """The words over each panel of a band."""
        return [style.wrapped(one.words, self.width, style.FINE) for one in band]

    @property
    def bands(self) -> list[Sequence[Panel]]:
        """The panels by band."""
        return [
            self.panels[at : at + self.columns] for at in range(0, len(self.panels), self.columns)
        ]

    def head(self, band: Sequence[Panel]) -> float:
        """The height of what stands over the panels of a band."""
        most = max(map(len, self.lines(band)))
        return style.line_height(style.SMALL) + most * style.line_height(style.FINE) + 0.08

    @property
    def total(self) -> float:
        """The height of all bands with the title over them."""
        over = style.line_height(style.BODY) + 0.04 if self.title else 0.0
        return over + sum(self.head(band) + self.height + UNDER for band in self.bands)

    def draw(self, figure: Figure, page: Axes, top: float) -> dict[str, Axes]:
        """Write titles and words from ``top`` on, and make the panels, by their quantity."""
        found = {}
        if self.title:
            props: dict[str, Any] = {"weight": "bold"}
            top = style.write(
                page,
                style.MARGIN,
                top,
                style.shortened(self.title, 6, style.BODY, "bold"),
                style.BODY,
                **props,
            )
            top += 0.04
        for band in self.bands:
            start = top + self.head(band)
            for at, (one, words) in enumerate(zip(band, self.lines(band), strict=True)):
                left = self.left + at * (self.width + BETWEEN)
                title = style.shortened(one.title, self.width, style.SMALL, "bold")
                below = style.write(page, left, top, title, style.SMALL, weight="bold")
                style.write(page, left, below, words, style.FINE, color="#404040")
                place = (left, start, self.width, self.height)
                axes = style.panel(
                    figure, place, f"{self.title}:{one.of}" if self.title else one.of
                )
                room = style.shortened(one.axis, self.width + BETWEEN - 0.1, style.SMALL)
                axes.set_xlabel(room, size=style.SMALL, labelpad=2)
                axes.set_yticks([])
                axes.spines["left"].set_visible(False)
                most = max(2, int(self.width / 0.45))
                axes.xaxis.set_major_locator(MaxNLocator(most, steps=[1, 2, 2.5, 5, 10]))
                axes.grid(True, axis="x")
                axes.set_axisbelow(True)
                found[one.of] = axes
            top = start + self.height + UNDER
        return found

    def tops(self, top: float) -> list[float]:
        """Where the panels of each band begin, in inches, if the first band begins at ``top``."""
        found = []
        top += style.line_height(style.BODY) + 0.04 if self.title else 0.0
        for band in self.bands:
            found.append(top + self.head(band))
            top += self.head(band) + self.height + UNDER
        return found


def axis_name(rows: pl.DataFrame) -> str:
    """What the values of a quantity are: its metric as a reader knows it, or the score."""
    metric = rows["metric"].drop_nulls()
    return figure_data.METRICS.get(metric[0], metric[0]) if len(metric) else "STAMP"


def quantities(models: pl.DataFrame, most: int, last: str) -> list[str]:
    """The quantities that have a value; beyond ``most`` the score and the mean outcome alone."""
    names = models.drop_nulls("value")["of"].unique(maintain_order=True).to_list()
    if len(names) <= most:
        return names
    return [name for name in names if name in (names[0], last)] if last in names else names[:most]


def rho_bars(axes: Axes, rows: pl.DataFrame, order: Sequence[str], first: str) -> None:
    """A bar with its interval and its number for each of ``order``, by the column ``predictor``."""
    axes.set(ylim=(len(order), 0), xlim=(-1.05, 1.5))
    axes.set_xticks([-1, -0.5, 0, 0.5, 1])
    axes.spines["bottom"].set_bounds(-1, 1)  # no rho is beyond: there the numbers stand
    axes.xaxis.label.set_x(1.05 / 2.55)
    axes.axvline(0, color=style.MUTED, lw=0.8, zorder=1)
    known = {row["predictor"]: row for row in rows.iter_rows(named=True)}
    for at, name in enumerate(order):
        row = known.get(name)
        words: dict[str, Any] = {"size": style.FINE, "ha": "right", "va": "center"}
        if row is None or row["rho"] is None:
            axes.text(1.48, at + 0.5, "undefined", style="italic", **words)
            continue
        colour = style.STRONG if name == first else style.PALE
        axes.barh(at + 0.5, row["rho"], 0.62, color=colour, zorder=2, gid=f"bar:{name}")
        if row["low"] is not None:
            ends = [row["low"], row["high"]]
            axes.plot(
                ends, [at + 0.5] * 2, color=style.INK, lw=1.0, zorder=3, gid=f"interval:{name}"
            )
        axes.text(1.48, at + 0.5, short_number(row["rho"]), **words)


def row_names(page: Axes, names: Sequence[str], right: float, top: float, row: float) -> None:
    """The names of a band's rows, each ``row`` inches high, ending at ``right``."""
    for at, name in enumerate(names):
        text = style.shortened(name, right - style.MARGIN, style.SMALL)
        style.write(
            page,
            right,
            top + (at + 0.5) * row - style.line_height(style.SMALL) / 2,
            text,
            style.SMALL,
            ha="right",
        )
