"""The 1,000 classes of ImageNet, by WordNet id, and trees with a folder a class.

A class's number is its line in the list that timm ships; so are the shipped lists of the classes of
ImageNet-A and ImageNet-R. They are read from timm's folder: timm itself, which imports torch, is
never imported.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stamp.core.errors import UserError, suggest
from stamp.data.adapter_options import choose

if TYPE_CHECKING:
    import polars as pl

IMAGES = 50_000
PER_CLASS = 50
SUFFIXES = (".jpeg", ".jpg", ".png")
TARGET_OPTIONS: dict[str, Any] = {"partial": False}


def classes() -> list[str]:
    """The 1,000 WordNet ids; a class's number is its place."""
    return list(_synsets())


def number_of() -> dict[str, int]:
    """The class number of each WordNet id."""
    return {wnid: number for number, wnid in enumerate(_synsets())}


def shipped(name: str) -> list[int]:
    """A list of class numbers that timm ships, such as ``imagenet_a_indices``, ascending."""
    return sorted(int(line) for line in shipped_file(f"{name}.txt").read_text().split())


def real_labels() -> list[list[int]]:
    """The ReaL class numbers of each validation image, in the images' order; some have none.

    Beyer et al., "Are we done with ImageNet?", 2020.
    """
    return json.loads(shipped_file("imagenet_real_labels.json").read_text())


def shipped_file(name: str) -> Path:
    """A file about ImageNet inside the installed timm."""
    spec = importlib.util.find_spec("timm")
    if spec is None:
        raise UserError(
            "the classes of ImageNet are read from the package timm, which is not installed: "
            "pip install timm"
        )
    for place in spec.submodule_search_locations or ():
        file = Path(place) / "data" / "_info" / name
        if file.is_file():
            return file
    raise UserError(
        f"the installed package timm has no file data/_info/{name}: "
        "install the pinned version of timm again"
    )


@cache
def _synsets() -> tuple[str, ...]:
    return tuple(shipped_file("imagenet_synsets.txt").read_text().split())


def switch(dataset: str, option: str, value: Any) -> bool:
    """``value`` where it is true or false."""
    if not isinstance(value, bool):
        raise UserError(
            f"data set '{dataset}': option '{option}' is {value!r}; expected true or false"
        )
    return value


def has_class_folders(folder: Path) -> bool:
    """Whether a folder holds at least one that is named after a class."""
    if not folder.is_dir():
        return False
    known = set(_synsets())
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
    if name in _synsets():
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
    import polars as pl  # planning reads the classes only

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
