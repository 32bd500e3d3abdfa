"""RSNA Pneumonia Detection Challenge 2018: 26,684 labeled images, one class.

These are images of NIH ChestX-ray14 that radiologists read again: another labeling, not another
hospital. A model that was trained on NIH may have seen them, so those of NIH's training lists are
left out where the challenge's mapping says which they are. ``Target`` marks lung opacities that
suggest pneumonia. Kaggle's training part is the only labeled one; here it is the split ``test``.
Shih et al., "Augmenting the NIH chest radiograph dataset with expert annotations of possible
pneumonia", Radiology: Artificial Intelligence 2019.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from stamp.config.labels import label_maps as labelmaps
from stamp.core.errors import UserError
from stamp.data.adapter_options import bundled_file, choice, choices, choose
from stamp.data.adapters.nih import LISTS
from stamp.data.label_tables import CLASSES, read

HELP = (
    "RSNA Pneumonia is on Kaggle: accept the rules of the competition at "
    "kaggle.com/competitions/rsna-pneumonia-detection-challenge and put stage_2_train_images/, "
    "stage_2_train_labels.csv and stage_2_detailed_class_info.csv into the data set's folder"
)
LABELS = "stage_2_train_labels.csv"
DETAILS = "stage_2_detailed_class_info.csv"
IMAGES = "stage_2_train_images"
MAPPING = "pneumonia-challenge-dataset-mappings_2018.json"
OPTIONS: dict[str, Any] = {
    "without": ["train", "val"],
    "mapping": None,
    "nih_lists": None,
    "negatives": "all",
}
# The official lists don't part train from val: that is the study's choice, from its seed.
LIST_OF = {"train": "train_val", "val": "train_val", "calibration": "train_val"}
SPLITS = (*LIST_OF, *LISTS)
UNKNOWN, NEITHER = "unknown", "none"


def index(options: Mapping[str, Any], root: Path, seed: int) -> pl.DataFrame:
    """The index of the images that are no training images of NIH, by image id.

    ``without`` names the NIH splits whose images are left out. Which those are is known from
    ``mapping``, the challenge's own JSON file, and ``nih_lists``, a folder with NIH's official
    lists; both are looked for in the data set's folder too. The lists have ``train_val`` and
    ``test``: train, val and calibration all stand for the former. Without the files all images stay
    unless ``without`` was set. ``negatives: normal`` leaves out images that are neither positive
    nor normal. Extra columns: ``nih`` (NIH's name of the image) and ``overlap``: train_val or test,
    none (no NIH image) or unknown. ``group`` is NIH's patient where that is known.
    """
    chosen = choose("rsna", options, OPTIONS)
    without = chosen["without"]
    without = choices("rsna", "without", without, SPLITS) if without != [] else []
    negatives = choice("rsna", "negatives", chosen["negatives"], ("all", "normal"))
    rows = _targets(labels_file(root))
    if negatives == "normal":
        rows = _with_normal_negatives(rows, root)
    rows = _with_origin(rows, root, chosen)
    if "without" in options and without and rows["overlap"].eq(UNKNOWN).all():
        raise UserError(
            f"data set 'rsna': option 'without' needs {MAPPING} (option 'mapping') and NIH's "
            f"{' and '.join(LISTS.values())} (option 'nih_lists'); 'without: []' keeps all images"
        )
    left_out = [LIST_OF.get(split, split) for split in without]
    return _indexed(rows.filter(~pl.col("overlap").is_in(left_out)), root)


def shipped() -> Path | None:
    """The table of labels inside torchxrayvision, where that is installed."""
    try:
        return bundled_file("rsna", "torchxrayvision", f"data/kaggle_{LABELS}.zip")
    except UserError:
        return None


def tables(options: Mapping[str, Any], root: Path) -> list[Path]:
    """The files that the index is made of."""
    chosen = choose("rsna", options, OPTIONS)
    mapping = root / MAPPING if chosen["mapping"] is None else Path(str(chosen["mapping"]))
    folder = root if chosen["nih_lists"] is None else Path(str(chosen["nih_lists"]))
    lists = [folder / name for name in LISTS.values()]
    return [labels_file(root), root / DETAILS, mapping, *lists]


def labels_file(root: Path) -> Path:
    """The table of labels in the folder, plain or zipped, else the shipped one."""
    files = (root / LABELS, root / f"{LABELS}.zip", shipped())
    return next((file for file in files if file is not None and file.is_file()), root / LABELS)


def boxes(file: Path) -> pl.DataFrame:
    """The table of labels as it is: one row per box, or one row without a box."""
    needed = ("patientId", *labelmaps.read("rsna"))
    return _unzipped(file, needed) if file.suffix == ".zip" else read(file, needed, HELP)


def _unzipped(file: Path, needed: Sequence[str]) -> pl.DataFrame:
    """The table in a zip file, which Kaggle makes of single downloads."""
    try:
        with zipfile.ZipFile(file) as archive:
            table = pl.read_csv(io.BytesIO(archive.read(LABELS)), infer_schema=False)
    except (zipfile.BadZipFile, KeyError, pl.exceptions.PolarsError) as error:
        raise UserError(f"{file}: can't be read as {LABELS} in a zip file: {error}") from None
    for name in needed:
        if name not in table.columns:
            raise UserError(f"{file}: {LABELS} in it has no column '{name}'")
    return table


def _targets(file: Path) -> pl.DataFrame:
    """A row an image: the greatest mark of its rows for each class."""
    table = boxes(file)
    labels = labelmaps.read("rsna")
    for label in labels:
        wrong = table.filter(~pl.col(label).is_in(["0", "1"]).fill_null(False))
        if len(wrong):
            raise UserError(
                f"{file}: {label} is '{wrong[label][0]}' for image '{wrong['patientId'][0]}'; "
                "expected 0 or 1"
            )
    return (
        table.group_by(image="patientId")
        .agg(pl.col(label).cast(pl.Int8).max().alias(name) for label, name in labels.items())
        .sort("image")
    )


def _with_normal_negatives(rows: pl.DataFrame, root: Path) -> pl.DataFrame:
    """The positive images and those that the detailed table calls normal."""
    details = read(root / DETAILS, ("patientId", "class"), HELP)
    absent = rows.join(details, left_on="image", right_on="patientId", how="anti")
    if len(absent):
        raise UserError(f"{root / DETAILS}: no row for image '{absent['image'][0]}'")
    normal = details.filter(pl.col("class") == "Normal")["patientId"].unique()
    positive = pl.any_horizontal(pl.col(list(labelmaps.read("rsna").values())) == 1)
    return rows.filter(positive | pl.col("image").is_in(normal.to_list()))


def _with_origin(rows: pl.DataFrame, root: Path, chosen: Mapping[str, Any]) -> pl.DataFrame:
    """The rows with ``nih`` and ``overlap``, as far as the mapping and the lists are there."""
    mapping = root / MAPPING if chosen["mapping"] is None else Path(str(chosen["mapping"]))
    folder = root if chosen["nih_lists"] is None else Path(str(chosen["nih_lists"]))
    if chosen["mapping"] is None and not mapping.is_file():
        names = pl.lit(None, dtype=pl.String)
        return rows.with_columns(nih=names, overlap=pl.lit(UNKNOWN))
    rows = rows.join(_mapped(mapping), on="image", how="left", maintain_order="left")
    lists = [folder / name for name in LISTS.values()]
    asked = chosen["nih_lists"] is not None and chosen["without"] != []
    if not asked and not all(file.is_file() for file in lists):
        return rows.with_columns(overlap=pl.lit(UNKNOWN))
    listed = pl.concat([_listed(file, part) for part, file in zip(LISTS, lists, strict=True)])
    overlap = pl.when(pl.col("nih").is_null()).then(pl.lit(NEITHER))
    return rows.join(listed, on="nih", how="left", maintain_order="left").with_columns(
        overlap=overlap.otherwise(pl.col("part").fill_null(UNKNOWN))
    )


def _mapped(file: Path) -> pl.DataFrame:
    """``image`` and the ``nih`` image that it is, from the challenge's mapping."""
    if not file.is_file():
        raise UserError(f"{file}: no such file; {MAPPING} is on the challenge's page of rsna.org")
    try:
        entries = json.loads(file.read_text())
        pairs = {entry["subset_img_id"]: entry["img_id"] for entry in entries}
    except (ValueError, TypeError, KeyError, UnicodeDecodeError):
        raise UserError(
            f"{file}: expected a list of records with 'img_id' and 'subset_img_id'"
        ) from None
    columns = {"image": list(pairs), "nih": list(pairs.values())}
    return pl.DataFrame(columns, schema={"image": pl.String, "nih": pl.String})


def _listed(file: Path, part: str) -> pl.DataFrame:
    """The images that an official list of NIH names."""
    if not file.is_file():
        raise UserError(
            f"{file}: no such file; it comes with the images of NIH ChestX-ray14, "
            "and 'without: []' does without it"
        )
    names = {line.strip() for line in file.read_text().splitlines()} - {""}
    return pl.DataFrame({"nih": sorted(names)}, schema={"nih": pl.String}).with_columns(
        part=pl.lit(part)
    )


def _indexed(rows: pl.DataFrame, root: Path) -> pl.DataFrame:
    """The rows with all columns of an index."""
    folder = str(root / IMAGES) + os.sep
    patient = pl.col("nih").str.extract(r"^(\d+)_").cast(pl.Int64, strict=False).cast(pl.String)
    absent = pl.lit(None, dtype=pl.Int8)
    return rows.select(
        "image",
        path=pl.lit(folder) + pl.col("image") + ".dcm",
        group=pl.coalesce(patient, "image"),
        order=pl.lit(None, dtype=pl.Int32),
        domain=pl.lit("rsna"),
        split=pl.lit("test"),
        **{name: pl.col(name) if name in rows.columns else absent for name in CLASSES},
        nih="nih",
        overlap="overlap",
    )
