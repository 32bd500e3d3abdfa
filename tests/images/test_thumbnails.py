"""Small copies of images: size, gray, and nothing of the file but its pixels."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from stamp.images.thumbnails import SIZE, thumbnail, thumbnails, wanted_images

SECRET = "Jane Doe 1970-01-01"


def opened(made: dict) -> Image.Image:
    return Image.open(BytesIO(made["data"]))


def test_a_large_image_becomes_small_and_keeps_its_shape(tmp_path: Path) -> None:
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (300, 600, 3), dtype=np.uint8)).save(
        tmp_path / "a.png"
    )
    made = thumbnail(str(tmp_path / "a.png"))
    assert made["media"] == "image/jpeg" and opened(made).size == (SIZE, SIZE // 2)
    assert opened(made).mode == "RGB"


def test_a_small_gray_image_stays_as_it_is(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 255, (28, 28), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    made = thumbnail(str(tmp_path / "a.png"))
    assert made["media"] == "image/png" and opened(made).mode == "L"
    assert np.array_equal(np.asarray(opened(made)), pixels)
    cut = thumbnail(str(tmp_path / "a.png"), border=4)
    assert np.array_equal(np.asarray(opened(cut)), pixels[4:-4, 4:-4])


@pytest.mark.parametrize("side", [40, 300])
@pytest.mark.parametrize("kind", ["png", "jpg"])
def test_no_text_of_a_file_gets_into_its_copy(tmp_path: Path, side: int, kind: str) -> None:
    image, path = Image.new("L", (side, side), 90), tmp_path / f"a.{kind}"
    exif = Image.Exif()
    exif[0x010E] = SECRET
    if kind == "png":
        text = PngInfo()
        text.add_text("Patient", SECRET)
        image.save(path, pnginfo=text, exif=exif, icc_profile=SECRET.encode())
    else:
        image.save(path, comment=SECRET, exif=exif, icc_profile=SECRET.encode())
    assert SECRET.encode() in path.read_bytes() or kind == "png"
    data = thumbnail(str(path))["data"]
    assert SECRET.encode() not in data
    assert not {"comment", "icc_profile", "exif", "Patient"} & set(Image.open(BytesIO(data)).info)


def test_each_image_of_the_pairs_is_taken_once_in_order(tmp_path: Path) -> None:
    records = [
        {"largest": [{"images": ["b", "a"]}], "typical": [{"images": ["a", "c"]}]},
        {"largest": [{"images": ["c", "d"]}], "typical": []},
    ]
    images = wanted_images(records)
    assert images == ["b", "a", "c", "d"]
    for name in images:
        Image.new("L", (8, 8)).save(tmp_path / f"{name}.png")
    rows = pl.DataFrame({"image": images, "path": [str(tmp_path / f"{one}.png") for one in images]})
    assert thumbnails(rows, images, 0)["image"].to_list() == images
