"""Made-up files to try the workflow on: a clinic with a table, and shapes with a folder a class.

Nothing in them was measured or photographed; see ``stamp.data.phantom``.
"""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from stamp.core.artifacts import atomic_write, write_table
from stamp.core.errors import UserError
from stamp.data.phantom import NOTICE
from stamp.data.phantom.cohort import SPLITS, batches, render, simulate
from stamp.data.phantom.findings import CLASSES

LABELED = ("Cardiomegaly", "Effusion", "Pneumothorax")
SHARES = {"train": 0.4, "calibration": 0.2, "test": 0.4}
SHAPES = ("circle", "square", "triangle")
FIRST_DAY = date(2024, 1, 1)


def write_example(folder: Path, patients: int, size: int, seed: int) -> dict[str, int]:
    """Write ``clinic`` and ``shapes`` into a folder that is empty or new; images of each."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder}: is there already and not empty: name a new folder")
    return {
        "clinic": write_clinic(folder / "clinic", patients, size, seed),
        "shapes": write_shapes(folder / "shapes", 40, size, seed),
    }


def write_clinic(folder: Path, patients: int, size: int, seed: int) -> int:
    """A clinic's pictures as PNG of 8 and 16 bits and DICOM, and ``table.csv``; how many images.

    All three kinds of file show the very same grays: what is scored does not depend on them.
    """
    tables = []
    (folder / "images").mkdir(parents=True)
    for split in SPLITS:
        cohort = simulate("home", split, max(2, round(SHARES[split] * patients)), seed)
        names = [
            f"{split}-{patient:03d}-{visit}"
            for patient, visit in zip(cohort.patient.tolist(), cohort.visit.tolist(), strict=True)
        ]
        files = [f"images/{name}{_ending(number)}" for number, name in enumerate(names)]
        for rows in batches(cohort):
            for row, pixels in zip(rows.tolist(), render(cohort, rows, size), strict=True):
                write_picture(folder / files[row], pixels, row)
        days = 45 * cohort.visit + cohort.patient % 40
        labels = {name: cohort.reported[:, CLASSES.index(name)].astype(int) for name in LABELED}
        tables.append(
            pl.DataFrame(
                {
                    "file": files,
                    "patient": [f"{split}-{patient:03d}" for patient in cohort.patient.tolist()],
                    "date": [str(FIRST_DAY + timedelta(days=int(day))) for day in days],
                    "split": [split] * len(files),
                    **labels,
                }
            )
        )
    table = pl.concat(tables)
    write_table(folder / "table.csv", table, {})
    with atomic_write(folder / "NOTICE") as part:
        part.write_text(NOTICE + "\n")
    return len(table)


def write_shapes(folder: Path, each: int, size: int, seed: int) -> int:
    """Shapes of random size and place on noise, a folder a class; how many images."""
    rng = np.random.default_rng([seed, 0x5A9E])
    for shape in SHAPES:
        (folder / shape).mkdir(parents=True)
        for number in range(each):
            picture = Image.fromarray(rng.integers(0, 120, (size, size)).astype(np.uint8))
            radius = rng.uniform(0.15, 0.35) * size
            x, y = rng.uniform(radius, size - radius, 2)
            pen, box = ImageDraw.Draw(picture), (x - radius, y - radius, x + radius, y + radius)
            if shape == "circle":
                pen.ellipse(box, fill=220)
            elif shape == "square":
                pen.rectangle(box, fill=220)
            else:
                pen.polygon([(box[0], box[3]), (box[2], box[3]), (x, box[1])], fill=220)
            picture.save(folder / shape / f"{number:03d}.png")
    return each * len(SHAPES)


def _ending(number: int) -> str:
    """Every fifth picture is a DICOM file."""
    return ".dcm" if number % 5 == 4 else ".png"


def write_picture(file: Path, pixels: NDArray[np.uint8], number: int) -> None:
    """An 8-bit gray picture as DICOM, as PNG, or, every other, as PNG of 16 bits."""
    if file.suffix == ".dcm":
        _write_dicom(file, pixels)
    elif number % 2:
        Image.fromarray(pixels.astype(np.uint16) * 257).save(file)
    else:
        Image.fromarray(pixels).save(file)


def _write_dicom(file: Path, pixels: NDArray[np.uint8]) -> None:
    from pydicom.dataset import Dataset, FileMetaDataset
    from pydicom.uid import ExplicitVRLittleEndian, SecondaryCaptureImageStorage, generate_uid

    uid = generate_uid(entropy_srcs=[file.name])
    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID = SecondaryCaptureImageStorage
    meta.MediaStorageSOPInstanceUID = uid
    meta.TransferSyntaxUID = ExplicitVRLittleEndian
    made = Dataset()
    made.file_meta = meta
    made.SOPClassUID, made.SOPInstanceUID = SecondaryCaptureImageStorage, uid
    made.ImageComments = NOTICE
    made.PhotometricInterpretation, made.SamplesPerPixel = "MONOCHROME2", 1
    made.Rows, made.Columns = pixels.shape
    made.BitsAllocated, made.BitsStored, made.HighBit, made.PixelRepresentation = 8, 8, 7, 0
    made.PixelData = pixels.tobytes() + b"\0" * (pixels.size % 2)
    made["PixelData"].VR = "OB"
    made.save_as(file, enforce_file_format=True)
