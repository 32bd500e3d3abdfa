"""CheXpert in small, in each of the layouts that are in circulation."""

from __future__ import annotations

import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from official import OBSERVATIONS, films, lines, mined, observations, save

ABOUT = ("Sex", "Age", "Frontal/Lateral", "AP/PA")
FIRST = {"train": 1, "valid": 64541, "test": 64741}


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a copy has its files, and what its tables call them."""

    home: str  # folder of tables and images, below the data set's
    prefix: str  # what the paths of train and valid begin with
    folders: dict[str, str]
    tables: dict[str, str]


_USUAL = {split: split for split in FIRST}
_TABLES = {"train": "train.csv", "valid": "valid.csv", "test": "test.csv"}
LAYOUTS = {
    "small": Layout("CheXpert-v1.0-small", "CheXpert-v1.0-small/", _USUAL, _TABLES),
    "full": Layout("CheXpert-v1.0", "CheXpert-v1.0/", _USUAL, _TABLES),
    "flat": Layout(".", "CheXpert-v1.0-small/", _USUAL, _TABLES),
    "chexlocalize": Layout(
        "CheXpert",
        "CheXpert-v1.0/",
        {"valid": "val", "test": "test"},
        {"valid": "val_labels.csv", "test": "test_labels.csv"},
    ),
}


def make(root: Path, patients: int, seed: int, size: int = 64, layout: str = "small") -> None:
    """Write tables and pictures: four tenths of the patients train, three valid, three test.

    The training table has uncertain and blank observations; the others are all 0 and 1. The test
    table has no view, sex and age, and its paths begin with ``test/``.
    """
    where = LAYOUTS[layout]
    rng = np.random.default_rng([seed, 0xC4E])
    taken = films("north", patients, seed, size)
    wide = np.pad(taken.pictures, ((0, 0), (0, 0), (size // 8, size // 8)))
    truth = observations(taken.findings, rng)
    written = {"train": mined(truth, rng), "valid": truth.astype(np.float64).astype(str)}
    written["test"] = written["valid"]
    about = _about(taken.patient, taken.portable, rng)
    lateral = rng.random(len(truth)) < 0.25
    share = taken.patient * 10 // patients
    parts = {"train": share < 4, "valid": (share >= 4) & (share < 7), "test": share >= 7}
    for split in where.tables:
        rows = np.flatnonzero(parts[split])
        first = int(taken.patient[rows[0]]) if len(rows) else 0
        names = [
            f"patient{FIRST[split] + p - first:05d}/study{v + 1}"
            for p, v in zip(taken.patient[rows].tolist(), taken.visit[rows].tolist(), strict=True)
        ]
        place = root / where.home / where.folders[split]
        save(wide[rows], [place / name / "view1_frontal.jpg" for name in names])
        sides = np.flatnonzero(lateral[rows])
        narrow = np.ascontiguousarray(taken.pictures[rows[sides]][:, :, ::2])
        save(narrow, [place / names[k] / "view2_lateral.jpg" for k in sides])
        text = _table(split, where, names, about[rows], written[split][rows], lateral[rows])
        (root / where.home / where.tables[split]).write_text(text)


def archives(folder: Path, layout: str = "small") -> list[Path]:
    """Pack a made data set into the zip that is given out, and remove its files."""
    home = LAYOUTS[layout].home
    target = folder / f"{home}.zip"
    with zipfile.ZipFile(target, "w") as archive:
        for path in sorted((folder / home).rglob("*")):
            archive.write(path, path.relative_to(folder).as_posix())
    shutil.rmtree(folder / home)
    return [target]


def _about(
    patient: NDArray[np.intp], portable: NDArray[np.bool_], rng: np.random.Generator
) -> NDArray[np.str_]:
    """Sex, age and the position of the frontal view of each picture."""
    sex = rng.choice(["Male", "Female"], patient.max() + 1)[patient]
    age = rng.integers(20, 90, patient.max() + 1)[patient].astype(str)
    return np.stack([sex, age, np.where(portable, "AP", "PA")], axis=1)


def _table(
    split: str,
    where: Layout,
    names: list[str],
    about: NDArray[np.str_],
    written: NDArray[np.str_],
    lateral: NDArray[np.bool_],
) -> str:
    """The split's table: one row per view, a lateral one after its study's frontal one."""
    bare = split == "test"
    header = ",".join(["Path", *(() if bare else ABOUT), *OBSERVATIONS])
    start = f"{split}/" if bare else f"{where.prefix}{split}/"
    rows = []
    for name, (sex, age, position), values, also in zip(
        names, about, written, lateral, strict=True
    ):
        frontal = () if bare else (sex, age, "Frontal", position)
        rows.append((f"{start}{name}/view1_frontal.jpg", *frontal, *values))
        if also:
            side = () if bare else (sex, age, "Lateral", "")
            rows.append((f"{start}{name}/view2_lateral.jpg", *side, *values))
    return lines(header, rows)
