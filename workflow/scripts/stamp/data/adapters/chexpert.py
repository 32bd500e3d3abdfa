"""CheXpert: chest X-rays of Stanford, labels mined from reports (train) or by radiologists.

Copies differ in where the tables lie and in what their paths begin with: ``CheXpert-v1.0-small/``,
``CheXpert-v1.0/``, nothing at all. CheXlocalize ships the validation images in ``val`` and is the
source of the test images. A path is therefore read from its split's folder on, and the images are
looked for where that folder is.
Irvin et al., AAAI 2019; Saporta et al., "Benchmarking saliency methods for chest X-ray
interpretation", Nature Machine Intelligence 2022.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from stamp.config.labels import label_maps as labelmaps
from stamp.core.errors import UserError
from stamp.data.adapter_options import choice, choices, choose
from stamp.data.label_tables import BLANK, CLASSES, UNCERTAIN, labels, read, shipped

HELP = (
    "CheXpert is given out by a form: accept the agreement at "
    "stanfordmlgroup.github.io/competitions/chexpert and unpack CheXpert-v1.0-small.zip (or merge "
    "the batches of CheXpert-v1.0) in the data set's folder, which gives "
    "CheXpert-v1.0-small/train.csv, valid.csv, train/ and valid/; the test images and "
    "test_labels.csv come with CheXlocalize and go into the same folder"
)
OPTIONS: dict[str, Any] = {
    "splits": ["valid"],
    "uncertain": "ignore",
    "blank": "zero",
    "frontal": True,
    "metadata": "root",
}
TABLES = {
    "train": ("train.csv",),
    "valid": ("valid.csv", "val_labels.csv"),
    "test": ("test_labels.csv", "test.csv"),
}
FOLDERS = {"train": ("train",), "valid": ("valid", "val"), "test": ("test",)}
PLACES = (
    "CheXpert-v1.0-small",
    "CheXpert-v1.0",
    ".",
    "CheXpert-v1.0 batch 1 (validate & csv)",
    "CheXpert",
    "chexlocalize/CheXpert",
)


def index(options: Mapping[str, Any], root: Path, seed: int) -> pl.DataFrame:
    """The index of the chosen splits: ``group`` is the patient, ``order`` the study's number.

    An image's id is its path below the version's folder. Seven classes are labeled, the other
    seven are null. Extra columns: ``position`` (AP, PA; null where not given), ``age``, ``sex``.
    """
    chosen = choose("chexpert", options, OPTIONS)
    splits = choices("chexpert", "splits", chosen["splits"], tuple(TABLES))
    uncertain = choice("chexpert", "uncertain", chosen["uncertain"], tuple(UNCERTAIN))
    blank = choice("chexpert", "blank", chosen["blank"], tuple(BLANK))
    metadata = choice("chexpert", "metadata", chosen["metadata"], ("root", "shipped"))
    if not isinstance(chosen["frontal"], bool):
        raise UserError(
            f"data set 'chexpert': option 'frontal' is {chosen['frontal']!r}; "
            "expected true (only frontal views) or false (all)"
        )
    classes = labelmaps.read("chexpert")
    parts = []
    for split in splits:
        file = _table_file(root, split, metadata)
        table = read(file, ("Path", *classes), HELP)
        found = labels(table, classes, uncertain, blank, str(file))
        rows = _rows(table, split, root, file).hstack(found)
        parts.append(rows.filter(pl.col("frontal")) if chosen["frontal"] else rows)
    fixed = ("image", "path", "group", "order", "domain", "split")
    return pl.concat(parts).select(*fixed, *CLASSES, "position", "age", "sex")


def tables(options: Mapping[str, Any], root: Path) -> list[Path]:
    """The files that the index is made of."""
    chosen = choose("chexpert", options, OPTIONS)
    splits = choices("chexpert", "splits", chosen["splits"], tuple(TABLES))
    return [_table_file(root, split, str(chosen["metadata"])) for split in splits]


def _table_file(root: Path, split: str, metadata: str) -> Path:
    """The first table of a split in the places where copies have it, or the shipped one."""
    for place in PLACES:
        for name in TABLES[split]:
            for file in (root / place / name, root / place / f"{name}.gz"):
                if file.is_file():
                    return file
    packed = metadata == "shipped" and split == "train"
    return (shipped("chexpert_train.csv.gz") if packed else None) or root / TABLES[split][0]


def _image_folder(root: Path, split: str, table: Path) -> Path:
    """The split's folder of images: beside the table, or in another of the usual places.

    Where there is no image yet, it is the folder in which an archive would put them.
    """
    homes = [root / place for place in PLACES]
    homes = [table.parent, *homes] if table.parent in homes else homes
    for home in homes:
        for name in FOLDERS[split]:
            if (home / name).is_dir():
                return home / name
    return homes[0] / FOLDERS[split][0]


def _rows(table: pl.DataFrame, split: str, root: Path, file: Path) -> pl.DataFrame:
    """Everything but labels of a split's images, in the table's order."""
    folder = "|".join(FOLDERS[split])
    inside = pl.col("Path").str.extract(rf"(?:^|/)(?:{folder})/(patient\d+/study\d+/[^/]+)$")
    rows = table.with_columns(inside=inside)
    wrong = rows.filter(pl.col("inside").is_null())
    if len(wrong):
        raise UserError(
            f"{file}: {len(wrong)} paths are not of the form {FOLDERS[split][0]}/patient00001/"
            f"study1/view1_frontal.jpg, the first is '{wrong['Path'][0]}'"
        )
    images = str(_image_folder(root, split, file)) + os.sep
    number = pl.col("inside").str.extract
    named = pl.col("inside").str.contains("frontal", literal=True)
    return rows.select(
        image=pl.lit(f"{split}/") + pl.col("inside"),
        path=pl.lit(images) + pl.col("inside"),
        group=number(r"^patient(\d+)").cast(pl.Int64).cast(pl.String),
        order=number(r"/study(\d+)/").cast(pl.Int32),
        domain=pl.lit("chexpert"),
        split=pl.lit(split),
        frontal=pl.coalesce(_text(table, "Frontal/Lateral") == "Frontal", named),
        position=_text(table, "AP/PA"),
        age=_text(table, "Age").cast(pl.Float64, strict=False).cast(pl.Int16, strict=False),
        sex=_text(table, "Sex").replace({"Male": "M", "Female": "F", "Unknown": None}),
    )


def _text(table: pl.DataFrame, name: str) -> pl.Expr:
    """A column's texts; nulls where there is none, as for view, sex and age in the test table."""
    return pl.col(name) if name in table.columns else pl.lit(None, dtype=pl.String)
