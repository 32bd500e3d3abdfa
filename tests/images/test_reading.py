"""Files of every kind become pictures by their content, and missing ones are counted first."""

from __future__ import annotations

import io
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from pydicom.uid import ExplicitVRLittleEndian, ImplicitVRLittleEndian
from tests.official.vindr import header

from stamp.config.preprocessing import Preprocessing
from stamp.core.errors import UserError
from stamp.images import pixels
from stamp.images.reading import open_image

RNG = np.random.default_rng(11)


def gray(file: Path) -> np.ndarray:
    picture = open_image(file, 1)
    assert picture.mode == "L"
    return np.asarray(picture)


def dicom_bytes(stored: np.ndarray, preamble: bool, syntax: str = ExplicitVRLittleEndian) -> bytes:
    data = header(stored, "x", syntax)
    data.WindowCenter, data.WindowWidth = "128", "256"
    data.PixelData = stored.tobytes()
    data["PixelData"].VR = "OB"
    opened = io.BytesIO()
    if preamble:
        data.save_as(opened, enforce_file_format=True)
    else:
        del data.file_meta
        data.save_as(opened, implicit_vr=syntax == ImplicitVRLittleEndian, little_endian=True)
    return opened.getvalue()


def test_gray_of_16_bits_is_scaled_by_its_full_range_and_not_clipped(tmp_path: Path) -> None:
    levels = np.arange(65536, dtype=np.uint16).reshape(256, 256)
    Image.fromarray(levels).save(tmp_path / "a.png")
    expected = [round(v * 255 / 65535) for v in range(65536)]
    assert gray(tmp_path / "a.png").ravel().tolist() == expected
    colour = open_image(tmp_path / "a.png", 3)
    assert colour.mode == "RGB"
    assert np.asarray(colour)[..., 2].ravel().tolist() == expected


def test_gray_of_32_bits_is_taken_as_16(tmp_path: Path) -> None:
    levels = np.array([[-5, 0, 257], [65535, 70000, 32896]], dtype=np.int32)
    Image.fromarray(levels).save(tmp_path / "a.tiff")
    assert gray(tmp_path / "a.tiff").tolist() == [[0, 0, 1], [255, 255, 128]]


@pytest.mark.parametrize("channels", [1, 3])
def test_transparency_is_ignored(tmp_path: Path, channels: int) -> None:
    rgba = RNG.integers(0, 256, size=(20, 20, 4), dtype=np.uint8)
    rgba[:10, :, 3] = 0
    Image.fromarray(rgba).save(tmp_path / "a.png")
    Image.fromarray(rgba[..., :3]).save(tmp_path / "b.png")
    four, three = (open_image(tmp_path / name, channels) for name in ("a.png", "b.png"))
    assert np.array_equal(np.asarray(four), np.asarray(three))
    pair = Image.fromarray(rgba[..., 0])
    pair.putalpha(Image.fromarray(rgba[..., 3]))
    pair.save(tmp_path / "c.png")
    found = np.asarray(open_image(tmp_path / "c.png", channels))
    assert np.array_equal(found.reshape(20, 20, -1)[..., 0], rgba[..., 0])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("transparency", [None, bytes([0] * 128 + [255] * 128)])
def test_a_palette_gives_its_colours(tmp_path: Path, transparency: bytes | None) -> None:
    numbers = RNG.integers(0, 256, size=(16, 16), dtype=np.uint8)
    palette = RNG.integers(0, 256, size=(256, 3), dtype=np.uint8)
    picture = Image.fromarray(numbers)
    picture.putpalette(palette.tobytes())
    extra: dict[str, Any] = {} if transparency is None else {"transparency": transparency}
    picture.save(tmp_path / "a.png", **extra)
    with Image.open(tmp_path / "a.png") as opened:
        assert opened.mode == "P"
    assert np.array_equal(np.asarray(open_image(tmp_path / "a.png", 3)), palette[numbers])


@pytest.mark.parametrize("channels", [1, 3])
def test_a_jpeg_for_print_is_read(tmp_path: Path, channels: int) -> None:
    picture = Image.new("RGB", (32, 32), (200, 60, 30))
    picture.convert("CMYK").save(tmp_path / "a.jpg", quality=100)
    found = np.asarray(open_image(tmp_path / "a.jpg", channels), dtype=int)
    expected = np.asarray(picture.convert("L" if channels == 1 else "RGB"), dtype=int)
    assert np.abs(found - expected).max() <= 6


def test_the_orientation_tag_is_not_applied(tmp_path: Path) -> None:
    tags = Image.Exif()
    tags[0x0112] = 6
    picture = Image.fromarray(RNG.integers(0, 256, size=(30, 40), dtype=np.uint8))
    picture.save(tmp_path / "a.png", exif=tags)
    assert np.array_equal(gray(tmp_path / "a.png"), np.asarray(picture))


@pytest.mark.parametrize("name", ["a.dcm", "a.dicom", "a.png", "a"])
def test_marked_dicom_is_known_by_its_content(tmp_path: Path, name: str) -> None:
    stored = RNG.integers(0, 256, size=(12, 10), dtype=np.uint8)
    (tmp_path / name).write_bytes(dicom_bytes(stored, preamble=True))
    assert np.array_equal(gray(tmp_path / name), stored)
    colour = open_image(tmp_path / name, 3)
    assert np.array_equal(np.asarray(colour), np.repeat(stored[..., None], 3, axis=2))


@pytest.mark.parametrize("syntax", [ImplicitVRLittleEndian, ExplicitVRLittleEndian])
def test_dicom_without_a_preamble_is_known_by_its_suffix_alone(tmp_path: Path, syntax: str) -> None:
    stored = RNG.integers(0, 256, size=(12, 10), dtype=np.uint8)
    raw = dicom_bytes(stored, preamble=False, syntax=syntax)
    assert raw[128:132] != b"DICM"
    for name in ("a.dcm", "a.DICOM"):
        (tmp_path / name).write_bytes(raw)
        assert np.array_equal(gray(tmp_path / name), stored)
    (tmp_path / "a.png").write_bytes(raw)
    with pytest.raises(UserError, match="can't be read as an image"):
        open_image(tmp_path / "a.png", 1)


def test_a_png_that_is_named_as_dicom_is_read_as_what_it_is(tmp_path: Path) -> None:
    picture = Image.fromarray(RNG.integers(0, 256, size=(12, 10), dtype=np.uint8))
    picture.save(tmp_path / "a.dcm", format="PNG")
    assert np.array_equal(gray(tmp_path / "a.dcm"), np.asarray(picture))


@pytest.mark.parametrize("name", ["a.png", "a.dcm"])
@pytest.mark.parametrize("content", [b"", b"not a picture", bytes(300)])
def test_what_is_no_picture_is_named_in_one_line(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError) as caught:
        open_image(tmp_path / name, 1)
    assert str(caught.value).startswith(f"{tmp_path / name}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["EPS", "GIF", "BMP", "PDF", "ICO"])
def test_other_formats_are_not_tried_whatever_the_name_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """An EPS would start Ghostscript, a program that runs what is in the file."""
    monkeypatch.setattr(subprocess, "check_call", lambda *_, **__: pytest.fail("it ran a program"))
    picture = Image.fromarray(RNG.integers(0, 256, size=(20, 20), dtype=np.uint8))
    picture.save(tmp_path / "a.png", format=kind)
    with pytest.raises(
        UserError, match=r"a\.png: can't be read as an image: is not PNG, JPEG, TIFF"
    ):
        open_image(tmp_path / "a.png", 1)


@pytest.mark.parametrize("kind", ["TIFF", "PNG"])
def test_several_frames_or_pages_are_refused(tmp_path: Path, kind: str) -> None:
    pages = [Image.fromarray(np.full((8, 8), level, dtype=np.uint8)) for level in (0, 100, 200)]
    pages[0].save(tmp_path / "a.png", format=kind, save_all=True, append_images=pages[1:])
    with pytest.raises(UserError, match=r"a\.png: has 3 frames; an image of one frame is needed"):
        open_image(tmp_path / "a.png", 1)


def test_of_a_cameras_jpeg_with_previews_the_picture_itself_is_read(tmp_path: Path) -> None:
    one, preview = (Image.new("RGB", (16, 16), (level, level, level)) for level in (40, 200))
    one.save(tmp_path / "a.jpg", format="MPO", save_all=True, append_images=[preview])
    assert np.abs(gray(tmp_path / "a.jpg").astype(int) - 40).max() <= 1


@pytest.mark.parametrize("name", ["a.png", "a.dcm"])
def test_a_picture_that_may_not_be_read_says_so(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"secret")
    path.chmod(0)
    with as_nobody(tmp_path), pytest.raises(UserError) as caught:
        open_image(path, 1)
    assert str(caught.value) == f"{path}: no permission to read it"


@contextmanager
def as_nobody(folder: Path) -> Iterator[None]:
    """Root may read everything: be somebody else, who may enter the folder."""
    if os.geteuid() != 0:
        yield
        return
    for each in (folder, *folder.parents):
        if each.stat().st_uid == 0 and each.is_relative_to(tempfile.gettempdir()):
            each.chmod(each.stat().st_mode | 0o011)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_an_absent_picture_is_named(tmp_path: Path) -> None:
    for name in ("a.png", "a.dcm"):
        with pytest.raises(UserError) as caught:
            open_image(tmp_path / name, 1)
        assert str(caught.value) == f"{tmp_path / name}: no such image"


def test_the_cache_reads_dicom_as_it_reads_png(tmp_path: Path) -> None:
    stored = RNG.integers(0, 256, size=(40, 40), dtype=np.uint8)
    Image.fromarray(stored).save(tmp_path / "a.png")
    (tmp_path / "a.dcm").write_bytes(dicom_bytes(stored, preamble=True))
    how = Preprocessing(24, 1)
    one, two = (pixels.decode(str(tmp_path / name), how) for name in ("a.png", "a.dcm"))
    assert np.array_equal(one, two)


def test_missing_images_are_counted_before_any_is_decoded(tmp_path: Path) -> None:
    (tmp_path / "broken.png").write_bytes(b"not a picture")
    paths = [str(tmp_path / name) for name in ("broken.png", "b.png", "a.png")]
    target, record = tmp_path / "c.npy", tmp_path / "c.json"
    line = f"here: 2 of 3 images are missing, first {paths[1]}"
    with pytest.raises(UserError) as caught:
        images = pixels.ImageFiles(list("xyz"), paths, "here")
        pixels.write_cache(target, record, images, Preprocessing(24, 1), 1)
    assert str(caught.value) == line
    assert not target.exists() and not record.exists()
