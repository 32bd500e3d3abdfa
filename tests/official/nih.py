"""NIH ChestX-ray14 in small: ``images/``, the table in either version, the official lists."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from official import Films, films, lines, save
from stamp.data.label_tables import CLASSES
from stamp.data.phantom.findings import CLASSES as DRAWN

HEADER = (
    "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient {sex},View Position,"
    "OriginalImage[Width,Height],OriginalImagePixelSpacing[x,y],"
)
TABLES = {"v2020": "Data_Entry_2017_v2020.csv", "2017": "Data_Entry_2017.csv"}


def make(root: Path, patients: int, seed: int, size: int = 64, version: str = "v2020") -> None:
    """Write the unpacked data set; every fourth patient is on the test list.

    Version ``2017`` writes the first table: ages as 058Y, padded numbers, and follow-up numbers
    that are those of the file names instead of chronological ones.
    """
    rng = np.random.default_rng([seed, 0x1417])
    taken = films("home", patients, seed, size)
    number = _file_numbers(taken, rng)
    names = [f"{p + 1:08d}_{n:03d}.png" for p, n in zip(taken.patient, number, strict=True)]
    paths = [root / "images" / name for name in names]
    save(taken.pictures, paths)
    for path in paths[::50]:  # a few of the official files have four channels
        with Image.open(path) as picture:
            picture.convert("RGBA").save(path)
    table = _table(taken, names, number, rng, version)
    (root / TABLES[version]).write_text(table)
    test = (taken.patient + 1) % 4 == 0
    for name, part in (("train_val_list.txt", ~test), ("test_list.txt", test)):
        listed = sorted(name for name, inside in zip(names, part, strict=True) if inside)
        (root / name).write_text("\n".join(listed))


def archives(folder: Path, parts: int = 2) -> list[Path]:
    """Pack ``images/`` of a made data set as the official page gives it out, and remove it."""
    pictures = sorted((folder / "images").iterdir())
    made = []
    for part, rows in enumerate(np.array_split(np.arange(len(pictures)), parts), start=1):
        made.append(folder / f"images_{part:03d}.tar.gz")
        with tarfile.open(made[-1], "w:gz", compresslevel=1) as archive:
            for row in rows:
                archive.add(pictures[row], arcname=f"images/{pictures[row].name}")
    shutil.rmtree(folder / "images")
    return made


def _file_numbers(taken: Films, rng: np.random.Generator) -> NDArray[np.intp]:
    """The number in each file name: for two patients in five not the order of time."""
    shuffled = rng.random(taken.patient.max() + 1) < 0.4
    key = np.where(shuffled[taken.patient], rng.random(len(taken.patient)), taken.visit)
    order = np.lexsort((key, taken.patient))
    number = np.empty_like(taken.visit)
    number[order] = taken.visit
    return number


def _table(
    taken: Films, names: list[str], number: NDArray[np.intp], rng: np.random.Generator, version: str
) -> str:
    """The table's text, by file name, with the trailing comma of the official file."""
    old = version == "2017"
    findings = _findings(taken, rng)
    age = rng.integers(20, 80, taken.patient.max() + 1)[taken.patient] + taken.visit // 2
    sex = rng.choice(["M", "F"], taken.patient.max() + 1)[taken.patient]
    follow_up = number if old else taken.visit
    rows = []
    for row in sorted(range(len(names)), key=names.__getitem__):
        patient = int(taken.patient[row]) + 1
        rows.append(
            (
                names[row],
                findings[row],
                f"{follow_up[row]:03d}" if old else follow_up[row],
                f"{patient:08d}" if old else patient,
                f"{age[row]:03d}Y" if old else age[row],
                sex[row],
                "AP" if taken.portable[row] else "PA",
                "2500,2048,0.168,0.168,",
            )
        )
    return lines(HEADER.format(sex="Gender" if old else "Sex"), rows)


def _findings(taken: Films, rng: np.random.Generator) -> list[str]:
    """``Effusion|Mass`` or ``No Finding``, now and then not by the alphabet, as in the original."""
    present = rng.random((len(taken.findings), len(CLASSES))) < 0.03
    for column, name in enumerate(DRAWN):
        present[:, CLASSES.index(name)] = taken.findings[:, column]
    backwards = rng.random(len(present)) < 0.1
    texts = []
    for row, turned in zip(present, backwards, strict=True):
        found = [CLASSES[k] for k in np.flatnonzero(row)]
        texts.append("|".join(found[::-1] if turned else found) or "No Finding")
    return texts
