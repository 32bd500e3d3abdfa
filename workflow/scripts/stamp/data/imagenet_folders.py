"""Trees of ImageNet images with one folder per class, as ImageNet, -A, -R and -C come."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from stamp.config.labels.imagenet_classes import classes, number_of, shipped
from stamp.core.errors import UserError, suggest
from stamp.data.adapter_options import choose, switch

IMAGES = 50_000
PER_CLASS = 50
SUFFIXES = (".jpeg", ".jpg", ".png")
TARGET_OPTIONS: dict[str, Any] = {"partial": False}


def has_class_folders(folder: Path) -> bool:
    """Whether a folder holds at least one that is named after a class."""
    if not folder.is_dir():
        return False
    known = set(number_of())
    with os.scandir(folder) as entries:
        return any(entry.name in known and entry.is_dir() for entry in entries)


def class_folders(
    dataset: str, folder: Path, known: Collection[str]
) -> tuple[list[str], list[str]]:
    """The class and the name of every image in ``folder/<class>/``, by class, then by name.

    A folder that is none of the ``known`` classes is a mistake; hidden ones and loose files are
    passed over.
    """
    with os.scandir(folder) as entries:
        found = sorted(
            entry.name
            for entry in entries
            if not entry.name.startswith((".", "__")) and entry.is_dir()
        )
    for name in found:
        if name not in known:
            raise UserError(
                f"data set '{dataset}': folder {folder / name} is named after none of its "
                f"{len(known)} classes: {_hint(name, known)}"
            )
    groups: list[str] = []
    names: list[str] = []
    for group in found:
        files = sorted(
            name for name in os.listdir(folder / group) if name.lower().endswith(SUFFIXES)
        )
        names += files
        groups += [group] * len(files)
    return groups, names


def _hint(name: str, known: Collection[str]) -> str:
    if name in number_of():
        return "it is another class of ImageNet"
    hint = suggest(name, known)
    return "WordNet ids like n01440764 are expected" if hint.startswith("known") else hint


def check_whole(
    dataset: str, where: Path, images: int, expected: int, partial: bool, help: str
) -> None:
    """Refuse a copy with other than the published number of images, unless a part is meant."""
    if images == 0:
        raise UserError(f"data set '{dataset}': no image in {where}; {help}")
    if not partial and images != expected:
        raise UserError(
            f"data set '{dataset}': {images:,} images in {where}, the whole set has {expected:,}: "
            "complete the copy, or set its option 'partial: true' to use what is there"
        )


def not_there(
    dataset: str, root: Path, what: str, archives: Mapping[str, str], help: str
) -> UserError:
    """What to say where ``what`` is missing: how to unpack the archives that lie there, or help.

    ``archives`` gives the command that unpacks each, run in ``root``.
    """
    packed = [command for name, command in archives.items() if (root / name).is_file()]
    if packed:
        return UserError(
            f"data set '{dataset}': {root} has {what}, but a packed archive: there, run "
            f"`{' && '.join(packed)}`"
        )
    missing = f"{root} has {what}" if root.is_dir() else f"{root}: no such folder"
    return UserError(f"data set '{dataset}': {missing}; {help}")


def hashes(names: Iterable[str], salt: str) -> list[int]:
    """A 64-bit number for each name that depends on nothing but the salt and the name."""
    digests = (hashlib.blake2b(f"{salt}:{name}".encode(), digest_size=8) for name in names)
    return [int.from_bytes(digest.digest(), "big") for digest in digests]


def target_index(
    dataset: str, options: Mapping[str, Any], root: Path, expected: int, help: str
) -> pl.DataFrame:
    """The index of ImageNet-A or -R, whose ``imagenet-a/<wnid>/*.jpg`` are of 200 classes.

    An image's id is its class and its file name without the ending; ``expected`` is the number of
    images of the whole set.
    """
    chosen = choose(dataset, options, TARGET_OPTIONS)
    partial = switch(dataset, "partial", chosen["partial"])
    name = dataset.replace("_", "-")
    folder = root / name if (root / name).is_dir() else root
    if not has_class_folders(folder):
        archives = {f"{name}.tar": f"tar -xf {name}.tar"}
        raise not_there(dataset, root, "no folders of classes", archives, help)
    every = classes()
    known = {every[number]: number for number in shipped(f"{dataset}_indices")}
    groups, names = class_folders(dataset, folder, known)
    texts = {"group": pl.String, "name": pl.String}
    rows = pl.DataFrame({"group": groups, "name": names}, schema=texts)
    check_whole(dataset, folder, len(rows), expected, partial, help)
    file = pl.concat_str("group", "name", separator="/")
    return rows.select(
        image=file.str.replace(r"\.[^./]*$", ""),
        path=pl.lit(str(folder) + os.sep) + file,
        group="group",
        order=pl.lit(None, dtype=pl.Int32),
        domain=pl.lit(dataset),
        split=pl.lit("test"),
        label=pl.col("group").replace_strict(known, return_dtype=pl.Int16),
    )
