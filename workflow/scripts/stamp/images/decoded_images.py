"""The images of a view decoded each time that they are asked for; nothing is kept on disk.

They have the pixels and the interface of :class:`~stamp.images.pixel_cache.PixelCache`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import polars as pl

from stamp.config.preprocessing import Preprocessing
from stamp.core.artifacts import ids_digest
from stamp.core.errors import UserError
from stamp.images.pixels import ImageFiles, decode
from stamp.images.view_pixels import OpenedView


class Decoder:
    """Decodes image files with some threads, all by one preprocessing and border."""

    def __init__(self, how: Preprocessing, border: int, threads: int):
        self.how, self.border = how, border
        self.workers = ThreadPoolExecutor(threads)

    def __call__(self, paths: Sequence[str]) -> np.ndarray:
        """The images as uint8 [n, size, size, channels]."""
        shape = (len(paths), self.how.size, self.how.size, self.how.channels)
        images = np.empty(shape, dtype=np.uint8)
        each = self.workers.map(lambda path: decode(path, self.how, self.border), paths)
        for place, image in enumerate(each):
            images[place] = image
        return images


class DecodedImages:
    """The images of a view in order, decoded by some threads as they are read."""

    def __init__(self, images: ImageFiles, how: Preprocessing, threads: int):
        if not images.ids:
            raise UserError(f"{images.name}: the view has no image")
        self.ids, self.paths = images.ids, images.paths
        self.shape = (len(images.ids), how.size, how.size, how.channels)
        self.decoder = Decoder(how, images.border, threads)

    def __len__(self) -> int:
        return len(self.ids)

    def rows(self, start: int, stop: int) -> np.ndarray:
        """The rows from ``start`` up to ``stop``."""
        return self.decoder(self.paths[start:stop])

    def take(self, rows: np.ndarray) -> np.ndarray:
        """The rows with these numbers, in this order."""
        return self.decoder([self.paths[row] for row in rows])


def open_view(
    view: pl.DataFrame, files: Mapping[str, Any], how: Mapping[str, Any], name: str, threads: int
) -> OpenedView:
    """A view whose images are decoded as they are read; no file but those of the images counts.

    ``how`` has the preprocessing, the border, and what stands for the content of the user's files.
    """
    images = ImageFiles(view["image"].to_list(), view["path"].to_list(), name, how["border"])
    decoded = DecodedImages(images, Preprocessing(**how["preprocessing"]), threads)
    told = [how["preprocessing"], how["border"], how["content"]]
    return OpenedView(decoded, ids_digest([*images.ids, "", str(told)]))
