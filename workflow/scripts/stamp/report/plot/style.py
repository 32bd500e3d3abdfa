"""One look for all figures: seaborn's theme, colours by objective, shapes by family.

Every figure is as wide as a page's text. Its *sheet* is a frame over the whole canvas whose units
are inches from the upper left corner: titles, labels, legends and notes are measured and placed on
it, so nothing overlaps and nothing is cut off, however many models there are.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib.style
import numpy as np
import polars as pl
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Rectangle
from matplotlib.textpath import text_to_path

from stamp.core.artifacts import atomic_write

WIDTH = 7.0  # inches: the text width of a page
MARGIN = 0.1
DPI = 200
INNER = WIDTH - 2 * MARGIN
Z = 1.96  # standard errors on each side
TITLE, BODY, SMALL, FINE = 10.0, 8.0, 7.0, 6.5  # points
INK, MUTED, FAINT = "#1a1a1a", "#666666", "#d9d9d9"

PALETTE = tuple(sns.color_palette("colorblind").as_hex())  # every kind of colour vision
STRONG, PALE = PALETTE[0], "#b0b0b0"  # the one that others are set beside, and those
DIVERGING, SEQUENTIAL = "PuOr_r", "viridis"  # likewise
SHAPES = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "d", "*")
FIRST = ({"supervised", "ce-supervised"}, {"self-supervised", "ssl"})  # as zoos write them

BREAKS = re.compile(r"(?<![=<])\s+(?![=<%])")  # where a line may end

RULES = {
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.labelsize": BODY,
    "axes.linewidth": 0.6,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.family": ["DejaVu Sans"],
    "font.size": BODY,
    "grid.color": "#ececec",
    "grid.linewidth": 0.6,
    "patch.force_edgecolor": False,
    "pdf.fonttype": 42,
    "text.color": INK,
    "text.hinting": "none",
    "text.parse_math": False,
    "xtick.color": MUTED,
    "xtick.labelcolor": INK,
    "xtick.labelsize": SMALL,
    "xtick.major.size": 2.5,
    "xtick.major.width": 0.6,
    "ytick.color": MUTED,
    "ytick.labelcolor": INK,
    "ytick.labelsize": SMALL,
    "ytick.major.size": 2.5,
    "ytick.major.width": 0.6,
}


@dataclass(frozen=True, slots=True)
class Key:
    """The colours of a study's objectives and the shapes of its families."""

    colours: dict[str, str]
    shapes: dict[str, str]


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a legend: a swatch of a colour, a shape, or an open shape; and its words."""

    text: str
    colour: str
    shape: str = ""
    filled: bool = True


@contextmanager
def look() -> Iterator[None]:
    """The look of all figures, whatever the user's own settings of matplotlib are."""
    with (
        matplotlib.style.context("default"),
        sns.plotting_context("paper"),
        sns.axes_style("ticks"),
        matplotlib.style.context(RULES),
    ):
        yield


def key_of(objectives: Iterable[str], families: Iterable[str]) -> Key:
    """Colours in a fixed order, supervised first and the others by name; shapes by name."""
    names = sorted(set(objectives), key=lambda name: (_place(name), name))
    colours = {name: PALETTE[i % len(PALETTE)] for i, name in enumerate(names)}
    shapes = {name: SHAPES[i % len(SHAPES)] for i, name in enumerate(sorted(set(families)))}
    return Key(colours, shapes)


def _place(objective: str) -> int:
    """Where an objective stands among those whose colours every study shares, else after them."""
    return next((i for i, names in enumerate(FIRST) if objective.lower() in names), len(FIRST))


def columns(rows: pl.DataFrame, *names: str) -> dict[str, np.ndarray]:
    """Some columns as arrays: seaborn does not take polars' frames."""
    return {name: rows[name].to_numpy() for name in names}


def points(axes: Axes, rows: pl.DataFrame, x: str, y: str, key: Key, size: float) -> None:
    """A mark for each row at two of its columns, open where the model does not count."""
    look: dict[str, Any] = {
        "hue": "objective",
        "style": "family",
        "palette": key.colours,
        "markers": key.shapes,
        "legend": False,
        "clip_on": False,
        "zorder": 4,
        "s": size**2,
    }
    counted = pl.col("counted") if "counted" in rows.columns else pl.lit(True)
    for filled, part in ((True, rows.filter(counted)), (False, rows.filter(~counted))):
        if part.is_empty():
            continue
        names = axes.get_xlabel(), axes.get_ylabel()
        sns.scatterplot(
            columns(part, x, y, "objective", "family"), x=x, y=y, ax=axes, edgecolor=INK, **look
        )
        axes.set(xlabel=names[0], ylabel=names[1])
        marks = axes.collections[-1]
        marks.set(gid=f"points:{','.join(part['model'])}", linewidth=0.4)
        if not filled:
            marks.set(edgecolor=marks.get_facecolor(), facecolor="white", linewidth=0.9)


def heat_map(axes: Axes, values: np.ndarray, texts: np.ndarray, **more: Any) -> None:
    """A coloured cell with its words, if there are any, for each number; none where it is NaN."""
    worded = bool((texts != "").any())
    sns.heatmap(
        values,
        mask=np.isnan(values),
        annot=texts if worded else None,
        fmt="",
        cbar=False,
        linewidths=0.6,
        linecolor="white",
        xticklabels=False,
        yticklabels=False,
        ax=axes,
        **more,
    )
    if not worded:
        return
    mesh = axes.collections[-1]
    mesh.update_scalarmappable()
    shades = np.asarray(mesh.get_facecolor())[~np.isnan(values).ravel()]
    for text, shade in zip(axes.texts, shades, strict=True):
        text.set_color(ink_on(shade))


def ink_on(colour: Any) -> str:
    """The ink, dark or white, that is read the more easily on a colour (WCAG's contrast)."""

    def luminance(of: Any) -> float:
        shares = np.array(to_rgb(of))
        linear = np.where(shares <= 0.03928, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722]) + 0.05

    return INK if luminance(colour) ** 2 > luminance("white") * luminance(INK) else "white"


@cache
def width_of(text: str, size: float, weight: str = "normal") -> float:
    """The width of a line of text in inches."""
    font = FontProperties(family=["DejaVu Sans"], size=size, weight=weight)
    return text_to_path.get_text_width_height_descent(text, font, ismath=False)[0] / 72


def widest(texts: Iterable[str], size: float) -> float:
    """The width of the widest of some lines of text in inches; 0 where there are none."""
    return max((width_of(text, size) for text in texts), default=0.0)


def line_height(size: float) -> float:
    """The distance between two lines of text in inches."""
    return 1.3 * size / 72


def row_height(rows: int) -> float:
    """The height in inches of each of some rows: less where they would not fit a page."""
    return min(0.16, 7.0 / max(1, rows))


def wrapped(text: str, width: float, size: float, weight: str = "normal") -> list[str]:
    """The text in lines no wider than ``width`` inches, broken between words.

    ``n = 4``, ``p < 0.001`` and ``95 %`` stay together.
    """
    lines: list[str] = []
    for word in filter(None, BREAKS.split(text)):
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and width_of(longer, size, weight) <= width:
            lines[-1] = longer
        else:
            lines.append(shortened(word, width, size, weight))
    return lines


@cache
def shortened(text: str, width: float, size: float, weight: str = "normal") -> str:
    """The text, its middle left out where it is wider than ``width`` inches."""
    if width_of(text, size, weight) <= width:
        return text

    def keeping(letters: int) -> str:
        return f"{text[: letters - letters // 2]}…{text[len(text) - letters // 2 :]}"

    counts = range(1, len(text))
    return keeping(bisect(counts, width, key=lambda n: width_of(keeping(n), size, weight)))


def sheet(height: float) -> tuple[Figure, Axes]:
    """An empty figure of the page's width and its sheet, in inches from the upper left corner."""
    figure = Figure(figsize=(WIDTH, height), dpi=DPI, facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1), label="sheet", zorder=-1)
    axes.set_xlim(0, WIDTH)
    axes.set_ylim(height, 0)
    axes.set_axis_off()
    return figure, axes


def panel(
    figure: Figure, place: tuple[float, float, float, float], label: str, **more: Any
) -> Axes:
    """A frame for data at a place of the sheet: left, top, width and height in inches."""
    left, top, width, height = place
    full = figure.get_figheight()
    box = (left / WIDTH, 1 - (top + height) / full, width / WIDTH, height / full)
    return figure.add_axes(box, label=label, **more)


def limits(rows: pl.DataFrame, *columns: str) -> tuple[float, float]:
    """The range of some columns, with room for a mark at both ends."""
    found = [value for name in columns for value in rows[name].drop_nulls()]
    if not found:
        return 0.0, 1.0
    room = 0.06 * (max(found) - min(found)) or 0.05
    return min(found) - room, max(found) + room


def write(
    axes: Axes, x: float, top: float, lines: str | Sequence[str], size: float, **more: Any
) -> float:
    """Write lines downwards from ``top`` on the sheet; returns where the next one would start."""
    for line in [lines] if isinstance(lines, str) else lines:
        middle = top + line_height(size) / 2
        axes.text(x, middle, line, size=size, **{"va": "center", **more})
        top += line_height(size)
    return top


def heading_height(title: str, subtitle: str) -> float:
    """The height of a figure's title and of the line under it."""
    titles, subtitles = wrapped(title, INNER, TITLE, "bold"), wrapped(subtitle, INNER, BODY)
    return len(titles) * line_height(TITLE) + len(subtitles) * line_height(BODY) + 2 * MARGIN


def heading(axes: Axes, title: str, subtitle: str) -> None:
    """The study's title, and in a line under it what the figure shows."""
    titles = wrapped(title, INNER, TITLE, "bold")
    below = write(axes, MARGIN, MARGIN, titles, TITLE, weight="bold")
    write(axes, MARGIN, below, wrapped(subtitle, INNER, BODY), BODY)


def notes_height(note: str, notice: str) -> float:
    """The height of the notes at a figure's foot."""
    lines = wrapped(note, INNER, FINE), wrapped(notice, INNER, SMALL, "bold")
    return len(lines[0]) * line_height(FINE) + len(lines[1]) * line_height(SMALL) + 2 * MARGIN


def notes(axes: Axes, note: str, notice: str) -> None:
    """How to read the figure, and at the very foot the study's notice."""
    top = axes.get_ylim()[0] - notes_height(note, notice) + MARGIN
    below = write(axes, MARGIN, top, wrapped(note, INNER, FINE), FINE, color="#404040")
    write(axes, MARGIN, below, wrapped(notice, INNER, SMALL, "bold"), SMALL, weight="bold")


def legend_blocks(key: Key, aside: str = "") -> dict[str, list[Entry]]:
    """The legends: colours, shapes and, where ``aside`` says what it means, the open mark."""
    grey = "#808080"
    blocks = {
        "Objective": [Entry(name, colour) for name, colour in key.colours.items()],
        "Family": [Entry(name, grey, shape) for name, shape in key.shapes.items()],
    }
    if aside:
        shape = next(iter(key.shapes.values()))
        blocks["Open marks"] = [Entry(aside, grey, shape, filled=False)]
    return blocks


SWATCH, GAP = 0.24, 0.16


def legend(
    blocks: dict[str, list[Entry]], left: float, top: float, width: float, axes: Axes | None = None
) -> float:
    """Draw the legends into a column ``width`` inches wide; returns where they end.

    Without ``axes`` nothing is drawn, so that a figure can make room first.
    """
    for title, entries in blocks.items():
        if axes is not None:
            write(axes, left, top, title, SMALL, weight="bold")
        first = left if width < WIDTH / 2 else left + 0.85
        top += line_height(SMALL) if first == left else 0
        x = first
        for entry in entries:
            text = shortened(entry.text, left + width - first - SWATCH, SMALL)
            end = x + SWATCH + width_of(text, SMALL)
            if x > first and end > left + width:
                x, top = first, top + line_height(SMALL)
                end = x + SWATCH + width_of(text, SMALL)
            if axes is not None:
                _entry(axes, entry, x, top + line_height(SMALL) / 2)
                write(axes, x + SWATCH, top, text, SMALL)
            x = end + GAP
        top += line_height(SMALL) + 0.05
    return top


def _entry(axes: Axes, entry: Entry, x: float, y: float) -> None:
    if not entry.shape:
        axes.add_patch(Rectangle((x, y - 0.045), 0.18, 0.09, facecolor=entry.colour, lw=0))
        return
    face, edge = (entry.colour, INK) if entry.filled else ("white", entry.colour)
    axes.plot([x + 0.1], [y], marker=entry.shape, ms=5.5, mfc=face, mec=edge, mew=0.6)


def save(figure: Figure, png: str | Path, pdf: str | Path) -> None:
    """Write the figure as PNG and PDF, each whole, and with the same bytes for the same figure.

    Fonts in the PDF come without the tables that shape text: a PDF places each glyph itself, and
    cutting those tables to size takes about as long as drawing.
    """
    from fontTools.subset import Options

    known = Options._drop_tables_default
    Options._drop_tables_default = sorted({*known, "GDEF", "GPOS", "GSUB"})
    with look():
        with atomic_write(png) as part:
            figure.savefig(part, format="png", dpi=DPI, metadata={"Software": None})
        with atomic_write(pdf) as part:
            nothing = {"Creator": None, "Producer": None, "CreationDate": None}
            figure.savefig(part, format="pdf", metadata=nothing)
