"""NIH ChestX-ray14: 112,120 frontal chest X-rays of 30,805 patients, labels mined from reports.

Two numberings of a patient's images are in circulation. In the table of 2017 the follow-up number
is the one in the file name; that of 2020 is chronological and differs in 21.5 % of the rows. Copies
named as the one can carry the other's, so which it is is read from the content.
Wang et al., "ChestX-ray8: hospital-scale chest X-ray database and benchmarks", CVPR 2017.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from stamp.config.labels import label_maps as labelmaps
from stamp.core.errors import UserError, suggest
from stamp.data.adapter_options import choice, choose
from stamp.data.label_tables import CLASSES, NONE, read, shipped
from stamp.data.splits import places

HELP = (
    "NIH ChestX-ray14 is open: from nihcc.app.box.com/v/ChestXray-NIHCC put "
    "Data_Entry_2017_v2020.csv, train_val_list.txt and test_list.txt into the data set's folder "
    "and unpack images_001.tar.gz to images_012.tar.gz there, which gives images/*.png"
)
OPTIONS: dict[str, Any] = {
    "metadata": None,
    "split": "official",
    "val": 0.1,
    "calibration": 0.05,
    "numbering": "auto",
    "images": "images",
}
TABLES = ("Data_Entry_2017_v2020.csv", "Data_Entry_2017.csv")
LISTS = {"train_val": "train_val_list.txt", "test": "test_list.txt"}
TEST_SHARE = 0.2
EXTRA = ("position", "age", "sex", "numbering")

_NEEDED = ("Image Index", "Finding Labels", "Follow-up #", "Patient ID", "Patient Age")


def index(options: Mapping[str, Any], root: Path, seed: int) -> pl.DataFrame:
    """The index of all images, by file name.

    ``group`` is the patient, ``order`` the follow-up number. Of the patients of the official
    ``train_val`` list, a share goes to ``val`` and another to ``calibration``; the official test
    images are ``test``. Extra columns: ``position`` (PA, AP), ``age`` in years, ``sex``, and
    ``numbering``, which says whose follow-up numbers ``order`` holds.
    """
    chosen = choose("nih", options, OPTIONS)
    how = choice("nih", "split", chosen["split"], ("official", "patients"))
    wanted = choice("nih", "numbering", chosen["numbering"], ("auto", "v2020", "2017"))
    shares = _shares(chosen)
    file = _table_file(root, chosen["metadata"])
    table = _typed(read(file, _NEEDED, HELP), file)
    table = _numbered(table, wanted, file)
    part = _official(table, root) if how == "official" else _by_patient(table, seed)
    table = _split(table.with_columns(part), shares, seed)
    folder = str(root / str(chosen["images"])) + os.sep
    return (
        table.join(_findings(table["findings"], file), on="findings", maintain_order="left")
        .with_columns(path=pl.lit(folder) + pl.col("image"), domain=pl.lit("nih"))
        .select("image", "path", "group", "order", "domain", "split", *CLASSES, *EXTRA)
        .sort("image")
    )


def tables(options: Mapping[str, Any], root: Path) -> list[Path]:
    """The files that the index is made of."""
    metadata = choose("nih", options, OPTIONS)["metadata"]
    return [_table_file(root, metadata), *(root / name for name in LISTS.values())]


def _table_file(root: Path, metadata: Any) -> Path:
    """The table that the user names, or the first that is there, torchxrayvision's copy last."""
    if metadata is not None:
        return root / str(metadata)
    for name in TABLES:
        for file in (root / name, root / f"{name}.gz"):
            if file.is_file():
                return file
    return shipped(f"{TABLES[0]}.gz") or root / TABLES[0]


def _shares(chosen: Mapping[str, Any]) -> dict[str, float]:
    """The shares of the train_val patients that are not trained on."""
    shares = {name: chosen[name] for name in ("calibration", "val")}
    for name, value in shares.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1:
            raise UserError(
                f"data set 'nih': option '{name}' is {value!r}; expected a share from 0 to below 1"
            )
    if sum(shares.values()) >= 1:
        raise UserError("data set 'nih': options 'val' and 'calibration' leave no patient to train")
    return shares


def _typed(table: pl.DataFrame, file: Path) -> pl.DataFrame:
    """The columns that matter, typed; both versions' ways of writing them are understood."""
    sex = next((name for name in ("Patient Sex", "Patient Gender") if name in table.columns), None)
    age, unit = (pl.col("Patient Age").str.extract(r"^(\d+)([YMD]?)$", k) for k in (1, 2))
    absent = pl.lit(None, dtype=pl.String)
    typed = table.select(
        image="Image Index",
        findings="Finding Labels",
        order=pl.col("Follow-up #").cast(pl.Int32, strict=False),
        named=pl.col("Image Index").str.extract(r"_(\d+)\.\w+$").cast(pl.Int32, strict=False),
        group=pl.col("Patient ID").cast(pl.Int64, strict=False).cast(pl.String),
        position=pl.col("View Position") if "View Position" in table.columns else absent,
        age=age.cast(pl.Int16, strict=False)
        // pl.when(unit == "M").then(12).when(unit == "D").then(365).otherwise(1).cast(pl.Int16),
        sex=pl.col(sex) if sex else absent,
    )
    wrong = typed.filter(pl.any_horizontal(pl.col("image", "findings", "order", "group").is_null()))
    if len(wrong):
        raise UserError(
            f"{file}: {len(wrong)} rows lack an image, findings, a follow-up number or a patient, "
            f"the first at image '{wrong['image'][0]}'"
        )
    return typed


def _numbered(table: pl.DataFrame, wanted: str, file: Path) -> pl.DataFrame:
    """The table with follow-up numbers of one kind in ``order``, and which kind in ``numbering``.

    A table whose follow-up numbers are all those of the file names carries the numbering of 2017.
    """
    held = "2017" if table["order"].eq_missing(table["named"]).all() else "v2020"
    if wanted == "v2020" and held == "2017":
        raise UserError(
            f"{file}: carries the follow-up numbers of 2017 (those of the file names), "
            "and option 'numbering' asks for v2020: take Data_Entry_2017_v2020.csv"
        )
    if wanted == "2017":
        unnamed = table.filter(pl.col("named").is_null())
        if len(unnamed):
            raise UserError(f"{file}: the name of image '{unnamed['image'][0]}' has no number")
        table, held = table.with_columns(order="named"), "2017"
    return table.with_columns(numbering=pl.lit(held))


def _findings(texts: pl.Series, file: Path) -> pl.DataFrame:
    """A 0/1 column a class for each distinct text such as ``Effusion|Mass``."""
    classes = labelmaps.read("nih")
    found = {}
    for text in sorted(texts.unique()):
        names = {name.strip() for name in text.split("|")} - {NONE}
        for name in sorted(names - set(classes)):
            hint = suggest(name, [*classes, NONE])
            raise UserError(f"{file}: unknown finding '{name}': {hint}")
        present = {classes[name] for name in names}
        found[text] = [int(name in present) for name in CLASSES]
    schema = dict.fromkeys(CLASSES, pl.Int8)
    return pl.DataFrame(list(found.values()), schema=schema, orient="row").with_columns(
        findings=pl.Series(list(found), dtype=pl.String)
    )


def _official(table: pl.DataFrame, root: Path) -> pl.Series:
    """``train_val`` or ``test`` for each image, by the official lists, which share no patient."""
    lists = pl.concat([_list(root / name, part) for part, name in LISTS.items()])
    both = lists.filter(pl.col("image").is_duplicated())
    if len(both):
        raise UserError(f"{root}: the official lists name image '{both['image'][0]}' twice")
    parts = table.join(lists, on="image", how="left", maintain_order="left")
    left = parts.filter(pl.col("part").is_null())
    if len(left):
        raise UserError(
            f"{root}: {len(left)} images of the table are in neither {' nor '.join(LISTS.values())}"
            f", the first is '{left['image'][0]}'"
        )
    patients = parts.group_by("group").agg(pl.col("part").n_unique()).filter(pl.col("part") > 1)
    if len(patients):
        raise UserError(
            f"{root}: {len(patients)} patients are in both {' and '.join(LISTS.values())}, "
            f"the first is {patients['group'].sort()[0]}: these are not the official lists"
        )
    return parts["part"]


def _list(file: Path, part: str) -> pl.DataFrame:
    """The images that an official list names."""
    if not file.is_file():
        raise UserError(
            f"{file}: no such file; {HELP}; without the official lists, option 'split: patients' "
            "splits the patients by a hash"
        )
    names = [line.strip() for line in file.read_text().splitlines()]
    return pl.DataFrame({"image": [name for name in names if name]}).with_columns(part=pl.lit(part))


def _by_patient(table: pl.DataFrame, seed: int) -> pl.Series:
    """``train_val`` or ``test`` for each image: a fifth of the patients, by hash, is tested on."""
    place = places(table["group"], f"{seed}:test")
    part = pl.when(pl.col("place") < TEST_SHARE).then(pl.lit("test")).otherwise(pl.lit("train_val"))
    return (
        table.join(place, on="group", how="left", maintain_order="left")
        .select(part.alias("part"))
        .to_series()
    )


def _split(table: pl.DataFrame, shares: Mapping[str, float], seed: int) -> pl.DataFrame:
    """The table with ``split``: the patients of ``train_val`` are divided by their hash."""
    place, low = pl.col("place"), shares["calibration"]
    inner = (
        pl.when(place < low)
        .then(pl.lit("calibration"))
        .when(place < low + shares["val"])
        .then(pl.lit("val"))
        .otherwise(pl.lit("train"))
    )
    split = pl.when(pl.col("part") == "test").then(pl.lit("test")).otherwise(inner)
    found = places(table["group"], str(seed))
    return table.join(found, on="group", how="left", maintain_order="left").with_columns(
        split=split
    )
