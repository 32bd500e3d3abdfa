"""Devices in and on the chest, which come and go between visits: nuisance, never a label."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stamp.data.phantom.anatomy import Frame
from stamp.data.phantom.draws import RandomDraws
from stamp.data.phantom.findings import chain
from stamp.data.phantom.shapes import Array, distance, edge, stroke, take

NAMES = ("pacemaker", "line", "electrodes", "tube")
START = np.array([0.05, 0.12, 0.15, 0.04])
ONSET = np.array([0.01, 0.08, 0.12, 0.03])
RESOLUTION = np.array([0.0, 0.45, 0.60, 0.80])


@dataclass(frozen=True, slots=True)
class Devices:
    """One row per image, one column per device (drawn as patients by visits)."""

    present: NDArray[np.bool_]
    place: Array  # one number in [0, 1) a device, the patient's own


def draw_devices(draws: RandomDraws, visits: int) -> Devices:
    """Two-state chains: a pacemaker stays, a line or a tube comes and goes."""
    shape = (visits, len(NAMES))
    onset = np.broadcast_to(ONSET, (draws.patients, *shape))
    luck = draws.uniform("devices", 0, 1, *shape)
    present = chain(START, onset, RESOLUTION, luck)
    place = draws.uniform("device place", 0, 1, 1, len(NAMES))
    return Devices(present=present, place=np.repeat(place, visits, axis=1))


def _pacemaker(f: Frame, place: Array) -> Array:
    x, y = 0.46 + 0.08 * place, -0.46 + 0.06 * place
    box = edge(0.095 - np.abs(f.x - x), 0.03) * edge(0.075 - np.abs(f.y - y), 0.03)
    vein = stroke(f.x, f.y, (x, y), (0.02, -0.40), 0.018)
    lead = stroke(f.x, f.y, (0.02, -0.40), (0.14, 0.34), 0.018)
    return 0.65 * box + 0.22 * np.maximum(vein, lead)


def _line(f: Frame, place: Array) -> Array:
    top = (-0.20 + 0.08 * place, -0.95)
    bend, tip = (-0.11, -0.50), (-0.09, -0.05 + 0.15 * place)
    upper, lower = stroke(f.x, f.y, top, bend, 0.017), stroke(f.x, f.y, bend, tip, 0.017)
    return 0.20 * np.maximum(upper, lower)


def _electrodes(f: Frame, place: Array) -> Array:
    picture = np.zeros_like(f.x)
    for x, y in ((-0.55, -0.40), (0.58, -0.35), (0.50, 0.45)):
        at = (x + 0.16 * (place - 0.5), y + 0.2 * (place - 0.5))
        spot = edge(0.045 - distance(f.x - at[0], f.y - at[1]), 0.04)
        wire = stroke(f.x, f.y, at, (0.9 * at[0], 1.2), 0.014)
        picture += 0.32 * spot + 0.09 * wire
    return picture


def _tube(f: Frame, place: Array) -> Array:
    end = (0.0, -0.32 + 0.1 * place)
    return 0.22 * stroke(f.x, f.y, (0.0, -1.1), end, 0.022)


PAINTERS = (_pacemaker, _line, _electrodes, _tube)


def paint(picture: Array, f: Frame, devices: Devices) -> None:
    """Add to ``picture`` what each device attenuates, in the images that have it."""
    for k, painter in enumerate(PAINTERS):
        rows = np.flatnonzero(devices.present[:, k])
        if len(rows):
            picture[rows] += painter(take(f, rows), devices.place[rows, k][:, None, None])
