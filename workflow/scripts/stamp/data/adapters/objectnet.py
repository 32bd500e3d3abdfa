"""ObjectNet: 50,273 photographs of 313 kinds of household objects in unusual places and poses.

113 of the kinds overlap with ImageNet, 104 with one class and nine with two or three. Which they
are is resolved from the archive's own ``mappings``: an ObjectNet label names ImageNet classes by
their words, the words are a line of ``imagenet_to_label_2012_v2`` (by the ids of the challenge of
2012), and ``pytorch_to_imagenet_2012_id.json`` gives the line of each class in the order of sorted
wnids, which is torchvision's and timm's. Names are compared whole: "nail" is no part of "snail".

Every image has a red border, and cutting off one pixel leaves some of it. That is not done here:
``border: 2`` in config/datasets.yaml cuts two pixels off before anything else. The licence forbids
tuning the parameters of any model on these images.
Barbu et al., "ObjectNet: a large-scale bias-controlled dataset for pushing the limits of object
recognition models", NeurIPS 2019.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from stamp.config.labels.imagenet_classes import number_of
from stamp.core.errors import UserError, suggest
from stamp.data.adapter_options import choose, switch

HELP = (
    "ObjectNet is open: put https://objectnet.dev/downloads/objectnet-1.0.zip (190 GB) into the "
    "data set's folder and unpack it there by 7z x -pobjectnetisatestset objectnet-1.0.zip or "
    "unzip -P objectnetisatestset objectnet-1.0.zip, which gives objectnet-1.0/images and "
    "objectnet-1.0/mappings; Python alone would decrypt it for days"
)
OPTIONS: dict[str, Any] = {"only_overlap": True}
FOLDER = "objectnet-1.0"
LABELS = "folder_to_objectnet_label.json"
CLASSES = "objectnet_to_imagenet_1k.json"
LINES = "imagenet_to_label_2012_v2"
NUMBERS = "pytorch_to_imagenet_2012_id.json"


def tables(options: Mapping[str, Any], root: Path) -> list[Path]:
    """The files that the index is made of, beside the names of the images."""
    names = (LABELS, CLASSES, LINES, NUMBERS)
    homes = (root, root / FOLDER)
    return [home / "mappings" / name for home in homes for name in names]


def index(options: Mapping[str, Any], root: Path, seed: int) -> pl.DataFrame:
    """The index of the images whose kind is an ImageNet class, by folder and file name.

    ``accepted`` are the numbers of all ImageNet classes that the kind stands for, in order;
    ``label`` is the first of them and ``group`` ObjectNet's label. With ``only_overlap: false`` the
    images of all kinds stay, those of no ImageNet class with null labels.
    """
    chosen = choose("objectnet", options, OPTIONS)
    only = switch("objectnet", "only_overlap", chosen["only_overlap"])
    home = root / FOLDER if (root / FOLDER).is_dir() or not (root / "mappings").is_dir() else root
    labels = _mapping(home / "mappings" / LABELS)
    classes = overlap(home / "mappings")
    for label in classes:
        if label not in labels.values():
            raise UserError(f"{home / 'mappings' / LABELS}: no folder has the label '{label}'")
    kept = {folder: label for folder, label in labels.items() if not only or label in classes}
    parts = [_images(home / "images", folder) for folder in sorted(kept)]
    kinds = pl.DataFrame(
        {
            "folder": list(kept),
            "group": list(kept.values()),
            "accepted": [classes.get(label) for label in kept.values()],
        },
        schema={"folder": pl.String, "group": pl.String, "accepted": pl.List(pl.Int16)},
    )
    return (
        pl.concat(parts)
        .join(kinds, on="folder", how="left", maintain_order="left")
        .select(
            "image",
            "path",
            "group",
            order=pl.lit(None, dtype=pl.Int32),
            domain=pl.lit("objectnet"),
            split=pl.lit("test"),
            label=pl.col("accepted").list.first(),
            accepted="accepted",
        )
        .sort("image")
    )


def overlap(mappings: Path) -> dict[str, list[int]]:
    """The class numbers of every ObjectNet label that overlaps with ImageNet."""
    names = _mapping(mappings / CLASSES)
    numbers = _mapping(mappings / NUMBERS, int)
    file = mappings / LINES
    if not file.is_file():
        raise UserError(f"{file}: no such file; {HELP}")
    lines = [line.strip() for line in file.read_text().splitlines()]
    try:
        places = {line: int(number) for number, line in numbers.items()}
    except ValueError:
        raise UserError(f"{mappings / NUMBERS}: expected class numbers as names") from None
    whole = sorted(number_of().values())
    if len(lines) != len(whole) or sorted(places) != whole or sorted(places.values()) != whole:
        raise UserError(
            f"{mappings / NUMBERS}: expected {len(whole)} classes, one for each line of {LINES}; "
            f"found {len(numbers)} classes and {len(lines)} lines"
        )
    return resolved(names, [places[line] for line in whole], lines, mappings / CLASSES)


def resolved(
    names: Mapping[str, str], numbers: Sequence[int], lines: Sequence[str], where: Path
) -> dict[str, list[int]]:
    """The sorted class numbers of each label from its classes' words, "one class; another".

    ``lines`` are the words of all classes and ``numbers`` the class numbers of the lines.
    """
    known: dict[str, list[int]] = {}
    for number, line in zip(numbers, lines, strict=True):
        known.setdefault(line, []).append(number)
    found: dict[str, list[int]] = {}
    for label, text in names.items():
        for words in (part.strip() for part in text.split(";")):
            if words not in known:
                raise UserError(f"{where}: '{label}': no class '{words}': {suggest(words, known)}")
            if len(known[words]) > 1:
                raise UserError(f"{where}: '{label}': '{words}' is the name of several classes")
            found.setdefault(label, []).extend(known[words])
    return {label: sorted(set(numbers)) for label, numbers in found.items()}


def _mapping(file: Path, kind: type = str) -> dict[str, Any]:
    """A JSON object of the archive's mappings, whose values are of one kind."""
    if not file.is_file():
        raise UserError(f"{file}: no such file; {HELP}")
    try:
        found = json.loads(file.read_text())
    except ValueError as error:
        raise UserError(f"{file}: can't be read as JSON: {error}") from None
    if not isinstance(found, dict) or not all(isinstance(one, kind) for one in found.values()):
        raise UserError(f"{file}: expected a JSON object whose values are of type {kind.__name__}")
    return found


def _images(images: Path, folder: str) -> pl.DataFrame:
    """The images of one kind; a kind without any is not unpacked."""
    where = images / folder
    listed = os.listdir(where) if where.is_dir() else []
    names = [name for name in listed if name.lower().endswith(".png") and name[0] != "."]
    if not names:
        raise UserError(f"{where}: no image; {HELP}")
    return pl.DataFrame({"file": names}).select(
        image=pl.lit(f"{folder}/") + pl.col("file").str.head(-len(".png")),
        path=pl.lit(str(where) + os.sep) + pl.col("file"),
        folder=pl.lit(folder),
    )
