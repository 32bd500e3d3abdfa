"""The chest-phantom cohort as a data set: generated images and their index.

Every image is drawn from formulas and random numbers (see ``stamp.data.phantom``). The cohort
exists to demonstrate and test the workflow; no result on it says anything about medicine.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl
from PIL import Image, PngImagePlugin

from stamp.core.errors import UserError, suggest
from stamp.data.phantom import NOTICE
from stamp.data.phantom.cohort import HOSPITALS, SPLITS, Cohort, batches, render, simulate
from stamp.data.phantom.findings import CLASSES

__all__ = ["CLASSES", "NOTICE", "OPTIONS", "build"]

# Patients of each split of the source and of each external hospital, and the side in pixels.
OPTIONS: Mapping[str, int] = MappingProxyType(
    {
        "home_train": 850,
        "home_calibration": 155,
        "home_test": 1250,
        "north": 500,
        "south": 500,
        "coast": 500,
        "clinic": 500,
        "size": 64,
    }
)
SMALLEST, LARGEST, MOST_PATIENTS = 32, 1024, 99_999


def build(options: Mapping[str, Any], folder: Path, seed: int) -> pl.DataFrame:
    """The index of the cohort, its images written to ``folder / "images"``.

    ``options`` overrides ``OPTIONS``. Labels are null where a hospital does not label a finding.
    """
    chosen = _checked(options)
    tables = []
    for name, hospital, split in _parts():
        cohort = simulate(hospital, split, chosen[name], seed)
        table = _index(cohort, split, folder)
        _write(cohort, table["path"].to_list(), chosen["size"])
        tables.append(table)
    return pl.concat(tables)


def _parts() -> list[tuple[str, str, str]]:
    """Option, hospital and split of each separately drawn part."""
    home, *others = HOSPITALS
    parts = [(f"{home}_{split}", home, split) for split in SPLITS]
    return parts + [(name, name, "test") for name in others]


def _checked(options: Mapping[str, Any]) -> dict[str, int]:
    """All options, those of the user over the defaults."""
    for name, value in options.items():
        if name not in OPTIONS:
            raise UserError(f"phantom: unknown option '{name}': {suggest(name, OPTIONS)}")
        low, high = (SMALLEST, LARGEST) if name == "size" else (1, MOST_PATIENTS)
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole or not low <= value <= high:
            raise UserError(
                f"phantom: option '{name}' is {value!r}: a whole number {low} to {high} is needed"
            )
    return {**OPTIONS, **options}


def _index(cohort: Cohort, split: str, folder: Path) -> pl.DataFrame:
    """One row an image; a patient's number begins with 1, 2 or 3 for the split."""
    hospital = HOSPITALS[cohort.hospital]
    first = 100_000 * (1 + SPLITS.index(split))
    groups = [f"phantom-{cohort.hospital}-{first + number}" for number in cohort.patient.tolist()]
    visits = cohort.visit.tolist()
    images = [f"{group}-{visit:02d}" for group, visit in zip(groups, visits, strict=True)]
    place = folder / "images" / cohort.hospital
    labels = cohort.reported.astype(np.int8)
    return pl.DataFrame(
        {
            "image": images,
            "path": [str(place / f"{image}.png") for image in images],
            "group": groups,
            "order": pl.Series("order", visits, dtype=pl.Int32),
        }
    ).with_columns(
        pl.lit(cohort.hospital).alias("domain"),
        pl.lit(split).alias("split"),
        *(
            pl.Series(name, labels[:, k])
            if name in hospital.labeled
            else pl.lit(None, dtype=pl.Int8).alias(name)
            for k, name in enumerate(CLASSES)
        ),
    )


def _write(cohort: Cohort, paths: list[str], size: int) -> None:
    """Render and write the images; each file says what it is."""
    note = PngImagePlugin.PngInfo()
    note.add_text("Description", NOTICE)
    Path(paths[0]).parent.mkdir(parents=True, exist_ok=True)
    for rows in batches(cohort):
        for row, pixels in zip(rows.tolist(), render(cohort, rows, size), strict=True):
            Image.fromarray(pixels).save(paths[row], compress_level=1, pnginfo=note)
