"""A small RSNA Pneumonia challenge in Kaggle's layout, and the mapping to NIH's images."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import uuid
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image
from pydicom.dataset import Dataset
from pydicom.encaps import encapsulate
from pydicom.uid import JPEGBaseline8Bit, generate_uid
from tests.official.vindr import header, phantom, write_csv

from stamp.data.phantom.findings import CLASSES

LABELS = "stage_2_train_labels.csv"
DETAILS = "stage_2_detailed_class_info.csv"
MAPPING = "pneumonia-challenge-dataset-mappings_2018.json"
OPACITIES = ("Pneumonia", "Consolidation")


def make(root: Path, images: int, seed: int, size: int = 64) -> list[str]:
    """Write the images as 8-bit JPEG in DICOM and both tables; the ids come back in order.

    A positive image has one or two boxes, and as many rows in both tables.
    """
    cohort, pictures = phantom("clinic", images, seed, size)
    present = cohort.signs.present[cohort.visit == 0]
    positive = present[:, [CLASSES.index(name) for name in OPACITIES]].any(axis=1)
    names = [patient_id(seed, k) for k in range(images)]
    folder = root / "stage_2_train_images"
    folder.mkdir(parents=True, exist_ok=True)
    labels: list[list[object]] = [["patientId", "x", "y", "width", "height", "Target"]]
    details: list[list[object]] = [["patientId", "class"]]
    for k, (name, pixels) in enumerate(zip(names, pictures, strict=True)):
        radiograph(pixels, name).save_as(folder / f"{name}.dcm", enforce_file_format=True)
        if positive[k]:
            boxes = 1 + k % 2
            for box in range(boxes):
                place = [float(k % 16 + box * size // 2), float(k % 11), size / 4, size / 3]
                labels.append([name, *place, 1])
            details += [[name, "Lung Opacity"]] * boxes
        else:
            labels.append([name, "", "", "", "", 0])
            other = "No Lung Opacity / Not Normal" if present[k].any() else "Normal"
            details.append([name, other])
    write_csv(root / LABELS, labels)
    write_csv(root / DETAILS, details)
    return names


def mapping(root: Path, nih: Sequence[str]) -> Path:
    """Write the challenge's mapping: the images of :func:`make` are these of NIH, in order.

    Images beyond the given names stay without an entry; as in the real file, there are entries for
    images of other stages too.
    """
    with open(root / LABELS, newline="") as opened:
        names = list(dict.fromkeys(row["patientId"] for row in csv.DictReader(opened)))
    entries = [_entry(name, image) for name, image in zip(names, nih, strict=False)]
    entries.append(_entry(patient_id(0, -1), "00099999_000.png"))
    file = root / MAPPING
    file.write_text(json.dumps(entries))
    return file


def _entry(name: str, image: str) -> dict[str, object]:
    uids = ("StudyInstanceUID", "SeriesInstanceUID", "SOPInstanceUID")
    return {
        "img_id": image,
        "subset_img_id": name,
        **{uid: generate_uid(entropy_srcs=[name, uid]) for uid in uids},
        "orig_labels": ["No Finding"],
    }


def patient_id(seed: int, number: int) -> str:
    """An identifier of an image in the form of a UUID, like the real ones."""
    digest = hashlib.blake2b(f"rsna {seed} {number}".encode(), digest_size=16)
    return str(uuid.UUID(bytes=digest.digest()))


def radiograph(picture: np.ndarray, name: str) -> Dataset:
    """A DICOM data set with an 8-bit picture as baseline JPEG, without a window like the real."""
    coded = io.BytesIO()
    Image.fromarray(picture).save(coded, "JPEG", quality=95)
    dataset = header(picture, name, JPEGBaseline8Bit)
    dataset.PatientID = name
    dataset.ConversionType, dataset.ViewPosition = "WSD", "PA"
    dataset.LossyImageCompression = "01"
    dataset.LossyImageCompressionMethod = "ISO_10918_1"
    dataset.PixelData = encapsulate([coded.getvalue()])
    dataset["PixelData"].VR = "OB"
    return dataset
