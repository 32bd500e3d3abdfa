"""Soft-edged analytic shapes on coordinate arrays, and records of per-image parameters.

Shapes work in place on their own temporaries: rendering is bound by memory, not by arithmetic.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

# Single precision throughout; the stubs widen float32 times a Python float, NumPy does not.
Array = NDArray[np.floating[Any]]
Number = Array | float
Point = tuple[Number, Number]
Record = TypeVar("Record", bound=Any)


def distance(u: Array, v: Array) -> Array:
    """sqrt(u^2 + v^2), several times faster than ``numpy.hypot``, which guards against overflow."""
    squares = u * u
    squares += v * v
    return np.sqrt(squares, out=squares)


def edge(inside: Array, softness: Number) -> Array:
    """0 outside, 1 inside, a ramp of width ``softness`` where ``inside`` crosses zero."""
    ramp = inside / softness
    ramp += np.float32(0.5)
    return np.clip(ramp, 0, 1, out=ramp)


def _hill(squares: Array) -> Array:
    """max(1 - s / 4, 0)^4, close to exp(-s) but quick and exactly 0 far away; overwrites ``s``."""
    squares *= np.float32(-0.25)
    squares += 1
    np.maximum(squares, 0, out=squares)
    squares *= squares
    squares *= squares
    return squares


def bump(away: Array, width: Number) -> Array:
    """A bell of ``width``, 1 where ``away`` is 0 and gone at twice the width."""
    scaled = away / width
    scaled *= scaled
    return _hill(scaled)


def blob(x: Array, y: Array, at: Point, radius: Point) -> Array:
    """A bell around ``at`` with the two radii given."""
    u, v = (x - at[0]) / radius[0], (y - at[1]) / radius[1]
    u *= u
    v *= v
    u += v
    return _hill(u)


def stroke(x: Array, y: Array, start: Point, end: Point, width: Number) -> Array:
    """A line from ``start`` to ``end`` with a bell-shaped profile across."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = dx * dx + dy * dy
    u, v = x - start[0], y - start[1]
    along = u * (dx / length)
    along += v * (dy / length)
    np.clip(along, 0, 1, out=along)
    u -= along * dx
    v -= along * dy
    return bump(distance(u, v), width)


def take(record: Record, rows: Any) -> Record:
    """The record with the given rows of each of its arrays."""
    return replace(record, **{f.name: getattr(record, f.name)[rows] for f in fields(record)})


def spread(record: Record) -> Record:
    """The record with each array of one number per row shaped (rows, 1, 1), to meet pixels."""
    columns = {f.name: getattr(record, f.name) for f in fields(record)}
    return replace(
        record, **{n: v[:, None, None] if v.ndim == 1 else v for n, v in columns.items()}
    )
