"""The pixel cache: a view's images decoded and resized once per preprocessing, as raw uint8.

One ``.npy`` of shape [images, height, width, channels] that can be memory-mapped, and a small JSON
record beside it with the digest of the image ids and of the pixels. Batches are read with plain
reads from the page cache, which all jobs share: faster than a mapping per batch, memory stays flat.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import numpy as np
from PIL import Image

from stamp.config.preprocessing import Preprocessing
from stamp.core.artifacts import atomic_write, check_metadata, ids_digest, read_json, write_json
from stamp.core.errors import UserError
from stamp.core.progress import bar
from stamp.images.reading import open_picture

RESAMPLING = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}
CHUNK = 256


def decode(path: str, how: Preprocessing, border: int = 0) -> np.ndarray:
    """One image file as uint8 [size, size, channels], without ``border`` pixels at each side."""
    picture = open_picture(path, how.channels)
    if border:
        width, height = picture.size
        if min(width, height) <= 2 * border:
            raise UserError(f"{path}: is {width} x {height}, all of it border ({border} pixels)")
        picture = picture.crop((border, border, width - border, height - border))
    return np.asarray(resize(picture, how), dtype=np.uint8).reshape(
        how.size, how.size, how.channels
    )


def resize(picture: Image.Image, how: Preprocessing) -> Image.Image:
    """The whole picture squeezed to a square, or the centre of it at the shorter side's scale.

    With a crop, pixel for pixel what timm's evaluation transform gives (``crop_mode="center"``):
    the shorter side becomes floor(size / crop), the longer one is cut off to a whole number, and
    the square begins at half of what is left over, a half going to the even number.
    """
    method = RESAMPLING[how.interpolation]
    if how.crop is None:
        return picture.resize((how.size, how.size), method)
    shorter, least = math.floor(how.size / how.crop), min(picture.size)
    width, height = (int(shorter * side / least) for side in picture.size)
    left, top = round((width - how.size) / 2), round((height - how.size) / 2)
    resized = picture.resize((width, height), method)
    return resized.crop((left, top, left + how.size, top + how.size))


def _decoded(
    paths: Sequence[str], how: Preprocessing, threads: int, border: int
) -> Iterator[np.ndarray]:
    """Decoded images in order, with a bounded number in flight."""
    with ThreadPoolExecutor(threads) as workers:
        remaining = iter(paths)
        while part := list(islice(remaining, CHUNK)):
            yield from workers.map(lambda path: decode(path, how, border), part)


def _check_presence(paths: Sequence[str], what: str) -> None:
    """Refuse absent files before the first is decoded; one alone is named as decoding names it."""
    missing = [path for path in paths if not os.path.isfile(path)]
    if not missing:
        return
    line = f"{what}: {len(missing)} of {len(paths)} images are missing, first {missing[0]}"
    if len(missing) == 1:
        line = f"{missing[0]}: no such image"
    raise UserError(line)


def write_cache(
    target: Path,
    record: Path,
    ids: Sequence[str],
    paths: Sequence[str],
    how: Preprocessing,
    threads: int,
    what: str,
    border: int = 0,
) -> None:
    """Decode ``paths`` into the cache file, and say in its record what it holds."""
    if not ids:
        raise UserError(f"{what}: the view has no image")
    _check_presence(paths, what)
    shape = (len(ids), how.size, how.size, how.channels)
    state = hashlib.sha256()
    with atomic_write(target) as part, open(part, "wb") as file:
        header = {"descr": "|u1", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        for image in bar(_decoded(paths, how, threads, border), f"{what} pixels", len(paths)):
            raw = image.tobytes()
            state.update(raw)
            file.write(raw)
    write_json(
        record,
        {"ids": ids_digest(ids), "pixels": state.hexdigest(), "shape": shape, "key": how.key},
    )


class PixelCache:
    """A cache file opened for reading: rows as arrays, a batch at a time."""

    def __init__(self, target: Path, record: Path, ids: Sequence[str]):
        check_metadata(record, read_json(record), {"ids": ids_digest(ids)})
        mapped = np.load(target, mmap_mode="r")
        self.path, self.shape, self.offset = target, mapped.shape, int(mapped.offset)

    def __len__(self) -> int:
        return int(self.shape[0])

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Rows ``start`` to ``stop``, read into memory of their own."""
        rows = np.empty((min(stop, len(self)) - start, *self.shape[1:]), dtype=np.uint8)
        with open(self.path, "rb") as file:
            file.seek(self.offset + start * int(np.prod(self.shape[1:])))
            if file.readinto(rows.data) != rows.nbytes:
                raise UserError(f"{self.path}: the file ends too early; delete it and run again")
        return rows

    def take(self, rows: np.ndarray) -> np.ndarray:
        """The rows of these numbers, in this order; only they are read, from front to back."""
        if len(rows) and not 0 <= rows.min() <= rows.max() < len(self):
            raise IndexError(f"rows {rows.min()} to {rows.max()} of {len(self)}")
        taken = np.empty((len(rows), *self.shape[1:]), dtype=np.uint8)
        with open(self.path, "rb") as file:
            for place in np.argsort(rows, kind="stable"):
                file.seek(self.offset + int(rows[place]) * taken[place].nbytes)
                if file.readinto(taken[place].data) != taken[place].nbytes:
                    raise UserError(
                        f"{self.path}: the file ends too early; delete it and run again"
                    )
        return taken


class Joined:
    """Several caches of one preprocessing, their rows numbered one after the other."""

    def __init__(self, caches: Sequence[PixelCache]):
        self.caches = list(caches)
        self.ends = np.cumsum([len(cache) for cache in self.caches])

    def __len__(self) -> int:
        return int(self.ends[-1])

    def take(self, rows: np.ndarray) -> np.ndarray:
        """The rows of these numbers, in this order."""
        taken = np.empty((len(rows), *self.caches[0].shape[1:]), dtype=np.uint8)
        of = np.searchsorted(self.ends, rows, side="right")
        for number in np.unique(of):
            if number == len(self.caches):
                raise IndexError(f"row {rows.max()} of {len(self)}")
            first = int(self.ends[number]) - len(self.caches[number])
            taken[of == number] = self.caches[number].take(rows[of == number] - first)
        return taken
