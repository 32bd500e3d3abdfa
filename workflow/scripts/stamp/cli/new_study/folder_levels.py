"""What the folders of a user's images mean, as far as their names and depth tell."""

from __future__ import annotations

import os
from pathlib import Path

from stamp.cli.new_study.splits_found import CALIBRATION, TEST, TRAIN
from stamp.core.errors import UserError
from stamp.data.adapters.folder import SUFFIXES

SPLITS = (*TRAIN, *CALIBRATION, *TEST)


def guessed_levels(root: Path) -> tuple[list[str], str]:
    """The option ``levels`` of a folder of images, and why.

    Outermost folders with names of splits are splits. Of two others, the outer ones are domains if
    each holds a folder of the same name as another's (the classes), else the inner ones are groups.
    """
    depths = _depths(root)
    if len(depths) != 1:
        found = ", ".join(str(one) for one in sorted(depths)) or "none"
        raise UserError(
            f"{root}: images lie {found} folders deep: give --option 'levels=[split, class]' or "
            "the like, from the outermost, and put all images equally deep"
        )
    depth, outer = depths.pop(), _folders(root)
    splits = all(name.lower() in SPLITS for name in outer)
    if depth == 1:
        return ["class"], "one folder per class"
    if splits and depth <= 3:
        inner = ["class"] if depth == 2 else ["class", "group"]
        return ["split", *inner], "the outermost folders have names of splits"
    if depth == 2:
        names = [set(_folders(root / name)) for name in outer]
        if len(names) > 1 and all(one & other for one in names for other in names):
            return ["domain", "class"], "the outermost folders hold folders of the same names"
        return ["class", "group"], "the inner folders have names of their own"
    raise UserError(
        f"{root}: images lie {depth} folders deep: say what the folders are, from the outermost, "
        "by --option 'levels=[split, domain, class, group]' or the like"
    )


def _depths(root: Path) -> set[int]:
    """How deep images lie, 0 in the folder itself."""
    found = set()
    for place, folders, names in os.walk(root, followlinks=True):
        folders[:] = [one for one in folders if not one.startswith((".", "__"))]
        depth = len(Path(place).relative_to(root).parts)
        if depth > 4:
            folders.clear()
        if any(name.lower().endswith(SUFFIXES) and name[0] != "." for name in names):
            found.add(depth)
    return found


def _folders(root: Path) -> list[str]:
    return sorted(
        one.name for one in root.iterdir() if one.is_dir() and not one.name.startswith((".", "__"))
    )
