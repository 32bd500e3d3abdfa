"""ImageNet-R in small: the classes' pictures drawn in other ways."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageFilter, ImageOps

from official import imagenet_a
from official.imagenet import CLASSES, picture
from stamp.config.labels.imagenet_classes import number_of

RENDITIONS = ("art", "cartoon", "deviantart", "graphic", "painting", "sculpture", "sketch")


def make(
    root: Path,
    per_class: int = 4,
    seed: int = 0,
    size: int = 64,
    classes: Sequence[str] = CLASSES,
) -> dict[str, str]:
    """Write ``imagenet-r/<wnid>/<rendition>_<k>.jpg`` for those of ``classes`` that it has.

    The class of each file comes back by its path. As in the real set, classes differ in size and
    the same file name occurs in many of them.
    """
    rng = np.random.default_rng([seed, 0x2])
    known = number_of()
    made = {}
    for turn, wnid in enumerate(imagenet_a.members("imagenet_r_indices", classes)):
        for k in range(per_class + turn % 3):
            rendition = RENDITIONS[(turn + k) % len(RENDITIONS)]
            inside = f"{wnid}/{rendition}_{k}.jpg"
            file = root / "imagenet-r" / inside
            file.parent.mkdir(parents=True, exist_ok=True)
            rendered(picture(known[wnid], rng, size), rendition).save(file, quality=90)
            made[inside] = wnid
    readme = imagenet_a.README.format(name="ImageNet-R")
    (root / "imagenet-r" / "README.txt").write_text(readme)
    return made


def archives(root: Path) -> list[Path]:
    """Pack the folder as the official page gives it out, and remove it."""
    return imagenet_a.archives(root, "imagenet-r")


def rendered(shown: Image.Image, rendition: str) -> Image.Image:
    """A picture as another medium shows it."""
    if rendition == "sketch":
        return ImageOps.invert(shown.convert("L").filter(ImageFilter.FIND_EDGES))
    if rendition == "sculpture":
        return ImageOps.colorize(shown.convert("L"), "black", "ivory")
    if rendition in ("cartoon", "graphic"):
        return ImageOps.posterize(shown, 2)
    return shown.filter(ImageFilter.ModeFilter(5))
