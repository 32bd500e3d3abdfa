"""Lists of classes that are too long for a study's file: ImageNet's, and shipped parts of it."""

from __future__ import annotations

from stamp.core.errors import UserError, suggest
from stamp.core.shipped import RESOURCES

FOLDER = RESOURCES / "classes"
IMAGENET = "imagenet"


def names() -> list[str]:
    """The lists that there are."""
    return [IMAGENET, *sorted(file.stem for file in FOLDER.glob("*.csv"))]


def read(name: str) -> list[str]:
    """The classes of a list, in its order."""
    if name == IMAGENET:
        from stamp.config.labels.imagenet_classes import classes

        return classes()
    file = FOLDER / f"{name}.csv"
    if not file.is_file():
        raise UserError(f"unknown list of classes '{name}': {suggest(name, names())}")
    head, *lines = file.read_text().split()
    if head != "class" or len(set(lines)) != len(lines):
        raise UserError(f"{file}: the header 'class' and distinct names are expected")
    return lines
