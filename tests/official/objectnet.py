"""ObjectNet in small: framed pictures by folder and the four files of ``mappings``.

The words of ImageNet's classes are timm's, which are those of the official file; their lines stand
in another order than the classes, as there. Some labels and folders are those of the data set, with
its quirks: capitals, brackets and slashes in labels, a hyphen in a folder's name, labels of several
classes, and names that are a part of other names.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from official.imagenet import picture
from official.zip_crypto import encrypted_zip
from stamp.config.labels.imagenet_classes import classes, shipped_file

PASSWORD = "objectnetisatestset"
ARCHIVE = "objectnet-1.0.zip"
RED = (255, 0, 0)
BORDER = 2
KINDS: Mapping[str, tuple[str, Sequence[str]]] = {
    "alarm_clock": ("Alarm clock", ("analog clock", "digital clock")),
    "nail_fastener": ("Nail (fastener)", ("nail",)),
    "screw": ("Screw", ("screw",)),
    "still_camera": ("Still Camera", ("reflex camera", "Polaroid camera, Polaroid Land camera")),
    "t-shirt": ("T-shirt", ("jersey, T-shirt, tee shirt",)),
    "tape": ("Tape / duct tape", ()),
    "tv": ("TV", ("television, television system",)),
    "weight_exercise": ("Weight (exercise)", ("dumbbell", "barbell")),
    "air_freshener": ("Air freshener", ()),
}


def words() -> list[str]:
    """The words of ImageNet's classes in the order of the class numbers."""
    lines = shipped_file("imagenet_synset_to_lemma.txt").read_text().splitlines()
    lemma = dict(line.split("\t") for line in lines)
    return [lemma[wnid] for wnid in classes()]


def framed(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The picture in the red border: one pixel of pure red and one that is half red."""
    inner = np.pad(pixels, ((1, 1), (1, 1), (0, 0)), mode="edge").astype(np.float64)
    half = np.rint((inner + RED) / 2)
    half[1:-1, 1:-1] = pixels
    whole = np.empty((half.shape[0] + 2, half.shape[1] + 2, 3), dtype=np.uint8)
    whole[:] = RED
    whole[1:-1, 1:-1] = half
    return whole


def make(
    root: Path,
    images: int,
    seed: int,
    size: int = 64,
    kinds: Mapping[str, tuple[str, Sequence[str]]] = KINDS,
) -> None:
    """Write ``images`` pictures of every kind and the mappings.

    ``kinds`` gives for each folder its label and the words of its ImageNet classes. A picture shows
    one of the kind's classes, or something that is none of them.
    """
    rng = np.random.default_rng([seed, 0x0B1])
    home, known = root / "objectnet-1.0", words()
    for place, (folder, (_, names)) in enumerate(kinds.items()):
        (home / "images" / folder).mkdir(parents=True, exist_ok=True)
        for each in range(images):
            number = known.index(names[each % len(names)]) if names else len(known) + place
            name = f"{rng.integers(16**15):015x}.png"
            pixels = framed(np.asarray(picture(number, rng, size).convert("RGB")))
            Image.fromarray(pixels).save(home / "images" / folder / name, compress_level=1)
    write_mappings(home / "mappings", kinds, rng)
    (home / "README").write_text("ObjectNet in small, made for tests\n")
    (home / "LICENSE").write_text("never tune the parameters of a model on these pictures\n")


def write_mappings(
    folder: Path, kinds: Mapping[str, tuple[str, Sequence[str]]], rng: np.random.Generator
) -> None:
    """Write the four files that lead from folders to ImageNet's classes."""
    folder.mkdir(parents=True, exist_ok=True)
    known = words()
    line_of = rng.permutation(len(known))
    lines = [known[number] for number in np.argsort(line_of)]
    (folder / "imagenet_to_label_2012_v2").write_text("\n".join(lines) + "\n")
    documents = {
        "folder_to_objectnet_label": {name: label for name, (label, _) in kinds.items()},
        "objectnet_to_imagenet_1k": {
            label: "; ".join(names) for label, names in kinds.values() if names
        },
        "pytorch_to_imagenet_2012_id": {str(k): int(line) for k, line in enumerate(line_of)},
    }
    for name, document in documents.items():
        (folder / f"{name}.json").write_text(json.dumps(document, indent=2))


def archives(folder: Path) -> list[Path]:
    """Pack a made data set as the official page gives it out, encrypted, and remove it."""
    home = folder / "objectnet-1.0"
    files = sorted(path for path in home.rglob("*") if path.is_file())
    members = ((str(path.relative_to(folder).as_posix()), path.read_bytes()) for path in files)
    encrypted_zip(folder / ARCHIVE, members, PASSWORD.encode())
    shutil.rmtree(home)
    return [folder / ARCHIVE]
