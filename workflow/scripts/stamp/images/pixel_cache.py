"""The pixel cache, read: the rows of one view's cache file, or of several views' files in turn.

Batches are read with plain reads from the page cache, which all jobs share: faster than a memory
map per batch, and memory stays flat. :mod:`stamp.images.pixels` writes the cache; nothing here can
decode an image.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from stamp.core.artifacts import check_metadata, ids_digest, read_json
from stamp.core.errors import UserError
from stamp.images.view_pixels import OpenedView, Pixels


class PixelCache:
    """One cache file, opened for reading some rows at a time."""

    def __init__(self, target: Path, record: Path, ids: Sequence[str]):
        check_metadata(record, read_json(record), {"ids": ids_digest(ids)})
        self.ids = ids
        mapped = np.load(target, mmap_mode="r")
        self.path, self.shape, self.offset = target, mapped.shape, int(mapped.offset)
        self.bytes_per_image = int(np.prod(self.shape[1:]))

    def __len__(self) -> int:
        return int(self.shape[0])

    def rows(self, start: int, stop: int) -> np.ndarray:
        """The rows from ``start`` up to ``stop``, as a new array."""
        rows = np.empty((min(stop, len(self)) - start, *self.shape[1:]), dtype=np.uint8)
        with open(self.path, "rb") as file:
            self._read(file, start, rows)
        return rows

    def take(self, rows: np.ndarray) -> np.ndarray:
        """The rows with these numbers, in this order. Only they are read, from front to back."""
        if len(rows) and not 0 <= rows.min() <= rows.max() < len(self):
            raise IndexError(f"rows {rows.min()} to {rows.max()} of {len(self)}")
        taken = np.empty((len(rows), *self.shape[1:]), dtype=np.uint8)
        with open(self.path, "rb") as file:
            for place in np.argsort(rows, kind="stable"):
                self._read(file, int(rows[place]), taken[place : place + 1])
        return taken

    def _read(self, file: BufferedReader, start: int, rows: np.ndarray) -> None:
        """Fill ``rows`` from row ``start`` of the file on."""
        file.seek(self.offset + start * self.bytes_per_image)
        if file.readinto(rows.data) != rows.nbytes:
            raise UserError(f"{self.path}: the file ends too early; delete it and run again")


class JoinedCaches:
    """Several caches with one preprocessing, their rows numbered one after the other."""

    def __init__(self, caches: Sequence[Pixels]):
        self.caches = list(caches)
        self.ends = np.cumsum([len(cache) for cache in self.caches])

    def __len__(self) -> int:
        return int(self.ends[-1])

    def take(self, rows: np.ndarray) -> np.ndarray:
        """The rows with these numbers, in this order."""
        taken = np.empty((len(rows), *self.caches[0].shape[1:]), dtype=np.uint8)
        of = np.searchsorted(self.ends, rows, side="right")
        for number in np.unique(of):
            if number == len(self.caches):
                raise IndexError(f"row {rows.max()} of {len(self)}")
            first = int(self.ends[number]) - len(self.caches[number])
            taken[of == number] = self.caches[number].take(rows[of == number] - first)
        return taken


def open_view(
    view: pl.DataFrame, files: Mapping[str, Any], how: Mapping[str, Any], name: str, threads: int
) -> OpenedView:
    """A view with the pixel cache among a job's ``files``; the rest is for images without one."""
    cache = PixelCache(Path(files["pixels"]), Path(files["record"]), view["image"].to_list())
    return OpenedView(cache, read_json(files["record"])["pixels"])
