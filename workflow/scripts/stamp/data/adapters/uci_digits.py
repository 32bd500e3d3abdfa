"""The 1,797 UCI digits that come inside the package scikit-learn: a real domain shift of digits.

Other writers and another scanner than MNIST's: the test part of "Optical Recognition of Handwritten
Digits" (Alpaydin and Kaynak, 1998). Each digit was fitted into a 32x32 bitmap and every 4x4 block
counted, which gives 8x8 values of 0..16, white on black like MNIST.

``margin: true`` (the default) gives the digits MNIST's geometry. A UCI digit fills its frame, an
MNIST digit fills 20 of 28 pixels, and a model should meet other handwriting, not another zoom. So
the 8x8 values are enlarged bilinearly 2.5 times, to 20x20 in the middle of a black 28x28 frame. No
recentring, no sharpening, no change of gray. ``margin: false`` writes them at 8x8 as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from stamp.core.errors import UserError
from stamp.data.adapter_options import bundled_file, check_count, choose
from stamp.data.adapters.mnist import balanced_order, index, read_digits, write_pictures

OPTIONS: dict[str, Any] = {"images": None, "margin": True}

_SUBSET_TAG = 0x756369


def build(options: Mapping[str, Any], folder: Path, seed: int) -> pl.DataFrame:
    """The index of the UCI digits, written as PNG files under ``folder``.

    ``images`` takes that many, classes in balance, drawn by the seed: the file goes by writer, and
    its beginning would be a few of them. A larger number keeps those of a smaller one.
    """
    chosen = choose("uci_digits", options, OPTIONS)
    margin = chosen["margin"]
    if not isinstance(margin, bool):
        raise UserError(
            f"data set 'uci_digits': option 'margin' is {margin!r}; expected true or false"
        )
    intensities, labels = load()
    rows = np.arange(len(labels))
    if chosen["images"] is not None:
        count = check_count("uci_digits", "images", chosen["images"], len(labels))
        place = balanced_order(labels, np.random.default_rng([seed, _SUBSET_TAG]))
        rows = np.flatnonzero(place < count)
    pictures = in_frame(intensities[rows]) if margin else as_stored(intensities[rows])
    names = [f"uci-{row:05d}" for row in rows]
    paths = write_pictures(pictures, folder / "images", names)
    return index(names, paths, labels[rows], "uci", "test")


def load() -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int16]]:
    """Intensities 0..16 [1797, 8, 8] and labels, in the order of the file."""
    path = bundled_file("uci_digits", "sklearn", "datasets/data/digits.csv.gz")
    return read_digits(path, rows=1797, side=8)


def as_stored(intensities: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Intensities 0..16 as gray 0..255 at their own size."""
    return np.rint(intensities * (255 / 16)).astype(np.uint8)


def in_frame(
    intensities: npt.NDArray[np.uint8], digit: int = 20, frame: int = 28
) -> npt.NDArray[np.uint8]:
    """Intensities 0..16 as gray 0..255, spread bilinearly over the middle of a black frame.

    Output pixel i lies at ``u = (i + 1/2 - (frame - digit) / 2) * side / digit - 1/2`` of the
    input, whose pixel j weighs ``max(0, 1 - |u - j|)``; what lies outside of the input is black.
    """
    side = intensities.shape[-1]
    position = (np.arange(frame) + 0.5 - (frame - digit) / 2) * side / digit - 0.5
    weights = np.clip(1 - np.abs(position[:, None] - np.arange(side)), 0, None)
    return np.rint(weights @ (intensities * (255 / 16)) @ weights.T).astype(np.uint8)
