"""Held-out MNIST digits, shifted by kind and severity: a small ImageNet-C for the digits study.

Only test images of ``mnist`` with the same seed are used, so none was trained or calibrated on.
A image is decided by seed, kind, severity and image: asking for more images, kinds or
severities changes no other image. The backgrounds are the two photographs inside the package
scikit-learn.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from stamp.core.errors import UserError, suggest
from stamp.data.adapter_options import bundled_file, check_count, choose
from stamp.data.adapters import mnist
from stamp.images.corruptions import CORRUPTIONS, SEVERITIES

OPTIONS: dict[str, Any] = {
    "images": 200,
    "kinds": list(CORRUPTIONS),
    "severities": list(SEVERITIES),
}


def build(options: Mapping[str, Any], folder: Path, seed: int) -> pl.DataFrame:
    """The index of every kind at every severity, written as PNG files under ``folder``."""
    images, kinds, severities = _checked(choose("digit_shifts", options, OPTIONS))
    digits = mnist.load(seed)
    rows = digits.first("test", images)
    names = np.array(digits.names())[rows].tolist()
    extra = {"background": {"photographs": photographs()}} if "background" in kinds else {}
    tables = []
    for kind in kinds:
        for severity in severities:
            rngs = generators(seed, kind, severity, rows)
            corrupt = CORRUPTIONS[kind]
            pictures = corrupt(digits.images[rows], severity, rngs, **extra.get(kind, {}))
            domain = f"{kind}-{severity}"
            paths = mnist.write_pictures(pictures, folder / "images" / domain, names)
            ids = [f"{domain}-{name}" for name in names]
            tables.append(mnist.index(ids, paths, digits.labels[rows], domain, "test"))
    return pl.concat(tables)


def generators(
    seed: int, kind: str, severity: int, rows: npt.NDArray[np.intp]
) -> list[np.random.Generator]:
    """One generator per image, by seed, kind, severity and the image's row in the bundle."""
    tag = zlib.crc32(kind.encode())
    return [np.random.default_rng([seed, tag, severity, row]) for row in rows.tolist()]


def photographs() -> list[npt.NDArray[np.uint8]]:
    """The two photographs in gray at half size, where a 28x28 patch shows more than flat colour."""
    from PIL import Image

    pictures = []
    for name in ("china.jpg", "flower.jpg"):
        path = bundled_file("digit_shifts", "sklearn", f"datasets/images/{name}")
        with Image.open(path) as photograph:
            pictures.append(np.asarray(photograph.convert("L").reduce(2)))
    return pictures


def _checked(chosen: Mapping[str, Any]) -> tuple[int, list[str], list[int]]:
    images = check_count("digit_shifts", "images", chosen["images"], mnist.SPLITS["test"])
    kinds = _distinct("kinds", chosen["kinds"])
    for kind in kinds:
        if not isinstance(kind, str) or kind not in CORRUPTIONS:
            hint = suggest(kind, CORRUPTIONS)
            raise UserError(f"data set 'digit_shifts': unknown kind '{kind}': {hint}")
    severities = _distinct("severities", chosen["severities"])
    for severity in severities:
        check_count("digit_shifts", "severities", severity, len(SEVERITIES))
    return images, kinds, severities


def _distinct(option: str, values: Any) -> list[Any]:
    if not isinstance(values, list | tuple) or not values:
        raise UserError(
            f"data set 'digit_shifts': option '{option}' is {values!r}; expected a list"
        )
    for place, value in enumerate(values):
        if value in values[:place]:
            raise UserError(f"data set 'digit_shifts': option '{option}' names {value!r} twice")
    return list(values)
