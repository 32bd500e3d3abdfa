"""Images that are decoded as they are read have the pixels of the cache."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

from stamp.config.preprocessing import Preprocessing
from stamp.core.errors import UserError
from stamp.images.pixels import ImageFiles, write_cache
from stamp.images.view_pixels import open_view

HOW = Preprocessing(12, 3, "bicubic", 0.9)
DECODED = {"module": "stamp.images.decoded_images", "preprocessing": HOW.settings, "border": 1}
CACHED = {"module": "stamp.images.pixel_cache"}


@pytest.fixture
def view(tmp_path: Path) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    paths = [str(tmp_path / f"{number}.png") for number in range(11)]
    for path in paths:
        side = rng.integers(15, 30, size=2)
        Image.fromarray(rng.integers(0, 256, (*side, 3), dtype=np.uint8)).save(path)
    return pl.DataFrame({"image": [f"i{number}" for number in range(11)], "path": paths})


def test_decoded_images_are_the_rows_of_the_cache(tmp_path: Path, view: pl.DataFrame) -> None:
    files = {"pixels": tmp_path / "x.npy", "record": tmp_path / "x.json"}
    images = ImageFiles(view["image"].to_list(), view["path"].to_list(), "view", 1)
    write_cache(files["pixels"], files["record"], images, HOW, 2)
    cached = open_view(view, files, CACHED, "view", 1).pixels
    decoded = open_view(view, {}, {**DECODED, "content": None}, "view", 3).pixels
    assert decoded.shape == cached.shape and len(decoded) == len(cached)
    assert list(decoded.ids) == list(cached.ids)
    for start in (0, 4, 8):
        np.testing.assert_array_equal(decoded.rows(start, start + 4), cached.rows(start, start + 4))
    chosen = np.array([7, 0, 7, 10])
    np.testing.assert_array_equal(decoded.take(chosen), cached.take(chosen))


def test_an_image_that_is_gone_is_named(view: pl.DataFrame) -> None:
    gone = view["path"][6]
    Path(gone).unlink()
    pixels = open_view(view, {}, {**DECODED, "content": None}, "view", 2).pixels
    pixels.rows(0, 6)
    with pytest.raises(UserError, match=gone):
        pixels.rows(4, 8)


@pytest.mark.parametrize("change", ["size", "border", "content", "images"])
def test_the_digest_tells_what_the_pixels_are_made_from(view: pl.DataFrame, change: str) -> None:
    how = {**DECODED, "content": ["a"]}
    before = open_view(view, {}, how, "view", 1).digest
    assert open_view(view, {}, dict(how), "view", 4).digest == before
    if change == "size":
        how["preprocessing"] = Preprocessing(13, 3, "bicubic", 0.9).settings
    elif change == "images":
        view = view.reverse()
    else:
        how[change] = 2 if change == "border" else ["b"]
    assert open_view(view, {}, how, "view", 1).digest != before
