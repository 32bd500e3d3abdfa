"""Dollar Street in small, in the layout of its release on Kaggle.

Tables have the official columns; lists in them are Python literals, some with an apostrophe in a
topic. Pictures of a home share its country and income. Some pictures are in gray, some are PNG
files with four channels under the name of a JPEG file.
"""

from __future__ import annotations

import csv
import shutil
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from official.imagenet import picture
from official.objectnet import words

ARCHIVE = "the-dollar-street-dataset.zip"
COLUMNS = (
    "id",
    "country.name",
    "country.id",
    "region.id",
    "type",
    "imageRelPath",
    "topics",
    "place",
    "income",
)
LABELS = ("imagenet_synonyms", "imagenet_sysnet_id")
PLACES = (
    ("Burundi", "bi", "af"),
    ("Côte d'Ivoire", "ci", "af"),
    ("India", "in", "as"),
    ("China", "cn", "as"),
    ("Haiti", "ht", "am"),
    ("United States", "us", "am"),
    ("Ukraine", "ua", "eu"),
    ("Netherlands", "nl", "eu"),
)
# The topics of a picture and the words of the ImageNet classes that count as right.
TOPICS: Mapping[tuple[str, ...], Sequence[str]] = {
    ("toilet paper",): ("toilet tissue, toilet paper, bathroom tissue",),
    ("stove/hob",): ("stove",),
    ("wall clock",): ("wall clock", "analog clock"),
    ("everyday shoes", "shoes"): ("running shoe", "sandal", "Loafer", "clog, geta, patten, sabot"),
    ("computer",): ("laptop, laptop computer", "notebook, notebook computer", "desktop computer"),
    ("children's bed",): ("crib, cot", "cradle"),
    ("family snapshots",): (),
}


def make(
    root: Path,
    images: int,
    seed: int,
    size: int = 64,
    topics: Mapping[tuple[str, ...], Sequence[str]] = TOPICS,
) -> None:
    """Write ``images`` pictures and the three tables.

    Pictures of a topic without an ImageNet class are in the table of all images only; of the others
    every third is in the table for training, the rest in that for tests.
    """
    rng = np.random.default_rng([seed, 0xD011A5])
    home, known = root / "dataset_dollarstreet", words()
    homes = max(4, images // 5)
    income = np.round(np.exp(rng.uniform(np.log(26), np.log(11000), homes)), 3)
    place = rng.integers(len(PLACES), size=homes)
    tables: dict[str, list[list[object]]] = {"": [], "_imagenet_train": [], "_imagenet_test": []}
    for each in range(images):
        tags, names = list(topics.items())[each % len(topics)]
        house = int(rng.integers(homes))
        name = f"5d4b{rng.integers(16**10):010x}{each:010x}"
        path = f"assets/{name}/{name}.jpg"
        numbers = [known.index(one) for one in names]
        shown = numbers[int(rng.integers(len(numbers)))] if numbers else len(known)
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        _save(picture(shown, rng, size).convert("RGB"), home / path, each)
        row = [name, *PLACES[place[house]], "image", path, repr(list(tags)), "home", income[house]]
        tables[""].append(row)
        if numbers:
            part = "_imagenet_train" if each % 3 == 0 else "_imagenet_test"
            tables[part].append([*row, repr(list(names)), repr(numbers)])
    for part, rows in tables.items():
        write(home / f"images_v2{part}.csv", (*COLUMNS, *LABELS) if part else COLUMNS, rows)


def write(file: Path, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Write a table."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "w", newline="", encoding="utf-8") as out:
        csv.writer(out, lineterminator="\n").writerows([columns, *rows])


def archives(folder: Path) -> list[Path]:
    """Pack a made data set as Kaggle gives it out, and remove it."""
    home = folder / "dataset_dollarstreet"
    with zipfile.ZipFile(folder / ARCHIVE, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for path in sorted(path for path in home.rglob("*") if path.is_file()):
            archive.write(path, path.relative_to(folder).as_posix())
    shutil.rmtree(home)
    return [folder / ARCHIVE]


def _save(shown: Image.Image, path: Path, number: int) -> None:
    """Every tenth picture is a PNG file with transparency, every tenth a gray JPEG."""
    if number % 10 == 4:
        shown.putalpha(200)
        shown.save(path, "PNG", compress_level=1)
    else:
        (shown.convert("L") if number % 10 == 7 else shown).save(path, "JPEG", quality=92)
