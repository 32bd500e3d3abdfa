"""Small, faithful copies of the official layouts of chest X-ray data sets, made for tests.

Names, columns and quirks are the published ones; pictures are generated chest phantoms and labels
are theirs. Nothing here shows or describes a person.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from stamp.data.phantom.cohort import batches, render, simulate
from stamp.data.phantom.findings import CLASSES

OBSERVATIONS = (
    "No Finding",
    "Enlarged Cardiomediastinum",
    "Cardiomegaly",
    "Lung Opacity",
    "Lung Lesion",
    "Edema",
    "Consolidation",
    "Pneumonia",
    "Atelectasis",
    "Pneumothorax",
    "Pleural Effusion",
    "Pleural Other",
    "Fracture",
    "Support Devices",
)
_DRAWN = {"Lung Lesion": "Nodule", "Pleural Effusion": "Effusion"}


@dataclass(frozen=True, slots=True)
class Films:
    """Pictures of patients at their visits, by patient, then by time; one row per picture."""

    patient: NDArray[np.intp]
    visit: NDArray[np.intp]
    portable: NDArray[np.bool_]
    findings: NDArray[np.bool_]  # the eight of the phantom
    pictures: NDArray[np.uint8]


def films(hospital: str, patients: int, seed: int, size: int) -> Films:
    """Rendered pictures of a hospital's patients, several visits a patient."""
    cohort = simulate(hospital, "train", patients, seed)
    pictures = [render(cohort, rows, size) for rows in batches(cohort)]
    return Films(
        patient=cohort.patient,
        visit=cohort.visit,
        portable=cohort.pose.portable > 0,
        findings=cohort.reported,
        pictures=np.concatenate(pictures),
    )


def observations(findings: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.bool_]:
    """The truth of CheXpert's 14 observations [n, 14]; what the phantom can't draw is random."""
    truth = rng.random((len(findings), len(OBSERVATIONS))) < 0.06
    for column, name in enumerate(OBSERVATIONS):
        if _DRAWN.get(name, name) in CLASSES:
            truth[:, column] = findings[:, CLASSES.index(_DRAWN.get(name, name))]
    truth[:, 0] = ~truth[:, 1:-1].any(axis=1)
    return truth


def mined(truth: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.str_]:
    """What a labeler of reports writes: ``1.0``, ``0.0``, ``-1.0`` or nothing."""
    luck = rng.random(truth.shape)
    absent = np.select([luck < 0.6, luck < 0.95], ["", "0.0"], "-1.0")
    written = np.where(truth, np.where(luck < 0.92, "1.0", "-1.0"), absent)
    # "No Finding" is 1 or blank, and 1 only where nothing is positive or uncertain
    healthy = np.isin(written[:, 1:-1], ("", "0.0")).all(axis=1)
    written[:, 0] = np.where(healthy, "1.0", "")
    return written


def save(pictures: NDArray[np.uint8], paths: Sequence[Path]) -> None:
    """Write each picture as its file's ending says."""
    for folder in {path.parent for path in paths}:
        os.makedirs(folder, exist_ok=True)
    for picture, path in zip(pictures, paths, strict=True):
        Image.fromarray(picture).save(path, compress_level=1, quality=95)


def lines(header: str, rows: Sequence[Sequence[object]]) -> str:
    """A CSV text; no field holds a comma."""
    return "\n".join([header, *(",".join(map(str, row)) for row in rows), ""])
