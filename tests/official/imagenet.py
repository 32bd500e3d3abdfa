"""ImageNet validation in small, in each of the layouts in circulation, and the pictures of them.

A picture shows a patterned shape before a background: hue, shape and stripes are its class's, place
and size are the picture's own. So classes can be learned, and nothing is shown that exists.
"""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from official import lines
from stamp.config.labels.imagenet_classes import classes as all_classes
from stamp.config.labels.imagenet_classes import number_of, real_labels

# Tench, goldfish, stingray, scorpion, peacock, canoe, fountain, hourglass, streetcar, submarine,
# tractor, umbrella: of ImageNet-A six, of ImageNet-R seven, of both four, of neither three.
CLASSES = (
    "n01440764",
    "n01443537",
    "n01498041",
    "n01770393",
    "n01806143",
    "n02951358",
    "n03388043",
    "n03544143",
    "n04335435",
    "n04347754",
    "n04465501",
    "n04507155",
)
DEVKIT = "ILSVRC2012_devkit_t12"
# As in the real set, not all files are in colour as a screen has it.
MODES = {1: "L", 2: "CMYK"}


def make(
    root: Path,
    per_class: int = 6,
    seed: int = 0,
    size: int = 64,
    layout: str = "devkit",
    classes: Sequence[str] = CLASSES,
) -> dict[str, str]:
    """Write pictures and what says their classes; the class of each image comes back by its name.

    ``devkit`` and ``kaggle`` have the pictures in one folder and a table that labels all 50,000;
    ``folders`` has one folder per class. Only ``per_class`` images of each class are there.
    """
    images = validation(per_class, classes)
    places = {"devkit": "val", "folders": "val", "kaggle": "ILSVRC/Data/CLS-LOC/val"}
    for turn, (number, wnid) in enumerate(images):
        inside = wnid if layout == "folders" else "."
        file = root / places[layout] / inside / f"{name(number)}.JPEG"
        file.parent.mkdir(parents=True, exist_ok=True)
        shown = picture(number_of()[wnid], photograph(seed, number), size)
        shown.convert(MODES.get(turn, "RGB")).save(file, quality=90)
    truth = _truth(images)
    if layout == "devkit":
        _write_devkit(root / DEVKIT, truth, seed)
    elif layout == "kaggle":
        _write_solution(root / "LOC_val_solution.csv", truth, seed)
    return {name(number): wnid for number, wnid in images}


def archives(root: Path) -> list[Path]:
    """Pack the pictures and the development kit as image-net.org gives them out; remove both."""
    packed = [root / "ILSVRC2012_img_val.tar", root / f"{DEVKIT}.tar.gz"]
    with tarfile.open(packed[0], "w") as archive:
        for file in sorted((root / "val").rglob("*.JPEG")):
            archive.add(file, arcname=file.name)
    with tarfile.open(packed[1], "w:gz") as archive:
        archive.add(root / DEVKIT, arcname=DEVKIT)
    shutil.rmtree(root / "val")
    shutil.rmtree(root / DEVKIT)
    return packed


def name(number: int) -> str:
    """The name of a validation image, without its ending."""
    return f"ILSVRC2012_val_{number:08d}"


def validation(per_class: int, classes: Sequence[str] = CLASSES) -> list[tuple[int, str]]:
    """Numbers and classes of the images made; fewer a class are a prefix of more.

    An image's ReaL labels hold its class, but the very first image has none.
    """
    lists, known = real_labels(), number_of()
    waiting = {wnid: _candidates(lists, known[wnid]) for wnid in classes}
    first = next(number for number, found in enumerate(lists, start=1) if not found)
    waiting[classes[0]].insert(0, first)
    images: list[tuple[int, str]] = []
    taken: set[int] = set()
    for _ in range(per_class):
        for wnid in classes:
            number = next(number for number in waiting[wnid] if number not in taken)
            taken.add(number)
            images.append((number, wnid))
    return images


def photograph(seed: int, number: int) -> np.random.Generator:
    """The chance behind one validation image: ImageNet-C shows the same picture again."""
    return np.random.default_rng([seed, 0x1A6E, number])


def picture(
    number: int,
    rng: np.random.Generator,
    size: int,
    scene: int | None = None,
    scale: tuple[float, float] = (0.6, 0.95),
) -> Image.Image:
    """A picture of a class: shorter side ``size``, up to half as long again the other way."""
    width, height = (size, round(size * rng.uniform(1, 1.5)))[:: rng.choice([-1, 1])]
    return Image.fromarray(drawn(number, rng, height, width, scene, scale))


def drawn(
    number: int,
    rng: np.random.Generator,
    height: int,
    width: int,
    scene: int | None = None,
    scale: tuple[float, float] = (0.6, 0.95),
) -> NDArray[np.uint8]:
    """The pixels of a class's picture, [height, width, 3].

    ``scene`` is the class whose background it has, its own unless told; ``scale`` bounds the
    shape's size as a share of the shorter side.
    """
    size = min(height, width)
    y, x = np.mgrid[0:height, 0:width] / size
    x, y = x - width / size / 2, y - height / size / 2
    radius = rng.uniform(*scale) / 2
    dx, dy = rng.uniform(-0.1, 0.1, 2)
    shape = _shape(number, x - dx, y - dy, radius)
    angle = np.pi * (number % 4) / 4 + rng.normal(0, 0.05)
    wave = np.cos(2 * np.pi * (2 + number % 3) * (x * np.cos(angle) + y * np.sin(angle)))
    behind = _hue(number if scene is None else scene, 0.7548776662)
    hue = np.where(shape, _hue(number, 0.6180339887), behind) + rng.normal(0, 0.01)
    saturation = np.where(shape, 0.85, 0.35)
    value = np.where(shape, 0.7 + 0.25 * wave, 0.5 + 0.3 * x)
    value = value * rng.uniform(0.85, 1.05) + rng.normal(0, 0.03, value.shape)
    bands = [hue % 1, saturation, value]
    levels = [np.rint(255 * np.clip(band, 0, 1)).astype(np.uint8) for band in bands]
    merged = Image.merge("HSV", [Image.fromarray(level) for level in levels])
    return np.asarray(merged.convert("RGB"))


def _hue(number: int, step: float) -> float:
    return number * step % 1


def _shape(
    number: int, x: NDArray[np.float64], y: NDArray[np.float64], radius: float
) -> NDArray[np.bool_]:
    """Where a class's shape is: a disc, a square or a diamond."""
    distances = (np.hypot(x, y), np.maximum(abs(x), abs(y)) * 1.1, (abs(x) + abs(y)) * 0.8)
    return distances[number // 4 % 3] < radius


def _candidates(lists: list[list[int]], label: int) -> list[int]:
    return [number for number, found in enumerate(lists, start=1) if label in found]


def _truth(images: Sequence[tuple[int, str]]) -> list[str]:
    """A class for each of the 50,000 images; those that are not made have one all the same."""
    wnids = all_classes()
    truth = [wnids[found[0] if found else 0] for found in real_labels()]
    for number, wnid in images:
        truth[number - 1] = wnid
    return truth


def _write_devkit(folder: Path, truth: Sequence[str], seed: int) -> None:
    """The development kit: its table of synsets, inner nodes last, and the ground truth.

    As in the official one, class ids don't follow the order of the WordNet ids.
    """
    from scipy.io import savemat

    wnids = all_classes()
    order = np.random.default_rng([seed, 0xDE7]).permutation(len(wnids))
    entries = [_synset(k + 1, wnids[row], []) for k, row in enumerate(order)]
    inner = ("n00001740", "n00001930", "n00002684")
    entries += [_synset(1001 + k, wnid, [1 + k, 2 + k]) for k, wnid in enumerate(inner)]
    fields = [(field, object) for field in entries[0]]
    table = np.array([tuple(entry.values()) for entry in entries], dtype=fields)
    (folder / "data").mkdir(parents=True, exist_ok=True)
    savemat(folder / "data" / "meta.mat", {"synsets": table[:, None]})
    ids = {entry["WNID"]: entry["ILSVRC2012_ID"] for entry in entries}
    text = "".join(f"{ids[wnid]:.0f}\n" for wnid in truth)
    (folder / "data" / "ILSVRC2012_validation_ground_truth.txt").write_text(text)
    (folder / "readme.txt").write_text("A small development kit, made for tests.\n")


def _synset(number: int, wnid: str, children: list[int]) -> dict[str, object]:
    return {
        "ILSVRC2012_ID": float(number),
        "WNID": wnid,
        "words": f"word {number}, another",
        "gloss": f"what {wnid} means",
        "num_children": float(len(children)),
        "children": np.array(children, dtype=np.float64),
        "wordnet_height": float(len(children)),
        "num_train_images": 0.0 if children else 1300.0,
    }


def _write_solution(file: Path, truth: Sequence[str], seed: int) -> None:
    """Kaggle's table, in no order: a class and a box for each object, a blank at the end."""
    order = np.random.default_rng([seed, 0x10C]).permutation(len(truth))
    rows = [(name(k + 1), f"{truth[k]} 10 {k % 50} 300 280 " * (1 + k % 2)) for k in order.tolist()]
    file.write_text(lines("ImageId,PredictionString", rows))
