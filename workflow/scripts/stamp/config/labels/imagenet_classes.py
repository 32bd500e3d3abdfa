"""The 1,000 classes of ImageNet, by WordNet id.

A class's number is its line in the list that timm ships; so are the shipped lists of the classes of
ImageNet-A and ImageNet-R. They are read from timm's folder: timm itself, which imports torch, is
never imported.
"""

from __future__ import annotations

import importlib.util
import json
from functools import cache
from pathlib import Path

from stamp.core.errors import UserError


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
