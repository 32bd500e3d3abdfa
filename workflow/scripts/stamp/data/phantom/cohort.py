"""The hospitals, the patients that come to them, and the images taken of each visit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from stamp.data.phantom import anatomy, devices, findings, scanner
from stamp.data.phantom.draws import RandomDraws, tag
from stamp.data.phantom.findings import CLASSES
from stamp.data.phantom.scanner import Scanner
from stamp.data.phantom.shapes import Array, spread, take

SPLITS = ("train", "calibration", "test")
TOKEN_FINDINGS = ("Effusion", "Pneumothorax")
BATCH = 64
OFTEN = (0.30, 0.18, 0.13, 0.10, 0.09, 0.08, 0.07, 0.05)
ONCE_OR_TWICE = (0.6, 0.4)


def _shares(*numbers: float) -> Mapping[str, float]:
    return MappingProxyType(dict(zip(CLASSES, numbers, strict=True)))


@dataclass(frozen=True, slots=True)
class Hospital:
    """Who comes, what is labeled, and with which equipment the images are taken."""

    scanner: Scanner
    prevalence: Mapping[str, float]
    visits: tuple[float, ...] = ONCE_OR_TWICE  # chance of 1, 2, ... visits
    labeled: tuple[str, ...] = CLASSES
    noisy: bool = False  # labels mined from reports
    token: tuple[float, float] = (0.3, 0.3)  # chance with and without a finding it goes with
    portable: float = 0.25
    tissue: float = 0.0  # shift of the mean body thickness


HOSPITALS: Mapping[str, Hospital] = MappingProxyType(
    {
        "home": Hospital(
            Scanner(window=(0.02, 1.10), contrast=0.35, noise=0.022, token_corner="top right"),
            _shares(0.13, 0.12, 0.10, 0.10, 0.16, 0.12, 0.10, 0.10),
            visits=OFTEN,
            noisy=True,
            token=(0.8, 0.1),
        ),
        "north": Hospital(
            Scanner(
                window=(0.05, 1.25),
                gamma=0.75,
                blur=0.011,
                noise=0.035,
                border=(0.01, 0.07),
                letter="L",
                letter_corner="top right",
                token_corner="low left",
            ),
            _shares(0.20, 0.18, 0.12, 0.16, 0.24, 0.09, 0.14, 0.12),
            portable=0.6,
            token=(0.35, 0.35),
        ),
        "south": Hospital(
            Scanner(
                window=(0.0, 1.0),
                gamma=1.2,
                contrast=0.3,
                sharpen=1.2,
                noise=0.018,
                letter_corner="low left",
                token_corner="top left",
            ),
            _shares(0.10, 0.11, 0.11, 0.10, 0.11, 0.20, 0.11, 0.09),
            portable=0.1,
            token=(0.2, 0.2),
        ),
        "coast": Hospital(
            Scanner(
                window=(0.08, 1.15),
                gamma=0.9,
                contrast=0.8,
                resolution=0.55,
                noise=0.045,
                border=(0.03, 0.10),
                border_gray=235,
                letter="L",
                letter_corner="top right",
                token_corner="low right",
            ),
            _shares(0.12, 0.22, 0.16, 0.12, 0.14, 0.10, 0.20, 0.09),
            token=(0.5, 0.5),
            tissue=0.06,
        ),
        "clinic": Hospital(
            Scanner(
                window=(-0.05, 1.30),
                contrast=0.2,
                blur=0.008,
                sharpen=0.7,
                sharpen_radius=0.06,
                noise=0.030,
                letter_corner="top left",
                token_corner="top right",
            ),
            _shares(0.09, 0.14, 0.14, 0.09, 0.12, 0.10, 0.26, 0.08),
            labeled=("Pneumonia",),
            portable=0.4,
            tissue=-0.03,
        ),
    }
)


@dataclass(frozen=True, slots=True)
class Cohort:
    """The simulated images of one split of one hospital, before any pixel; one row per image."""

    hospital: str
    patient: NDArray[np.intp]
    visit: NDArray[np.intp]
    people: anatomy.Anatomy  # one row per patient
    pose: anatomy.Pose
    signs: findings.Signs  # the truth
    reported: NDArray[np.bool_]  # the labels, noisy or not
    devices: devices.Devices
    exposure: scanner.Exposure
    key: tuple[int, ...]  # of its random streams


def simulate(hospital: str, split: str, patients: int, seed: int) -> Cohort:
    """Draw the patients, visits, findings, reports and exposures of one split of one hospital."""
    place = HOSPITALS[hospital]
    key = (seed, tag(hospital), 1 + SPLITS.index(split))
    draws = RandomDraws(key, patients)
    most = len(place.visits)
    count = 1 + draws.choice("visits", place.visits)
    signs = findings.draw_signs(draws, most, place.prevalence)
    reported = findings.report(draws, signs) if place.noisy else signs.present

    linked = [CLASSES.index(name) for name in TOKEN_FINDINGS]
    chance = np.where(signs.present[:, :, linked].any(axis=2), *place.token)
    token = draws.uniform("has token", 0, 1, most) < chance

    patient, visit = np.nonzero(np.arange(most)[None, :] < count[:, None])
    at = (patient, visit)
    return Cohort(
        hospital=hospital,
        patient=patient,
        visit=visit,
        people=anatomy.draw_anatomy(draws, place.tissue),
        pose=take(anatomy.draw_pose(draws, most, place.portable), at),
        signs=take(signs, at),
        reported=reported[at],
        devices=take(devices.draw_devices(draws, most), at),
        exposure=take(scanner.draw_exposure(draws, most, token), at),
        key=key,
    )


def attenuation(cohort: Cohort, rows: NDArray[np.intp], size: int) -> Array:
    """The attenuation maps of some images of a cohort, before any scanner."""
    signs = take(cohort.signs, rows)
    body = spread(take(cohort.people, cohort.patient[rows]))
    pose, shift = spread(take(cohort.pose, rows)), spread(findings.deform(signs))
    frame = anatomy.frame(body, pose, shift, size)
    picture = anatomy.attenuation(frame, body, pose)
    findings.paint(picture, frame, signs)
    devices.paint(picture, frame, take(cohort.devices, rows))
    return picture


def render(cohort: Cohort, rows: NDArray[np.intp], size: int) -> NDArray[np.uint8]:
    """The images (rows, size, size) of some images of a cohort."""
    noise = np.empty((len(rows), size, size), dtype=np.float32)
    for grain, row in zip(noise, rows, strict=True):
        stream = [*cohort.key, 1 + int(cohort.patient[row]), 1 + int(cohort.visit[row])]
        np.random.default_rng(stream).standard_normal(out=grain, dtype=np.float32)
    picture = attenuation(cohort, rows, size)
    place = HOSPITALS[cohort.hospital]
    return scanner.expose(picture, noise, take(cohort.exposure, rows), place.scanner)


def batches(cohort: Cohort) -> Iterator[NDArray[np.intp]]:
    """The rows of a cohort in batches small enough for a processor's cache."""
    # Freeing one large block makes the C library keep later ones: rendering takes half the time.
    np.empty(2**24, dtype=np.uint8)
    rows = np.arange(len(cohort.patient))
    for start in range(0, len(rows), BATCH):
        yield rows[start : start + BATCH]
