"""A user's own images by their folders: one per class, inside those of splits or domains.

Which folder means what is option ``levels``, from the outermost: ``[class]`` is the layout that
most libraries know, ``[split, class]`` has training and test images apart, ``[class, group]`` a
folder for each patient of a class.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from stamp.core.errors import UserError, suggest
from stamp.data.adapter_options import choose
from stamp.data.splits import checked_shares, drawn

HELP = (
    "put the images into one folder per class in the data set's folder, or set its 'root': "
    "config/README.md, 'Your own images'"
)
OPTIONS: dict[str, Any] = {"levels": ["class"], "classes": None, "splits": None}
LEVELS = ("split", "domain", "class", "group")
SUFFIXES = (".png", ".jpg", ".jpeg", ".dcm", ".dicom", ".tif", ".tiff")
DOMAIN = "own"


def index(options: Mapping[str, Any], root: Path, seed: int) -> pl.DataFrame:
    """The index of the images below ``root``, by folder and file name.

    ``label`` is the class's number in ``classes``, by default the sorted names of the folders, and
    ``class`` its name. The group is the class, or the folder of level ``group``. Files with another
    ending than an image's, and hidden ones, are passed over.
    """
    chosen = choose("folder", options, OPTIONS)
    levels = _levels(chosen["levels"])
    found = walk(root, levels)
    parts = {
        level: pl.Series(level, [one[place] for one in found], dtype=pl.String)
        for place, level in enumerate(levels)
    }
    images = pl.Series("image", ["/".join(one) for one in found], dtype=pl.String)
    names = parts["class"]
    numbers = _numbers(names, chosen["classes"], root)
    groups = parts.get("group", names)
    if "split" in levels and chosen["splits"] is not None:
        raise UserError("data set 'folder': option 'splits' and a level 'split' exclude each other")
    split = parts.get("split")
    if split is None:
        units = groups if "group" in levels else images
        split = drawn(units, checked_shares("folder", chosen["splits"]), seed)
    return pl.DataFrame(
        {
            "image": images,
            "path": [os.path.join(root, *one) for one in found],
            "group": groups,
            "order": pl.Series([None] * len(found), dtype=pl.Int32),
            "domain": parts.get("domain", pl.Series([DOMAIN] * len(found), dtype=pl.String)),
            "split": split,
            "label": names.replace_strict(numbers, return_dtype=pl.Int32),
            "class": names,
        }
    )


def names(options: Mapping[str, Any], root: Path) -> str:
    """A digest of what the index is made of: the names of all images."""
    levels = _levels(choose("folder", options, OPTIONS)["levels"])
    state = hashlib.sha256()
    for one in walk(root, levels):
        state.update("\0".join(one).encode() + b"\0\0")
    return state.hexdigest()[:16]


def files(options: Mapping[str, Any], root: Path) -> Iterable[str]:
    """The image files below ``root``."""
    levels = _levels(choose("folder", options, OPTIONS)["levels"])
    return [os.path.join(root, *one) for one in walk(root, levels)]


def walk(root: Path, levels: Sequence[str]) -> list[tuple[str, ...]]:
    """Every image as its folders below ``root`` and its name, sorted.

    Images at another depth than the levels have are a mistake, and so is a folder of the last level
    without any image. A folder of a level may be a link to one elsewhere.
    """
    if not root.is_dir():
        raise UserError(f"{root}: no such folder; {HELP}")
    found: list[tuple[str, ...]] = []
    for place, folders, names in os.walk(root, followlinks=True):
        inside = Path(place).relative_to(root).parts
        folders[:] = sorted(one for one in folders if not one.startswith((".", "__")))
        if len(inside) >= len(levels):  # a link this deep could lead back to where it lies
            folders[:] = [one for one in folders if not os.path.islink(os.path.join(place, one))]
        images = sorted(one for one in names if _is_image(one))
        if images and len(inside) != len(levels):
            raise UserError(
                f"{os.path.join(place, images[0])}: lies {_deep(len(inside))}, but option 'levels' "
                f"is [{', '.join(levels)}]: put it elsewhere, or name the levels"
            )
        if len(inside) == len(levels) and not images and not folders:
            kinds = f"(a name that ends in {', '.join(SUFFIXES)})"
            raise UserError(
                f"{place}: a {levels[-1]}'s folder without an image {kinds}: fill or remove it"
            )
        found += [(*inside, name) for name in images]
    if not found:
        raise UserError(f"{root}: no image in {_deep(len(levels))}; {HELP}")
    return sorted(found)


def _is_image(name: str) -> bool:
    return not name.startswith(".") and name.lower().endswith(SUFFIXES)


def _deep(depth: int) -> str:
    return "in no folder" if depth == 0 else f"{depth} folder{'s' if depth > 1 else ''} deep"


def _levels(value: Any) -> list[str]:
    """What the folders mean, from the outermost; one of them is the class."""
    known = isinstance(value, (list, tuple)) and len(set(value)) == len(value)
    if not known or "class" not in value:
        raise UserError(
            f"data set 'folder': option 'levels' is {value!r}; expected a list with 'class' and "
            "any of 'split', 'domain', 'group', from the outermost folder"
        )
    for level in value:
        if level not in LEVELS:
            hint = suggest(str(level), LEVELS)
            raise UserError(f"data set 'folder': option 'levels': unknown level '{level}': {hint}")
    return list(value)


def _numbers(names: pl.Series, classes: Any, root: Path) -> dict[str, int]:
    """The number of each class."""
    found = names.unique().sort().to_list()
    order = found if classes is None else [str(one) for one in classes]
    for name in found:
        if name not in order:
            raise UserError(
                f"{root}: the folder '{name}' is none of the {len(order)} classes of option "
                f"'classes': {suggest(name, order)}"
            )
    if len(set(order)) < len(order):
        raise UserError("data set 'folder': option 'classes' names a class twice")
    return {name: order.index(name) for name in found}
