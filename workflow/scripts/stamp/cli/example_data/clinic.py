"""A made-up clinic: images (PNG of 8 and 16 bits, DICOM) and a table of patients and visits."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray
from PIL import Image

from stamp.core.artifacts import atomic_write, write_table
from stamp.data.phantom import NOTICE
from stamp.data.phantom.cohort import SPLITS, batches, render, simulate
from stamp.data.phantom.findings import CLASSES

LABELED = ("Cardiomegaly", "Effusion", "Pneumothorax")


SHARES = {"train": 0.4, "calibration": 0.2, "test": 0.4}


FIRST_DAY = date(2024, 1, 1)


def write_clinic(folder: Path, patients: int, size: int, seed: int) -> int:
    """Write a clinic's images and ``table.csv``; how many images there are.

    All three kinds of file hold the same gray values, so that scores do not depend on the kind.
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
                write_image(folder / files[row], pixels, row)
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


def _ending(number: int) -> str:
    """Every fifth image is a DICOM file."""
    return ".dcm" if number % 5 == 4 else ".png"


def write_image(file: Path, pixels: NDArray[np.uint8], number: int) -> None:
    """Write an 8-bit gray image as DICOM or PNG; every other PNG has 16 bits."""
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
