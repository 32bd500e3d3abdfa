"""A pixel cache of random pixels, written a part at a time."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from stamp.core.artifacts import ids_digest, write_json
from stamp.images.pixel_cache import PixelCache

PART = 1_000


def image_ids(images: int) -> list[str]:
    """Names of that many images."""
    return [f"image{number:06d}" for number in range(images)]


def open_cache(folder: Path, images: int) -> PixelCache:
    """The cache that :func:`write_cache` left in ``folder``."""
    return PixelCache(folder / "pixels.npy", folder / "pixels.json", image_ids(images))


def write_cache(folder: Path, images: int, size: int, channels: int) -> PixelCache:
    """A cache of ``images`` random images of ``size`` x ``size`` x ``channels``."""
    folder.mkdir(parents=True, exist_ok=True)
    shape = (images, size, size, channels)
    file = np.lib.format.open_memmap(folder / "pixels.npy", "w+", dtype=np.uint8, shape=shape)
    rng = np.random.default_rng([0, *shape])
    for start in range(0, images, PART):
        part = file[start : start + PART]
        part[:] = rng.integers(0, 256, part.shape, dtype=np.uint8)
    file.flush()
    write_json(folder / "pixels.json", {"ids": ids_digest(image_ids(images))})
    return open_cache(folder, images)
