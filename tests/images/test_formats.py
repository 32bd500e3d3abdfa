"""Every depth and colour type that PNG and JPEG have is read as the picture that was written."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from stamp.core.errors import UserError
from stamp.images.reading import open_image

RNG = np.random.default_rng(5)
GRAY, COLOUR, PALETTE, GRAY_ALPHA, COLOUR_ALPHA = 0, 2, 3, 4, 6  # colour types of PNG


def png(
    samples: np.ndarray, bits: int, kind: int, extra: dict[bytes, bytes] | None = None
) -> bytes:
    """A PNG written by the letter of ISO 15948, by nobody's library; samples [h, w, channels]."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    height, width = samples.shape[:2]
    rows = samples.reshape(height, -1)
    if bits == 16:
        raw = [row.astype(">u2").tobytes() for row in rows]
    elif bits == 8:
        raw = [row.astype(np.uint8).tobytes() for row in rows]
    else:
        places = np.arange(bits - 1, -1, -1)
        raw = [np.packbits(((row[:, None] >> places) & 1).ravel()).tobytes() for row in rows]
    header = struct.pack(">IIBBBBB", width, height, bits, kind, 0, 0, 0)
    chunks = {b"IHDR": header, **(extra or {})}
    chunks |= {b"IDAT": zlib.compress(b"".join(b"\0" + row for row in raw)), b"IEND": b""}
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(name, data) for name, data in chunks.items())


def opened(tmp_path: Path, raw: bytes, channels: int) -> np.ndarray:
    (tmp_path / "a.png").write_bytes(raw)
    return np.asarray(open_image(tmp_path / "a.png", channels)).astype(int)


def luma(colours: np.ndarray) -> np.ndarray:
    """ITU-R 601-2 luma of 8-bit colours, as a gray picture of them is."""
    return colours.astype(float) @ [0.299, 0.587, 0.114]


@pytest.mark.parametrize("bits", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("channels", [1, 3])
def test_gray_of_any_depth_fills_the_range(tmp_path: Path, bits: int, channels: int) -> None:
    levels = RNG.integers(0, 2**bits, size=(13, 11))
    expected = np.rint(levels * 255 / (2**bits - 1))
    found = opened(tmp_path, png(levels, bits, GRAY), channels)
    assert np.array_equal(found.reshape(13, 11, channels)[..., -1], expected)


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("kind", [COLOUR, COLOUR_ALPHA])
def test_colours_of_8_and_16_bits_keep_their_values(tmp_path: Path, bits: int, kind: int) -> None:
    """Pillow drops the low byte of 16-bit colours, so that those may be one level darker."""
    samples = RNG.integers(0, 2**bits, size=(13, 11, 3 if kind == COLOUR else 4))
    expected = samples[..., :3] * 255 / (2**bits - 1)
    raw = png(samples, bits, kind)
    most = 0.01 if bits == 8 else 1.0
    assert np.abs(opened(tmp_path, raw, 3) - expected).max() <= most
    assert np.abs(opened(tmp_path, raw, 1) - luma(expected)).max() <= most + 0.51


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("channels", [1, 3])
def test_transparent_gray_keeps_the_gray_that_is_stored(
    tmp_path: Path, bits: int, channels: int
) -> None:
    samples = RNG.integers(0, 2**bits, size=(13, 11, 2))
    samples[:6, :, 1] = 0
    found = opened(tmp_path, png(samples, bits, GRAY_ALPHA), channels).reshape(13, 11, channels)
    expected = samples[..., 0] * 255 / (2**bits - 1)
    assert np.abs(found[..., 0] - expected).max() <= (0.01 if bits == 8 else 1.0)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("bits", [1, 8, 16])
@pytest.mark.parametrize("channels", [1, 3])
def test_a_gray_level_that_means_transparent_is_shown_as_it_is(
    tmp_path: Path, bits: int, channels: int
) -> None:
    levels = RNG.integers(0, 2**bits, size=(13, 11))
    extra = {b"tRNS": struct.pack(">H", int(levels[0, 0]))}
    found = opened(tmp_path, png(levels, bits, GRAY, extra), channels).reshape(13, 11, channels)
    assert np.array_equal(found[..., 0], np.rint(levels * 255 / (2**bits - 1)))


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_a_palette_of_any_depth_gives_its_colours(tmp_path: Path, bits: int) -> None:
    numbers = RNG.integers(0, 2**bits, size=(13, 11))
    palette = RNG.integers(0, 256, size=(2**bits, 3), dtype=np.uint8)
    raw = png(numbers, bits, PALETTE, {b"PLTE": palette.tobytes()})
    assert np.array_equal(opened(tmp_path, raw, 3), palette[numbers])
    assert np.abs(opened(tmp_path, raw, 1) - luma(palette[numbers])).max() <= 0.51


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
@pytest.mark.parametrize("progressive", [False, True])
@pytest.mark.parametrize("channels", [1, 3])
def test_jpeg_in_gray_colour_or_for_print_is_close_to_what_was_written(
    tmp_path: Path, mode: str, progressive: bool, channels: int
) -> None:
    ramp = np.linspace(0, 255, 64)
    smooth = np.stack(
        [
            ramp[None, :] + 0 * ramp[:, None],
            ramp[:, None] + 0 * ramp,
            255 - ramp[None, :] + 0 * ramp[:, None],
        ],
        axis=2,
    )
    colours = Image.fromarray(smooth.astype(np.uint8))
    colours.convert(mode).save(tmp_path / "a.jpg", quality=95, progressive=progressive)
    found = np.asarray(open_image(tmp_path / "a.jpg", channels), dtype=float)
    wanted = smooth if mode != "L" else np.repeat(luma(smooth)[..., None], 3, axis=2)
    expected = luma(wanted) if channels == 1 else wanted
    assert np.abs(found - expected).mean() < 3
    assert np.abs(found - expected).max() < 30


@pytest.mark.parametrize("order", ["<u2", ">u2"])
def test_16_bit_tiff_of_either_byte_order_is_scaled_by_its_range(
    tmp_path: Path, order: str
) -> None:
    levels = RNG.integers(0, 65536, size=(13, 11)).astype(order)
    mode = "I;16" if order == "<u2" else "I;16B"
    Image.frombytes(mode, (11, 13), levels.tobytes()).save(tmp_path / "a.tiff")
    found = np.asarray(open_image(tmp_path / "a.tiff", 1))
    assert np.array_equal(found, np.rint(levels.astype(float) / 257))


def test_numbers_with_a_decimal_point_are_refused_since_they_have_no_range(tmp_path: Path) -> None:
    Image.fromarray(RNG.random((13, 11)).astype(np.float32)).save(tmp_path / "a.tiff")
    with pytest.raises(UserError, match=r"a.tiff: has floating-point values, .* 8 or 16 bits"):
        open_image(tmp_path / "a.tiff", 1)
