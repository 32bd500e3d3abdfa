"""VinDr-CXR: chest X-rays of two hospitals in Hanoi, labeled by radiologists.

15,000 training images were each read by three of 17 radiologists on their own, 3,000 test images
have the consensus of five. The release on PhysioNet has both; the Kaggle competition VinBigData has
the training part, one row for each box that a reader drew, and torchxrayvision ships its table.
There are no patient numbers: every image is a group of its own.
Nguyen et al., "VinDr-CXR: an open dataset of chest X-rays with radiologist's annotations",
Scientific Data 2022.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from stamp.config.labels import label_maps as labelmaps
from stamp.core.errors import UserError
from stamp.data.adapter_options import bundled_file, choice, choices, choose
from stamp.data.label_tables import CLASSES, read

HELP = (
    "VinDr-CXR needs a credentialed account: sign its data use agreement at "
    "physionet.org/content/vindr-cxr/1.0.0 and put annotations/, train/ and test/ of that release "
    "into the data set's folder, as with wget -r -N -c -np -nH --cut-dirs=3 --user NAME "
    "--ask-password https://physionet.org/files/vindr-cxr/1.0.0/"
)
MERGED = "Nodule/Mass"
OPTIONS: dict[str, Any] = {
    "splits": ["test"],
    "agreement": "unanimous",
    "train_images": "all",
    "layout": "auto",
}
AGREEMENTS = ("unanimous", "majority", "union")
TRAIN_IMAGES = ("all", "positive")
LAYOUTS = ("auto", "physionet", "kaggle")
READER_COLUMNS = ("rad_id", "rad_ID")


def index(options: Mapping[str, Any], root: Path, seed: int) -> pl.DataFrame:
    """The index of the chosen splits, by image id.

    Nine classes are labeled; nodules and masses are one of them, in the column ``Nodule/Mass``, and
    ``Nodule`` and ``Mass`` are null like the other classes that are not labeled. ``agreement`` says
    when a class with several readers is 1 (see :func:`settled`); the consensus of the test images
    counts as one reader, so there it changes nothing. ``train_images: positive`` keeps of the
    training images those in which a class is 1 by that rule. Extra column: ``readers``.
    """
    chosen = choose("vindr", options, OPTIONS)
    splits = choices("vindr", "splits", chosen["splits"], ("train", "test"))
    rule = choice("vindr", "agreement", chosen["agreement"], AGREEMENTS)
    kept = choice("vindr", "train_images", chosen["train_images"], TRAIN_IMAGES)
    layout = _layout(root, choice("vindr", "layout", chosen["layout"], LAYOUTS), splits)
    parts = {split: _rows(root, split, layout, rule) for split in splits}
    if kept == "positive" and "train" in parts:
        seen = pl.any_horizontal(pl.col(*CLASSES, MERGED) == 1)
        parts["train"] = parts["train"].filter(seen)
    fixed = ("image", "path", "group", "order", "domain", "split")
    return pl.concat(parts.values()).select(*fixed, *CLASSES, MERGED, "readers")


def settled(votes: pl.Expr, readers: pl.Expr, rule: str) -> pl.Expr:
    """The label of an image from the number of readers and of those who see the class.

    ``unanimous``: 1 if all see it, 0 if none does, null (not evaluable) if they disagree.
    ``majority``: 1 if more than half see it. ``union``: 1 if any does. Null without a reader.
    """
    if rule == "unanimous":
        label = pl.when(votes == readers).then(1).when(votes == 0).then(0).otherwise(None)
    else:
        label = (2 * votes > readers if rule == "majority" else votes > 0).cast(pl.Int8)
    return pl.when(readers > 0).then(label).otherwise(None).cast(pl.Int8)


def readings(root: Path, split: str, layout: str) -> pl.DataFrame:
    """What each reader of each image of a split sees: ``image``, ``reader``, 0/1/null a class."""
    if layout == "kaggle":
        return _boxes(_kaggle_file(root) or shipped() or root / "train.csv")
    return _marks(root / "annotations" / f"image_labels_{split}.csv")


def votes(found: pl.DataFrame) -> pl.DataFrame:
    """A row an image: for each class how many see it, and in ``<class>:readers`` of how many."""
    classes = list(dict.fromkeys(labelmaps.read("vindr").values()))
    return (
        found.group_by("image")
        .agg(
            pl.len().cast(pl.Int8).alias("readers"),
            *(pl.col(name).cast(pl.Int16).sum() for name in classes),
            *(pl.col(name).count().cast(pl.Int16).alias(f"{name}:readers") for name in classes),
        )
        .sort("image")
    )


def shipped() -> Path | None:
    """The table of the Kaggle competition inside torchxrayvision, where that is installed."""
    try:
        return bundled_file("vindr", "torchxrayvision", "data/vinbigdata-train.csv.gz")
    except UserError:
        return None


def tables(options: Mapping[str, Any], root: Path) -> list[Path]:
    """The files that the index is made of."""
    splits = choices(
        "vindr", "splits", choose("vindr", options, OPTIONS)["splits"], ("train", "test")
    )
    kaggle = _kaggle_file(root) or shipped()
    official = [root / "annotations" / f"image_labels_{split}.csv" for split in splits]
    return [*official, *([kaggle] if kaggle else [])]


def _layout(root: Path, wanted: str, splits: list[str]) -> str:
    """The layout that is there; with nothing there, what the shipped table suffices for."""
    if wanted == "auto":
        official = (root / "annotations").is_dir()
        usable = _kaggle_file(root) or (splits == ["train"] and shipped())
        wanted = "kaggle" if usable and not official else "physionet"
    if wanted == "kaggle" and "test" in splits:
        raise UserError(
            "data set 'vindr': option 'splits' asks for test, which has no labels in the Kaggle "
            f"layout: set splits: [train], or take the release on PhysioNet; {HELP}"
        )
    return wanted


def _kaggle_file(root: Path) -> Path | None:
    files = (root / name for name in ("train.csv", "train.csv.gz"))
    return next((file for file in files if file.is_file()), None)


def _rows(root: Path, split: str, layout: str, rule: str) -> pl.DataFrame:
    """The index rows of one split."""
    counts = votes(readings(root, split, layout))
    labeled = set(labelmaps.read("vindr").values())
    folder = str(root / split) + os.sep
    return counts.select(
        "image",
        "readers",
        path=pl.lit(folder) + pl.col("image") + ".dicom",
        group="image",
        order=pl.lit(None, dtype=pl.Int32),
        domain=pl.lit("vindr"),
        split=pl.lit(split),
        **{
            name: settled(pl.col(name), pl.col(f"{name}:readers"), rule)
            if name in labeled
            else pl.lit(None, dtype=pl.Int8)
            for name in (*CLASSES, MERGED)
        },
    )


def _by_class(seen: Mapping[str, pl.Expr]) -> list[pl.Expr]:
    """Labels joined to classes: one that stands for several labels is there if any of them is."""
    classes: dict[str, list[pl.Expr]] = {}
    for label, name in labelmaps.read("vindr").items():
        classes.setdefault(name, []).append(seen[label])
    return [pl.max_horizontal(parts).max().alias(name) for name, parts in classes.items()]


def _boxes(file: Path) -> pl.DataFrame:
    """Readings from the Kaggle table: a reader who drew a class at least once sees it."""
    table = read(file, ("image_id", "class_name", "rad_id"), HELP)
    labels = labelmaps.read("vindr")
    seen = {label: (pl.col("class_name") == label).cast(pl.Int8) for label in labels}
    return table.group_by(image="image_id", reader="rad_id").agg(_by_class(seen))


def _marks(file: Path) -> pl.DataFrame:
    """Readings from a PhysioNet table, which has one row per reader, or one for the consensus."""
    labels = labelmaps.read("vindr")
    table = read(file, ("image_id", *labels), HELP)
    column = next((name for name in READER_COLUMNS if name in table.columns), None)
    reader = pl.col(column) if column else pl.lit("consensus")
    seen = {label: _marked(table, label, file) for label in labels}
    return table.group_by(image="image_id", reader=reader).agg(_by_class(seen))


def _marked(table: pl.DataFrame, label: str, file: Path) -> pl.Expr:
    """A column's marks as 0, 1 or null; anything else is a mistake in the file."""
    number = pl.col(label).cast(pl.Float64, strict=False)
    wrong = table.filter(pl.col(label).is_not_null() & ~number.is_in([0.0, 1.0]).fill_null(False))
    if len(wrong):
        raise UserError(
            f"{file}: {label} is '{wrong[label][0]}' for image '{wrong['image_id'][0]}'; "
            "expected 0 or 1"
        )
    return number.cast(pl.Int8)
