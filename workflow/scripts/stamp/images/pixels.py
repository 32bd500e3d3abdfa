"""The pixel cache, written: a view's images decoded and resized once per preprocessing.

One ``.npy`` file of uint8 [images, height, width, channels], and a small JSON record beside it with
the digests of the image ids and of the pixels. :mod:`stamp.images.pixel_cache` reads it.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from PIL import Image

from stamp.config.preprocessing import Preprocessing
from stamp.core.artifacts import atomic_write, ids_digest, write_json
from stamp.core.errors import UserError
from stamp.core.progress import bar
from stamp.images.reading import open_image

RESAMPLING = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}
CHUNK = 256


@dataclass(frozen=True, slots=True)
class ImageFiles:
    """The images of a view: their ids and files, the border to cut off, what errors call them."""

    ids: Sequence[str]
    paths: Sequence[str]
    name: str
    border: int = 0


def decode(path: str, how: Preprocessing, border: int = 0) -> np.ndarray:
    """One image file as uint8 [size, size, channels], without ``border`` pixels at each side."""
    image = open_image(path, how.channels)
    if border:
        width, height = image.size
        if min(width, height) <= 2 * border:
            raise UserError(f"{path}: is {width} x {height}, all of it border ({border} pixels)")
        image = image.crop((border, border, width - border, height - border))
    return np.asarray(resize(image, how), dtype=np.uint8).reshape(how.size, how.size, how.channels)


def resize(image: Image.Image, how: Preprocessing) -> Image.Image:
    """The image squeezed to a square, or its centre square after the shorter side is resized.

    A crop gives exactly the pixels of timm's evaluation transform (``crop_mode="center"``): the
    shorter side becomes floor(size / crop), the longer side is rounded down, and the square starts
    at half of the remaining margin, rounded half to even.
    """
    method = RESAMPLING[how.interpolation]
    if how.crop is None:
        return image.resize((how.size, how.size), method)
    shorter, least = math.floor(how.size / how.crop), min(image.size)
    width, height = (int(shorter * side / least) for side in image.size)
    left, top = round((width - how.size) / 2), round((height - how.size) / 2)
    resized = image.resize((width, height), method)
    return resized.crop((left, top, left + how.size, top + how.size))


def _decoded(images: ImageFiles, how: Preprocessing, threads: int) -> Iterator[np.ndarray]:
    """Decoded images in order, with a bounded number in flight."""
    with ThreadPoolExecutor(threads) as workers:
        remaining = iter(images.paths)
        while part := list(islice(remaining, CHUNK)):
            yield from workers.map(lambda path: decode(path, how, images.border), part)


def _check_presence(images: ImageFiles) -> None:
    """Refuse missing files before the first is decoded."""
    missing = [path for path in images.paths if not os.path.isfile(path)]
    if len(missing) == 1:
        raise UserError(f"{missing[0]}: no such image")
    if missing:
        raise UserError(
            f"{images.name}: {len(missing)} of {len(images.paths)} images are missing, "
            f"first {missing[0]}"
        )


def write_cache(
    target: Path, record: Path, images: ImageFiles, how: Preprocessing, threads: int
) -> None:
    """Decode images into the cache file, and say in its record what it holds."""
    if not images.ids:
        raise UserError(f"{images.name}: the view has no image")
    _check_presence(images)
    shape = (len(images.ids), how.size, how.size, how.channels)
    state = hashlib.sha256()
    with atomic_write(target) as part, open(part, "wb") as file:
        header = {"descr": "|u1", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        decoded = _decoded(images, how, threads)
        for image in bar(decoded, f"{images.name} pixels", len(images.paths)):
            raw = image.tobytes()
            state.update(raw)
            file.write(raw)
    write_json(
        record,
        {
            "ids": ids_digest(images.ids),
            "pixels": state.hexdigest(),
            "shape": shape,
            "key": how.key,
        },
    )
