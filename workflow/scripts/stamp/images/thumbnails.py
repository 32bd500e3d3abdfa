"""Small copies of a few images, for a page: pixels only, nothing else of the file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from io import BytesIO
from typing import Any

import numpy as np
import polars as pl
from PIL import Image

from stamp.images.reading import open_image

SIZE = 112  # pixels of the longer side
LOSSLESS = 64  # up to this size a PNG is as small as a JPEG, and exact
MOST = 2000  # images: about 6 MB
SCHEMA = {"image": pl.String, "media": pl.String, "data": pl.Binary}


def wanted_images(records: Iterable[Mapping[str, Any]]) -> list[str]:
    """The images of the models' example pairs, each once, the first models' first."""
    pairs = [
        pair for record in records for which in ("largest", "typical") for pair in record[which]
    ]
    return list(dict.fromkeys(image for pair in pairs for image in pair["images"]))[:MOST]


def thumbnails(rows: pl.DataFrame, images: list[str], border: int) -> pl.DataFrame:
    """One row per image with its small copy; ``rows`` has the paths."""
    paths = dict(rows.select("image", "path").iter_rows())
    made = [{"image": image, **thumbnail(paths[image], border)} for image in images]
    return pl.DataFrame(made, schema=SCHEMA)


def thumbnail(path: str, border: int = 0) -> dict[str, Any]:
    """An image made small; gray where it is. Comments, EXIF and profiles of the file stay out."""
    image = open_image(path, 3)
    if border:
        image = image.crop((border, border, image.width - border, image.height - border))
    image.thumbnail((SIZE, SIZE))
    pixels = np.asarray(image)
    if (pixels == pixels[..., :1]).all():
        pixels = pixels[..., 0]
    clean, file = Image.fromarray(np.ascontiguousarray(pixels)), BytesIO()
    if max(clean.size) <= LOSSLESS:
        clean.save(file, "PNG", optimize=True)
        return {"media": "image/png", "data": file.getvalue()}
    clean.save(file, "JPEG", quality=82, optimize=True)
    return {"media": "image/jpeg", "data": file.getvalue()}
