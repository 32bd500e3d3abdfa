"""MIMIC-CXR-JPG: chest X-rays of Beth Israel Deaconess, with the true time of every study.

Labels are of studies, not of images: each image of a study carries them, and a study whose report
gave none is unlabeled. Dates are shifted by patient, intervals between them are true.
Johnson et al., "MIMIC-CXR-JPG, a large publicly available database of labeled chest radiographs",
2019.
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
from stamp.data.label_tables import BLANK, CLASSES, UNCERTAIN, labels, read

HELP = (
    "MIMIC-CXR-JPG needs a credentialed PhysioNet account: sign the agreement at "
    "physionet.org/content/mimic-cxr-jpg/2.1.0 and put mimic-cxr-2.0.0-metadata.csv.gz, "
    "mimic-cxr-2.0.0-split.csv.gz, mimic-cxr-2.0.0-chexpert.csv.gz (or -negbio.csv.gz, or "
    "mimic-cxr-2.1.0-test-set-labeled.csv) and files/ into the data set's folder, as with "
    "wget -r -N -c -np -nH --cut-dirs=3 --user NAME --ask-password "
    "https://physionet.org/files/mimic-cxr-jpg/2.1.0/"
)
OPTIONS: dict[str, Any] = {
    "labeler": "chexpert",
    "splits": ["test"],
    "views": ["AP", "PA"],
    "uncertain": "ignore",
    "blank": "zero",
    "classes": list(labelmaps.read("mimic_cxr").values()),
}
LABELERS = {"chexpert": "chexpert", "negbio": "negbio", "radiologist": "test-set-labeled"}
SPLITS = ("train", "validate", "test")

_TIME = ("StudyDate", "StudyTime")


def index(options: Mapping[str, Any], root: Path, seed: int) -> pl.DataFrame:
    """The index of the chosen splits and views: ``group`` is the patient, ``order`` true time.

    ``order`` is the place of the image among all of the patient's, by the study's date and time,
    whatever views are chosen. Seven classes are labeled, or those of ``classes`` alone; the others
    are null. Extra columns: ``study``, ``date`` (shifted by patient), ``position``.
    """
    chosen = choose("mimic_cxr", options, OPTIONS)
    labeler = choice("mimic_cxr", "labeler", chosen["labeler"], tuple(LABELERS))
    splits = choices("mimic_cxr", "splits", chosen["splits"], SPLITS)
    uncertain = choice("mimic_cxr", "uncertain", chosen["uncertain"], tuple(UNCERTAIN))
    blank = choice("mimic_cxr", "blank", chosen["blank"], tuple(BLANK))
    classes = choices("mimic_cxr", "classes", chosen["classes"], OPTIONS["classes"])
    images = _images(root)
    known = sorted({"AP", "PA", *images["position"].drop_nulls()})
    views = choices("mimic_cxr", "views", chosen["views"], known)
    images = images.filter(pl.col("split").is_in(splits), pl.col("position").is_in(views))
    studies = _studies(root, labeler, uncertain, blank)
    unread = [name for name in CLASSES if name not in classes]
    studies = studies.with_columns(pl.lit(None, dtype=pl.Int8).alias(name) for name in unread)
    fixed = ("image", "path", "group", "order", "domain", "split")
    return (
        images.join(studies, on="study", how="left", maintain_order="left")
        .with_columns(path=_path(root), domain=pl.lit("mimic"))
        .select(*fixed, *CLASSES, "study", "date", "position")
        .sort("group", "order")
    )


def tables(options: Mapping[str, Any], root: Path) -> list[Path]:
    """The files that the index is made of."""
    labeler = choose("mimic_cxr", options, OPTIONS)["labeler"]
    labels = LABELERS[choice("mimic_cxr", "labeler", labeler, tuple(LABELERS))]
    return [_file(root, name) for name in ("metadata", "split", labels)]


def _file(root: Path, name: str) -> Path:
    """The newest table of that name; version 2.1.0 has most tables under the name of 2.0.0."""
    found = [
        file for ending in ("csv.gz", "csv") for file in root.glob(f"mimic-cxr-2.*-{name}.{ending}")
    ]
    usual = f"2.1.0-{name}.csv" if name == LABELERS["radiologist"] else f"2.0.0-{name}.csv.gz"
    return max(found, key=lambda file: file.name, default=root / f"mimic-cxr-{usual}")


def _images(root: Path) -> pl.DataFrame:
    """All images with their place in the patient's time and their official split."""
    file = _file(root, "metadata")
    needed = ("dicom_id", "subject_id", "study_id", "ViewPosition", *_TIME)
    table = read(file, needed, HELP).select(
        image="dicom_id",
        group="subject_id",
        study="study_id",
        position="ViewPosition",
        date=pl.col("StudyDate").str.to_date("%Y%m%d", strict=False),
        time=pl.col("StudyTime").cast(pl.Float64, strict=False),
    )
    wrong = table.filter(pl.any_horizontal(pl.all().exclude("position").is_null()))
    if len(wrong):
        raise UserError(
            f"{file}: {len(wrong)} rows lack an id, a date or a time, "
            f"the first is of image '{wrong['image'][0]}'"
        )
    table = table.sort("group", "date", "time", "study", "image").with_columns(
        order=pl.int_range(pl.len(), dtype=pl.Int32).over("group")
    )
    return _with_split(table, _file(root, "split"))


def _with_split(table: pl.DataFrame, file: Path) -> pl.DataFrame:
    """The images with ``split``; one that the official split leaves out is a mistake."""
    parts = read(file, ("dicom_id", "split"), HELP).select(image="dicom_id", split="split")
    joined = table.join(parts, on="image", how="left", maintain_order="left")
    left = joined.filter(pl.col("split").is_null())
    if len(left):
        raise UserError(
            f"{file}: {len(left)} images of the metadata have no split, "
            f"the first is '{left['image'][0]}'"
        )
    return joined


def _studies(root: Path, labeler: str, uncertain: str, blank: str) -> pl.DataFrame:
    """The labels of each study that has a row in the labeler's table."""
    file = _file(root, LABELERS[labeler])
    classes = labelmaps.read("mimic_cxr")
    table = read(file, ("study_id", *classes), HELP)
    twice = table.filter(pl.col("study_id").is_duplicated())
    if len(twice):
        raise UserError(f"{file}: study '{twice['study_id'][0]}' stands twice")
    found = labels(table, classes, uncertain, blank, str(file))
    return found.insert_column(0, table["study_id"].alias("study"))


def _path(root: Path) -> pl.Expr:
    """``files/p10/p10000032/s50414267/<image>.jpg`` below the data set's folder."""
    place = str(root / "files") + os.sep
    patient = pl.lit("p") + pl.col("group")
    parts = [patient.str.slice(0, 3), patient, pl.lit("s") + pl.col("study"), pl.col("image")]
    return pl.lit(place) + pl.concat_str(parts, separator="/") + pl.lit(".jpg")
