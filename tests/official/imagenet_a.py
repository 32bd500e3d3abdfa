"""ImageNet-A in small: the class's shape is little and stands before another class's background."""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from official.imagenet import CLASSES, picture
from stamp.config.labels.imagenet_classes import number_of, shipped

README = "A small set in the layout of {name}, made for tests.\n"
WORDS = ("digital clock", "chameleon", "box turtle", "soap dispenser", "balloon")


def make(
    root: Path,
    per_class: int = 4,
    seed: int = 0,
    size: int = 64,
    classes: Sequence[str] = CLASSES,
) -> dict[str, str]:
    """Write ``imagenet-a/<wnid>/*.jpg`` for those of ``classes`` that ImageNet-A has.

    The class of each file comes back by its path. As in the real set, classes differ in size, and a
    name holds what a network took the picture for: two words and two probabilities.
    """
    rng = np.random.default_rng([seed, 0xA])
    known = number_of()
    theirs = members("imagenet_a_indices", classes)
    made = {}
    for turn, wnid in enumerate(theirs):
        for _ in range(per_class + turn % 2):
            first, second = rng.choice(WORDS, 2)
            low, high = rng.uniform(0, 0.01), rng.uniform(0.4, 1)
            inside = f"{wnid}/{low:.6f}_{first} _ {second}_{high:.7f}.jpg"
            scene = known[theirs[int(rng.integers(len(theirs)))]]
            shown = picture(known[wnid], rng, size, scene, scale=(0.4, 0.6))
            file = root / "imagenet-a" / inside
            file.parent.mkdir(parents=True, exist_ok=True)
            shown.save(file, quality=90)
            made[inside] = wnid
    (root / "imagenet-a" / "README.txt").write_text(README.format(name="ImageNet-A"))
    return made


def archives(root: Path, name: str = "imagenet-a") -> list[Path]:
    """Pack the folder as the official page gives it out, and remove it."""
    packed = root / f"{name}.tar"
    with tarfile.open(packed, "w") as archive:
        archive.add(root / name, arcname=name)
    shutil.rmtree(root / name)
    return [packed]


def members(listed: str, classes: Sequence[str]) -> list[str]:
    """Those of ``classes`` whose numbers a list of timm's holds."""
    numbers, known = set(shipped(listed)), number_of()
    return [wnid for wnid in classes if known[wnid] in numbers]
