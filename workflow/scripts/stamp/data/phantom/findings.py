"""The eight findings: how they come, go and grow over visits, and how they change the image."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stamp.data.phantom.anatomy import Deform, Frame
from stamp.data.phantom.draws import RandomDraws
from stamp.data.phantom.shapes import Array, blob, bump, distance, edge, stroke, take


@dataclass(frozen=True, slots=True)
class Finding:
    """How one finding behaves over time and in reports; illustrative numbers, fitted to nothing."""

    resolution: float  # chance that it is gone at the next visit
    heart: float = 0.0  # loading on the patient's failing heart
    infection: float = 0.0  # loading on the patient's infection
    missed: float = 0.15  # chance that a noisy report leaves it out
    invented: float = 0.015  # chance that a noisy report claims it


FINDINGS: Mapping[str, Finding] = {
    "Atelectasis": Finding(resolution=0.40, infection=0.6, missed=0.20, invented=0.020),
    "Cardiomegaly": Finding(resolution=0.03, heart=1.4, missed=0.12, invented=0.015),
    "Consolidation": Finding(resolution=0.50, infection=1.3, missed=0.20, invented=0.015),
    "Edema": Finding(resolution=0.55, heart=1.4, missed=0.15, invented=0.015),
    "Effusion": Finding(resolution=0.30, heart=0.9, infection=0.6, missed=0.10, invented=0.015),
    "Nodule": Finding(resolution=0.06, missed=0.22, invented=0.010),
    "Pneumonia": Finding(resolution=0.60, infection=1.3, missed=0.20, invented=0.025),
    "Pneumothorax": Finding(resolution=0.40, missed=0.08, invented=0.005),
}
CLASSES: tuple[str, ...] = tuple(FINDINGS)
SEVERITY_MEMORY = 0.75


@dataclass(frozen=True, slots=True)
class Signs:
    """One row per image, one column per finding (drawn as patients by visits)."""

    present: NDArray[np.bool_]
    severity: Array  # 0 to 1, meaningful where present
    side: Array  # -1 the right lung, 1 the left one
    place: Array  # two numbers in [0, 1) on a third axis: where in the lung


def chain(start: Array, onset: Array, resolution: Array, draws: Array) -> NDArray[np.bool_]:
    """A two-state Markov chain over axis 1 of ``draws``, uniform numbers (patients, visits, ...).

    The first state is present with probability ``start``; absent turns present with ``onset``
    (patients, visits, ...), present turns absent with ``resolution``.
    """
    state = np.empty(draws.shape, dtype=bool)
    state[:, 0] = draws[:, 0] < start
    for visit in range(1, draws.shape[1]):
        stay = 1 - resolution
        chance = np.where(state[:, visit - 1], stay, onset[:, visit])
        state[:, visit] = draws[:, visit] < chance
    return state


def _prevalence(draws: RandomDraws, visits: int, prevalence: Array) -> Array:
    """Each visit's stationary probability (patients, visits, findings).

    The odds are multiplied by exp(b f - b^2 / 2), f the patient's standard normal frailty (part
    lasting, part of the visit), so that findings with a shared cause come together.
    """
    odds = np.broadcast_to(prevalence / (1 - prevalence), (draws.patients, visits, len(CLASSES)))
    for cause in ("heart", "infection"):
        load = np.array([getattr(f, cause) for f in FINDINGS.values()], dtype=np.float32)
        frail = 0.8 * draws.normal(f"{cause} patient", 0, 1, 1)
        frail = frail + 0.6 * draws.normal(f"{cause} visit", 0, 1, visits)
        odds = odds * np.exp(load * frail[:, :, None] - load**2 / 2)
    return odds / (1 + odds)


def _episode(present: NDArray[np.bool_]) -> NDArray[np.intp]:
    """For each visit, the visit at which the current state's run of presence began."""
    begin = np.arange(present.shape[1])[None, :, None] * np.ones(present.shape, dtype=np.intp)
    lasting = present[:, 1:] & present[:, :-1]
    begin[:, 1:][lasting] = 0
    return np.maximum.accumulate(begin, axis=1)


def draw_signs(draws: RandomDraws, visits: int, prevalence: Mapping[str, float]) -> Signs:
    """The true course of every finding, arrays of (patients, visits, findings).

    Onset is chosen as r p / (1 - p), r the resolution rate, which makes p = prevalence stationary.
    An episode keeps its side and place; severity is an AR(1) in a Gaussian, squashed to (0, 1).
    """
    count = len(CLASSES)
    resolution = np.array([f.resolution for f in FINDINGS.values()], dtype=np.float32)
    rate = np.array([prevalence[name] for name in CLASSES], dtype=np.float32)
    p = _prevalence(draws, visits, rate)
    onset = np.minimum(resolution * p / (1 - p), 1)
    present = chain(p[:, 0], onset, resolution, draws.uniform("state", 0, 1, visits, count))

    hidden = draws.normal("severity", 0, 1, visits, count)
    for visit in range(1, visits):
        kept = SEVERITY_MEMORY * hidden[:, visit - 1]
        hidden[:, visit] = kept + np.sqrt(1 - SEVERITY_MEMORY**2) * hidden[:, visit]

    begin = _episode(present)
    side = np.where(draws.uniform("side", 0, 1, visits, count) < 0.55, -1, 1).astype(np.float32)
    place = draws.uniform("place", 0, 1, visits, count, 2)
    return Signs(
        present=present,
        severity=(1 / (1 + np.exp(-1.7 * hidden))).astype(np.float32),
        side=np.take_along_axis(side, begin, axis=1),
        place=np.take_along_axis(place, begin[..., None], axis=1),
    )


def report(draws: RandomDraws, signs: Signs) -> NDArray[np.bool_]:
    """Labels as text mining would give them: some findings left out, some invented."""
    missed = np.array([f.missed for f in FINDINGS.values()])
    invented = np.array([f.invented for f in FINDINGS.values()])
    luck = draws.uniform("report", 0, 1, *signs.present.shape[1:])
    return np.where(signs.present, luck >= missed, luck < invented)


def deform(signs: Signs) -> Deform:
    """A larger heart, a diaphragm drawn up and a chest drawn aside by lost volume."""
    heart = CLASSES.index("Cardiomegaly")
    grown = signs.present[:, heart] * (0.4 + 0.6 * signs.severity[:, heart])
    plate = CLASSES.index("Atelectasis")
    lost = signs.present[:, plate] * (0.4 + 0.6 * signs.severity[:, plate])
    side = signs.side[:, plate]
    return Deform(
        heart_width=(1 + 0.34 * grown).astype(np.float32),
        heart_height=(1 + 0.16 * grown).astype(np.float32),
        rise_right=(0.15 * lost * (side < 0)).astype(np.float32),
        rise_left=(0.15 * lost * (side > 0)).astype(np.float32),
        pull=(0.04 * lost * side).astype(np.float32),
    )


@dataclass(frozen=True, slots=True)
class Sign:
    """One finding in the images that have it, shaped to meet pixels."""

    severity: Array
    side: Array
    first: Array
    second: Array

    def here(self, f: Frame) -> Array:
        """1 in the half of the chest where the finding is."""
        return (f.side == self.side).astype(np.float32)


def _atelectasis(f: Frame, s: Sign) -> Array:
    """A plate-like band across the lower lung."""
    y = f.floor.mean(axis=(1, 2), keepdims=True) - 0.14 - 0.22 * s.first
    tilt = 0.16 * (s.second - 0.35)
    start, end = (0.22, y - tilt), (0.62, y + tilt)
    band = stroke(f.lateral, f.y, start, end, 0.035 + 0.03 * s.severity)
    return f.lung * s.here(f) * band * (0.20 + 0.16 * s.severity)


def _consolidation(f: Frame, s: Sign) -> Array:
    """A lobe filled up to its fissure: one straight border, one that fades, air in the bronchi."""
    fissure = -0.18 + 0.36 * s.first + 0.12 * (f.lateral - 0.4)
    direction = np.where(s.second < 0.4, np.float32(-1), np.float32(1))
    into = (f.y - fissure) * direction
    lobe = edge(into, 1.5 * f.pixel) * edge(0.30 + 0.25 * s.severity - into, 0.25)
    return f.lung * s.here(f) * lobe * (0.17 + 0.16 * s.severity + 0.03 * f.texture)


def _edema(f: Frame, s: Sign) -> Array:
    """Haze around both lung roots, and short lines at the edge of the lungs."""
    haze = bump(f.lateral - 0.26, 0.30) * bump(f.y - 0.04, 0.46)
    lines = np.maximum(np.cos(70 * f.y), 0) * edge(f.across - 0.45, 0.3) * edge(f.y - 0.1, 0.2)
    return f.lung * (0.06 + 0.14 * s.severity) * (0.25 + haze + 0.3 * lines)


def _effusion(f: Frame, s: Sign) -> Array:
    """Fluid at the base whose surface climbs along the lateral wall."""
    outward = np.clip(0.5 * f.across + 0.5, 0, 1)
    height = (0.12 + 0.42 * s.severity) * (0.55 + 0.75 * outward * outward * outward)
    surface = f.floor.min(axis=(1, 2), keepdims=True) + 0.12 - height
    return f.lung * s.here(f) * edge(f.y - surface, 0.06) * (0.34 + 0.05 * s.severity)


def _nodule(f: Frame, s: Sign) -> Array:
    """A small round opacity."""
    lateral, y = 0.26 + 0.34 * s.first, -0.45 + 0.75 * s.second
    away = distance(f.lateral - lateral, f.y - y)
    return (
        f.lung
        * s.here(f)
        * edge(0.055 + 0.05 * s.severity - away, 0.05)
        * (0.23 + 0.14 * s.severity)
    )


def _pneumonia(f: Frame, s: Sign) -> Array:
    """An ill-defined patchy cloud, more often low."""
    at = (0.30 + 0.26 * s.first, 0.30 - 0.60 * s.second * s.second)
    wide = 0.17 + 0.12 * s.severity
    cloud = blob(f.lateral, f.y, at, (wide, wide))
    patchy = np.clip(0.75 + 0.55 * f.texture, 0.15, 1.4)
    return f.lung * s.here(f) * cloud * patchy * (0.20 + 0.14 * s.severity)


def _pneumothorax(f: Frame, s: Sign) -> Array:
    """A dark rim without vessels at apex and side, a thin pleural line, a denser lung inside."""
    line = 0.92 - 0.36 * s.severity
    outer = np.clip(1.4 * f.across + 2.2 * f.above, 0, 1) * edge(0.42 - f.y, 0.3)
    rim = edge(f.radius - line, 4 * f.pixel) * outer
    pleura = bump(f.radius - line, 3.2 * f.pixel) * outer
    return f.lung * s.here(f) * (0.18 * pleura - 0.12 * rim + 0.04 * (1 - rim))


PAINTERS = {
    "Atelectasis": _atelectasis,
    "Consolidation": _consolidation,
    "Edema": _edema,
    "Effusion": _effusion,
    "Nodule": _nodule,
    "Pneumonia": _pneumonia,
    "Pneumothorax": _pneumothorax,
}


def paint(picture: Array, f: Frame, signs: Signs) -> None:
    """Add to ``picture`` what each finding attenuates, in the images that have it."""
    for name, painter in PAINTERS.items():
        k = CLASSES.index(name)
        rows = np.flatnonzero(signs.present[:, k])
        if not len(rows):
            continue
        at = (slice(None), None, None)
        sign = Sign(
            severity=signs.severity[rows, k][at],
            side=signs.side[rows, k][at],
            first=signs.place[rows, k, 0][at],
            second=signs.place[rows, k, 1][at],
        )
        picture[rows] += painter(take(f, rows), sign)
