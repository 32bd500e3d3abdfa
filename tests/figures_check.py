"""What tests ask of figures: their texts, their frames, the artists of a kind."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from stamp.report.plot import style


def artists(axes: Axes, kind: str) -> dict[str, Line2D]:
    """Every line of a kind, by the rest of its name."""
    return {
        line.get_gid().removeprefix(f"{kind}:"): line
        for line in axes.lines
        if (line.get_gid() or "").startswith(f"{kind}:")
    }


@dataclass(frozen=True)
class Point:
    """A model's mark: where it stands, and whether it is open."""

    x: float
    y: float
    opened: bool


def points_of(axes: Axes) -> dict[str, Point]:
    """Every model's mark in a frame."""
    found = {}
    for marks in axes.collections:
        kind, _, names = (marks.get_gid() or "").partition(":")
        if kind == "points":
            opened = bool((marks.get_facecolor()[:, :3] == 1).all())
            models = names.split(",")
            for model, (x, y) in zip(models, marks.get_offsets().tolist(), strict=True):
                found[model] = Point(x, y, opened)
    return found


def axes_of(figure: Figure, label: str) -> Axes:
    """The frame with this label."""
    return next(axes for axes in figure.axes if axes.get_label() == label)


def texts_of(figure: Figure) -> list[str]:
    """All words of a figure."""
    return [text.get_text() for axes in figure.axes for text in axes.texts if text.get_text()]


def shown(axes: Axes) -> list[Text]:
    """The texts of a frame that can be seen, with the labels of the ticks inside its limits."""
    found = [*axes.texts]
    if axes.axison:
        found += [axes.xaxis.label, axes.yaxis.label]
        for axis, at, limits in (
            (axes.xaxis, 0, axes.get_xlim()),
            (axes.yaxis, 1, axes.get_ylim()),
        ):
            labels = axis.get_ticklabels()
            found += [one for one in labels if min(limits) <= one.get_position()[at] <= max(limits)]
    return [text for text in found if text.get_text()]


def check_texts(figure: Figure) -> None:
    """No text overlaps another, none is cut off."""
    with style.look():
        renderer = figure.canvas.get_renderer()
        figure.draw_without_rendering()
        found = [text for axes in figure.axes for text in shown(axes)]
        boxes = np.array([text.get_window_extent(renderer).extents for text in found])
    canvas = np.array(figure.canvas.get_width_height())
    outside = (boxes[:, :2] < 0).any(axis=1) | (boxes[:, 2:] > canvas).any(axis=1)
    assert [found[i].get_text() for i in np.flatnonzero(outside)] == []
    apart = (boxes[:, None, 2:] <= boxes[None, :, :2] + 1).any(axis=2)
    clash = np.triu(~(apart | apart.T), 1)
    assert [(found[i].get_text(), found[j].get_text()) for i, j in np.argwhere(clash)] == []
