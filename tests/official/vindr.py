"""A small VinDr-CXR in its official layouts: DICOM files of the phantom, tables with readers.

The files differ as the real ones do: both directions of gray, 12 to 16 bits, windows given, given
twice or not at all, a rescale intercept, uncompressed and JPEG 2000. Shown by the standard, each is
the phantom's picture (stretched to its own range where the file has no window).
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from PIL import Image
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.encaps import encapsulate
from pydicom.uid import (
    UID,
    ExplicitVRLittleEndian,
    ImplicitVRLittleEndian,
    JPEG2000Lossless,
    generate_uid,
)

from stamp.data.phantom.cohort import BATCH, Cohort, render, simulate
from stamp.data.phantom.findings import CLASSES

LOCAL = (
    "Aortic enlargement",
    "Atelectasis",
    "Calcification",
    "Cardiomegaly",
    "Clavicle fracture",
    "Consolidation",
    "Edema",
    "Emphysema",
    "Enlarged PA",
    "ILD",
    "Infiltration",
    "Lung Opacity",
    "Lung cavity",
    "Lung cyst",
    "Mediastinal shift",
    "Nodule/Mass",
    "Pleural effusion",
    "Pleural thickening",
    "Pneumothorax",
    "Pulmonary fibrosis",
    "Rib fracture",
    "Other lesion",
)
GLOBAL = ("COPD", "Lung tumor", "Pneumonia", "Tuberculosis")
# The two tables of PhysioNet spell one column differently.
OTHER = {"train": "Other diseases", "test": "Other disease"}
KAGGLE = (
    "Aortic enlargement",
    "Atelectasis",
    "Calcification",
    "Cardiomegaly",
    "Consolidation",
    "ILD",
    "Infiltration",
    "Lung Opacity",
    "Nodule/Mass",
    "Other lesion",
    "Pleural effusion",
    "Pleural thickening",
    "Pneumothorax",
    "Pulmonary fibrosis",
    "No finding",
)
CLASS_UID = "1.2.840.10008.5.1.4.1.1.1.1"
READERS, VOTES, KINDS = 17, 3, 5


def make(
    root: Path, images: int, seed: int, size: int = 64, layout: str = "physionet"
) -> list[str]:
    """Write ``images`` images with their tables; the image ids come back in the pictures' order.

    The last quarter is the training part, with three readers an image, and the rest the test part.
    In the layout ``kaggle`` all are training images.
    """
    cohort, pictures = phantom("north", images, seed, size)
    names = [image_id(seed, k) for k in range(images)]
    parts = np.where(np.arange(images) < images - -(-images // 4), "test", "train")
    if layout == "kaggle":
        parts[:] = "train"
    for part in ("train", "test"):
        (root / part).mkdir(parents=True, exist_ok=True)
    for k, (name, pixels) in enumerate(zip(names, pictures, strict=True)):
        radiograph(pixels, k, name).save_as(
            root / str(parts[k]) / f"{name}.dicom", enforce_file_format=True
        )
    truth = labels(cohort)
    test, train = np.flatnonzero(parts == "test"), np.flatnonzero(parts == "train")
    readings = _readings(truth, train, seed)
    if layout == "kaggle":
        _write_kaggle(root / "train.csv", names, readings, size)
    else:
        consensus = [(int(k), None, truth[k]) for k in test]
        _write_tables(root / "annotations", "train", names, readings, size)
        _write_tables(root / "annotations", "test", names, consensus, size)
    return names


def phantom(hospital: str, images: int, seed: int, size: int) -> tuple[Cohort, np.ndarray]:
    """The first visits of as many simulated patients, and their pictures."""
    cohort = simulate(hospital, "test", images, seed)
    rows = np.flatnonzero(cohort.visit == 0)
    parts = np.split(rows, range(BATCH, images, BATCH))
    return cohort, np.concatenate([render(cohort, part, size) for part in parts])


def image_id(seed: int, number: int) -> str:
    """32 hexadecimal digits, like the real names."""
    return hashlib.blake2b(f"vindr {seed} {number}".encode(), digest_size=16).hexdigest()


def labels(cohort: Cohort) -> list[set[str]]:
    """The findings of each picture in VinDr's words; what the phantom lacks goes with another."""
    first = cohort.visit == 0
    rows = zip(cohort.signs.present[first], cohort.signs.severity[first], strict=True)
    found = []
    for present, severity in rows:
        signs = {name: s for name, p, s in zip(CLASSES, present, severity, strict=True) if p}
        words = {"Nodule": "Nodule/Mass", "Effusion": "Pleural effusion"}
        marks = {words.get(name, name) for name in signs}
        if signs.get("Effusion", 0) > 0.3:
            marks.add("Pleural thickening")
        if "Edema" in signs:
            marks.add("Pulmonary fibrosis")
        if "Pneumonia" in signs or "Consolidation" in signs:
            marks |= {"Infiltration", "Lung Opacity"}
        found.append(marks)
    return found


def _readings(
    truth: Sequence[set[str]], rows: Iterable[int], seed: int
) -> list[tuple[int, str, set[str]]]:
    """Three readers an image, who miss findings; that nothing is there, all of them see."""
    rng = np.random.default_rng([seed, 0x76696E])
    readings = []
    for k in rows:
        for reader in rng.choice(READERS, VOTES, replace=False):
            seen = {name for name in sorted(truth[k]) if rng.random() > 0.25}
            seen = seen or ({"Other lesion"} if truth[k] else set())
            readings.append((int(k), f"R{reader + 1}", seen))
    return readings


def _boxes(k: int, marks: set[str], known: Sequence[str], size: int) -> list[list[object]]:
    """A box for each mark that has a place, two for every third image: rows repeat classes."""
    found: list[list[object]] = []
    for name in sorted(set(marks) & set(known)) or (["Other lesion"] if marks else []):
        low = [float((7 * k + len(name)) % (size // 2)), float((5 * k) % (size // 2))]
        box = [*low, low[0] + size / 4, low[1] + size / 4]
        found += [[name, *box]] * (2 if k % 3 == 0 else 1)
    return found or [["No finding", "", "", "", ""]]


def _write_tables(
    folder: Path,
    part: str,
    names: Sequence[str],
    readings: Sequence[tuple[int, str | None, set[str]]],
    size: int,
) -> None:
    """``image_labels_<part>.csv`` and ``annotations_<part>.csv``; readers only where there are."""
    columns = (*LOCAL, *GLOBAL, OTHER[part], "No finding")
    reader = ["rad_id"] if part == "train" else []
    marks: list[list[object]] = [["image_id", *reader, *columns]]
    boxes: list[list[object]] = [
        ["image_id", *reader, "class_name", "x_min", "y_min", "x_max", "y_max"]
    ]
    for k, who, seen in readings:
        found = seen or {"No finding"}
        head = [names[k], *([who] if who else [])]
        marks.append([*head, *(int(name in found) for name in columns)])
        boxes += [[*head, *row] for row in _boxes(k, seen, LOCAL, size)]
    write_csv(folder / f"image_labels_{part}.csv", marks)
    write_csv(folder / f"annotations_{part}.csv", boxes)


def _write_kaggle(
    file: Path, names: Sequence[str], readings: Sequence[tuple[int, str, set[str]]], size: int
) -> None:
    """The competition's table: one row per box, no global label, no row for a label it lacks."""
    rows: list[list[object]] = [
        ["image_id", "class_name", "class_id", "rad_id", "x_min", "y_min", "x_max", "y_max"]
    ]
    for k, who, seen in readings:
        for name, *box in _boxes(k, seen, KAGGLE, size):
            rows.append([names[k], name, KAGGLE.index(str(name)), who, *box])
    write_csv(file, rows)


def write_csv(file: Path, rows: Iterable[Sequence[object]]) -> None:
    """Rows, the header first, as a CSV file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "w", newline="") as opened:
        csv.writer(opened, lineterminator="\n").writerows(rows)


def header(pixels: np.ndarray, name: str, syntax: str) -> Dataset:
    """A radiograph's data set without its pixel data, 8 or 16 bits by the array's type."""
    dataset = Dataset()
    dataset.file_meta = FileMetaDataset()
    dataset.file_meta.TransferSyntaxUID = UID(syntax)
    dataset.SOPClassUID = CLASS_UID
    dataset.SOPInstanceUID = generate_uid(entropy_srcs=[name])
    dataset.Modality = "CR"
    dataset.PatientSex, dataset.PatientAge = "O", "000Y"
    dataset.SamplesPerPixel = 1
    dataset.PhotometricInterpretation = "MONOCHROME2"
    dataset.Rows, dataset.Columns = pixels.shape[:2]
    dataset.BitsAllocated = 8 * pixels.dtype.itemsize
    dataset.BitsStored = dataset.BitsAllocated
    dataset.HighBit = dataset.BitsStored - 1
    dataset.PixelRepresentation = 0
    return dataset


def radiograph(picture: np.ndarray, number: int, name: str) -> Dataset:
    """A DICOM data set that shows an 8-bit picture, stored in one of five ways by its number."""
    kind = number % KINDS
    bits = (12, 12, 14, 16, 16)[kind]
    most = 2**bits - 1
    stored = np.rint(picture * (most / 255)).astype(np.uint16)
    syntax = (ExplicitVRLittleEndian, ExplicitVRLittleEndian, ImplicitVRLittleEndian)
    dataset = header(stored, name, (*syntax, ExplicitVRLittleEndian, JPEG2000Lossless)[kind])
    dataset.BitsStored, dataset.HighBit = bits, bits - 1
    if kind == 1:
        dataset.PhotometricInterpretation = "MONOCHROME1"
        stored = (most - stored).astype(np.uint16)
    if kind == 2:
        dataset.RescaleIntercept, dataset.RescaleSlope = "-1024", "1"
    if kind != 3:
        center, width = (most + 1) / 2 + (-1024 if kind == 2 else 0), most + 1
        dataset.WindowCenter = [str(center), "40"] if kind == 0 else str(center)
        dataset.WindowWidth = [str(width), "80"] if kind == 0 else str(width)
    if kind == 4:
        coded = io.BytesIO()
        Image.fromarray(stored).save(coded, "JPEG2000", no_jp2=True, irreversible=False)
        dataset.PixelData = encapsulate([coded.getvalue()])
        dataset["PixelData"].VR = "OB"
    else:
        dataset.PixelData = stored.astype("<u2").tobytes()
        dataset["PixelData"].VR = "OW"
    return dataset
