"""One look for all figures: Okabe-Ito colours by objective, shapes by family, texts in inches.

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
import polars as pl
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

# Okabe & Ito (2008). The mark in the centre is for grey prints: colours that share one differ in
# lightness.
PAINTS = (
    ("#0072B2", ""),
    ("#E69F00", "o"),
    ("#009E73", "_"),
    ("#56B4E9", ""),
    ("#D55E00", "o"),
    ("#CC79A7", "|"),
    ("#000000", ""),
    ("#F0E442", "o"),
)
CENTRES = ("", "o", "_", "|")
SHAPES = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "p", "d")
POINTED = ("^", "v", "<", ">", "*")
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
class Paint:
    """How an objective looks: a colour, and a mark in the centre that survives a grey print."""

    colour: str
    centre: str


@dataclass(frozen=True, slots=True)
class Key:
    """The colours of a study's objectives and the shapes of its families."""

    paints: dict[str, Paint]
    shapes: dict[str, str]


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a legend: a swatch of a paint, a shape, or an open shape; and its words."""

    text: str
    paint: Paint
    shape: str = ""
    filled: bool = True


@contextmanager
def look() -> Iterator[None]:
    """The look of all figures, whatever the user's own settings of matplotlib are."""
    with matplotlib.style.context(["default", RULES]):
        yield


def key_of(objectives: Iterable[str], families: Iterable[str]) -> Key:
    """Colours in a fixed order, supervised first and the others by name; shapes by name."""
    names = sorted(set(objectives), key=lambda name: (_place(name), name))
    paints = {name: _paint(i) for i, name in enumerate(names)}
    shapes = {name: SHAPES[i % len(SHAPES)] for i, name in enumerate(sorted(set(families)))}
    return Key(paints, shapes)


def _place(objective: str) -> int:
    """Where an objective stands among those whose colours every study shares, else after them."""
    return next((i for i, names in enumerate(FIRST) if objective.lower() in names), len(FIRST))


def _paint(i: int) -> Paint:
    """The i-th paint; where the colours begin again, with another mark in the centre."""
    colour, centre = PAINTS[i % len(PAINTS)]
    again = CENTRES.index(centre) + i // len(PAINTS)
    return Paint(colour, CENTRES[again % len(CENTRES)])


def mark(
    axes: Axes,
    at: tuple[float, float],
    paint: Paint,
    shape: str,
    size: float,
    filled: bool = True,
    gid: str | None = None,
) -> None:
    """A model's mark, open where it does not count; ``gid`` names the artist."""
    face = paint.colour if filled else "white"
    edge, width = (INK, 0.4) if filled else (paint.colour, 0.9)
    grown = size * (1.3 if shape == "*" else 0.88 if shape == "D" else 1.0)
    x, y = [at[0]], [at[1]]
    style: dict[str, Any] = {"linestyle": "none", "clip_on": False, "zorder": 4}
    axes.plot(x, y, marker=shape, ms=grown, mfc=face, mec=edge, mew=width, gid=gid, **style)
    if paint.centre:
        inner = _contrast(paint.colour) if filled else paint.colour
        part = 0.3 if paint.centre == "o" else 0.6
        part *= 0.75 if shape in POINTED else 1.0
        style |= {"mfc": inner, "mec": inner, "mew": 0.1 * size}
        axes.plot(x, y, marker=paint.centre, ms=part * size, **style)


def ink_on(colour: Any) -> str:
    """The ink, dark or white, that is read the more easily on a colour (WCAG's contrast)."""

    def luminance(of: Any) -> float:
        shares = [
            part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4
            for part in to_rgb(of)
        ]
        return 0.2126 * shares[0] + 0.7152 * shares[1] + 0.0722 * shares[2] + 0.05

    return INK if luminance(colour) ** 2 > luminance("white") * luminance(INK) else "white"


def _contrast(colour: str) -> str:
    """White on a dark colour, black on a light one."""
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return INK if 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2 > 0.35 else "white"


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
    grey = Paint("#808080", "")
    blocks = {
        "Objective": [Entry(name, paint) for name, paint in key.paints.items()],
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
    if entry.shape:
        mark(axes, (x + 0.1, y), entry.paint, entry.shape, 5.5, entry.filled)
        return
    axes.add_patch(Rectangle((x, y - 0.045), 0.18, 0.09, facecolor=entry.paint.colour, lw=0))
    mark(axes, (x + 0.09, y), entry.paint, "", 6.5)


def save(figure: Figure, png: str | Path, pdf: str | Path) -> None:
    """Write the figure as PNG and PDF, each whole, and with the same bytes for the same figure."""
    with look():
        with atomic_write(png) as part:
            figure.savefig(part, format="png", dpi=DPI, metadata={"Software": None})
        with atomic_write(pdf) as part:
            nothing = {"Creator": None, "Producer": None, "CreationDate": None}
            figure.savefig(part, format="pdf", metadata=nothing)
