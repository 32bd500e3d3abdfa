"""ImageNet validation (ILSVRC 2012): 50,000 photographs, 50 of each of 1,000 classes.

Three layouts are in circulation: the official one (``ILSVRC2012_val_00000001.JPEG`` and on, labels
in the development kit, whose class ids are not in the order of the WordNet ids), one folder per
class (``val/<wnid>/*.JPEG``), and Kaggle's (flat, labels in ``LOC_val_solution.csv``).
Russakovsky et al., "ImageNet large scale visual recognition challenge", IJCV 2015.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from stamp.config.labels.imagenet_classes import number_of, real_labels
from stamp.core.errors import UserError
from stamp.data.adapter_options import check_count, choice, choose, switch
from stamp.data.imagenet_folders import (
    IMAGES,
    PER_CLASS,
    check_whole,
    class_folders,
    has_class_folders,
    hashes,
    not_there,
)
from stamp.data.label_tables import read

HELP = (
    "ImageNet needs an account: from image-net.org/challenges/LSVRC/2012 unpack "
    "ILSVRC2012_img_val.tar into val/ of the data set's folder and ILSVRC2012_devkit_t12.tar.gz "
    "beside it; val/<wnid>/*.JPEG will do as well, and so will ILSVRC/Data/CLS-LOC/val/ with "
    "LOC_val_solution.csv of kaggle.com/competitions/imagenet-object-localization-challenge"
)
OPTIONS: dict[str, Any] = {
    "layout": "auto",
    "calibration_per_class": 2,
    "real": False,
    "partial": False,
}
LAYOUTS = ("auto", "devkit", "folders", "kaggle")
PLACES = ("val", "ILSVRC2012_img_val", "ILSVRC/Data/CLS-LOC/val", ".")
DEVKIT = ("ILSVRC2012_devkit_t12/data", ".")
TRUTH = "ILSVRC2012_validation_ground_truth.txt"
META = "meta.mat"
SOLUTION = "LOC_val_solution.csv"
NAME = "ILSVRC2012_val_"
_ZIP = "imagenet-object-localization-challenge.zip"
_UNZIP = f"unzip -q {_ZIP} {SOLUTION} 'ILSVRC/Data/CLS-LOC/val/*'"
IMAGE_ARCHIVES = {
    "ILSVRC2012_img_val.tar": "mkdir -p val && tar -xf ILSVRC2012_img_val.tar -C val",
    _ZIP: _UNZIP,
}
LABEL_ARCHIVES = {
    "ILSVRC2012_devkit_t12.tar.gz": "tar -xzf ILSVRC2012_devkit_t12.tar.gz",
    _ZIP: _UNZIP,
}


def index(options: Mapping[str, Any], root: Path, seed: int) -> pl.DataFrame:
    """The index of all images, by name: ``group`` is the WordNet id, ``label`` its class number.

    The split of a class is by a hash of seed and image: ``calibration_per_class`` images are
    ``calibration``, the rest is ``test``. ``real: true`` adds ``accepted``, the ReaL labels with
    the original one first where it is among them, of which ``label`` is the first; an image
    without any has neither, and is taken for calibration last. The whole set has 50,000 images;
    ``partial: true`` takes those that are there.
    """
    chosen = choose("imagenet", options, OPTIONS)
    layout = choice("imagenet", "layout", chosen["layout"], LAYOUTS)
    most = PER_CLASS - 1
    held = check_count("imagenet", "calibration_per_class", chosen["calibration_per_class"], most)
    real = switch("imagenet", "real", chosen["real"])
    partial = switch("imagenet", "partial", chosen["partial"])
    layout = _layout(root) if layout == "auto" else layout
    rows = _folders(root) if layout == "folders" else _flat(root, layout, partial)
    check_whole("imagenet", root, len(rows), IMAGES, partial, HELP)
    rows = rows.with_columns(
        label=pl.col("group").replace_strict(number_of(), return_dtype=pl.Int16)
    )
    rows = _with_real(rows) if real else rows
    return _split(rows, held, seed).select(
        "image",
        "path",
        "group",
        order=pl.lit(None, dtype=pl.Int32),
        domain=pl.lit("imagenet"),
        split="split",
        label="label",
        **({"accepted": pl.col("accepted")} if real else {}),
    )


def _layout(root: Path) -> str:
    """The layout that is there; folders first, since their labels need no other file."""
    if any(has_class_folders(root / place) for place in PLACES):
        return "folders"
    if (root / SOLUTION).is_file():
        return "kaggle"
    if any((root / place / TRUTH).is_file() for place in DEVKIT):
        return "devkit"
    if _image_folder(root) is None:
        raise _without_images(root, LABEL_ARCHIVES)
    raise _without_labels(root)


def _without_images(root: Path, also: Mapping[str, str]) -> UserError:
    what = "no validation images"
    return not_there("imagenet", root, what, {**IMAGE_ARCHIVES, **also}, HELP)


def _without_labels(root: Path) -> UserError:
    what = f"no labels of the validation images ({DEVKIT[0]}/{TRUTH} or {SOLUTION})"
    return not_there("imagenet", root, what, LABEL_ARCHIVES, HELP)


def _folders(root: Path) -> pl.DataFrame:
    """Class and path of the images in one folder per class."""
    for place in PLACES:
        folder = root / place
        if has_class_folders(folder):
            groups, names = class_folders("imagenet", folder, number_of())
            texts = {"group": pl.String, "name": pl.String}
            rows = pl.DataFrame({"group": groups, "name": names}, schema=texts)
            file = pl.concat_str("group", "name", separator="/")
            return rows.select(
                image=pl.col("name").str.replace(r"\.[^.]*$", ""),
                group="group",
                path=pl.lit(str(folder) + os.sep) + file,
            )
    raise _without_images(root, {})


def _flat(root: Path, layout: str, partial: bool) -> pl.DataFrame:
    """Class and path of the images in one folder; with ``partial`` only of those that are there."""
    labeled = _kaggle(root) if layout == "kaggle" else _devkit(root)
    folder = _image_folder(root)
    if folder is None:
        raise _without_images(root, {})
    ending = ".JPEG"
    if partial:
        names = [name for name in os.listdir(folder) if name.startswith(NAME)]
        there = pl.Series(names, dtype=pl.String)
        labeled = labeled.filter((pl.col("image") + ending).is_in(there.implode()))
    return labeled.with_columns(path=pl.lit(str(folder) + os.sep) + pl.col("image") + ending)


def _image_folder(root: Path) -> Path | None:
    """The first of the usual places in which a validation image lies itself."""
    for folder in (root / place for place in PLACES):
        if folder.is_dir():
            with os.scandir(folder) as entries:
                if any(entry.name.startswith(NAME) for entry in entries):
                    return folder
    return None


def tables(options: Mapping[str, Any], root: Path) -> list[Path]:
    """The files that the index is made of, beside the names of the images."""
    devkit = [root / place / name for place in DEVKIT for name in (TRUTH, META)]
    return [root / SOLUTION, *devkit]


def _kaggle(root: Path) -> pl.DataFrame:
    """The class of each image, the first word of its solution (boxes follow)."""
    file = root / SOLUTION
    table = read(file, ("ImageId", "PredictionString"), HELP)
    rows = table.select(
        image="ImageId", group=pl.col("PredictionString").str.extract(r"^(n\d{8})\b")
    )
    wrong = rows.filter(~pl.col("group").is_in(list(number_of())).fill_null(False))
    if len(wrong):
        raise UserError(f"{file}: image '{wrong['image'][0]}' has no class of ImageNet")
    return rows


def _devkit(root: Path) -> pl.DataFrame:
    """The class of each image: line k of the ground truth holds the class id of image k."""
    place = next((root / place for place in DEVKIT if (root / place / TRUTH).is_file()), None)
    if place is None:
        raise _without_labels(root)
    wnids = _wnids(place / META)
    text = pl.Series("id", (place / TRUTH).read_text().split(), dtype=pl.String)
    ids = text.cast(pl.Int32, strict=False)
    known = ids.is_in(list(wnids)).fill_null(False)
    if not known.all():
        first = int((~known).arg_true()[0])
        raise UserError(
            f"{place / TRUTH}: line {first + 1} is '{text[first]}'; expected a class id, 1 to 1000"
        )
    number = pl.int_range(1, pl.len() + 1).cast(pl.String).str.zfill(8)
    return ids.to_frame().select(
        image=pl.lit(NAME) + number,
        group=pl.col("id").replace_strict(wnids, return_dtype=pl.String),
    )


def _wnids(file: Path) -> dict[int, str]:
    """The WordNet id of each class id of the development kit; inner nodes are left out."""
    from scipy.io import loadmat

    if not file.is_file():
        raise UserError(f"{file}: no such file; it comes in ILSVRC2012_devkit_t12.tar.gz")
    try:
        synsets = loadmat(file, squeeze_me=True)["synsets"]
        pairs = zip(synsets["ILSVRC2012_ID"].tolist(), synsets["WNID"].tolist(), strict=True)
        found = {int(number): str(wnid) for number, wnid in pairs}
    except Exception as error:  # whatever a damaged file makes the reader raise
        raise UserError(
            f"{file}: can't be read as the development kit's table of classes "
            f"({type(error).__name__}); unpack ILSVRC2012_devkit_t12.tar.gz again"
        ) from None
    known = number_of()
    leaves = {number: wnid for number, wnid in found.items() if wnid in known}
    if len(set(leaves.values())) != len(known):
        raise UserError(
            f"{file}: names {len(set(leaves.values()))} of the {len(known)} classes of ImageNet; "
            "unpack ILSVRC2012_devkit_t12.tar.gz again"
        )
    return leaves


def _with_real(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with ``accepted`` and its first as ``label``, null where there is no ReaL label."""
    lists = pl.DataFrame({"accepted": real_labels()}, schema={"accepted": pl.List(pl.Int16)})
    lists = lists.with_columns(number=pl.int_range(1, pl.len() + 1, dtype=pl.Int32))
    number = pl.col("image").str.extract(rf"^{NAME}(\d{{8}})$").cast(pl.Int32)
    rows = rows.with_columns(number=number).join(
        lists, on="number", how="left", maintain_order="left"
    )
    wrong = rows.filter(pl.col("accepted").is_null())
    if len(wrong):
        raise UserError(
            f"data set 'imagenet': image '{wrong['image'][0]}' is not named {NAME}00000001 to "
            f"{NAME}{len(lists):08d}, so its ReaL labels are not known: set option 'real: false'"
        )
    first = pl.concat_list("label", "accepted").list.unique(maintain_order=True)
    own = pl.col("accepted").list.contains(pl.col("label"))
    some = pl.col("accepted").list.len() > 0
    return rows.with_columns(
        accepted=pl.when(own).then(first).when(some).then("accepted")
    ).with_columns(label=pl.col("accepted").list.first())


def _split(rows: pl.DataFrame, held: int, seed: int) -> pl.DataFrame:
    """The rows by name with ``split``: of each class, the first by hash calibrate."""
    sizes = rows.group_by("group").len().sort("len", "group")
    if sizes["len"][0] <= held:
        raise UserError(
            f"data set 'imagenet': class {sizes['group'][0]} has {sizes['len'][0]} images, too few "
            f"for option 'calibration_per_class: {held}' and a test image"
        )
    place = pl.Series("place", hashes(rows["image"], str(seed)), dtype=pl.UInt64)
    turn = pl.int_range(pl.len()).over("group")
    return (
        rows.with_columns(place, unlabeled=pl.col("label").is_null())
        .sort("unlabeled", "place", "image")
        .with_columns(
            split=pl.when(turn < held).then(pl.lit("calibration")).otherwise(pl.lit("test"))
        )
        .sort("image")
    )
