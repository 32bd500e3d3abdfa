"""A DICOM file becomes the picture that the standard says, or one line that says why not."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from pydicom.data import get_testdata_file
from pydicom.dataset import Dataset
from pydicom.encaps import encapsulate
from pydicom.pixels import apply_modality_lut, apply_windowing
from pydicom.uid import (
    MPEG2MPML,
    ExplicitVRBigEndian,
    ExplicitVRLittleEndian,
    JPEG2000Lossless,
    JPEGBaseline8Bit,
    JPEGExtended12Bit,
    JPEGLSLossless,
    RLELossless,
)
from tests.official.vindr import header

from stamp.core.errors import UserError
from stamp.images import dicom

RNG = np.random.default_rng(5)


def saved(
    folder: Path, stored: np.ndarray, syntax: str = ExplicitVRLittleEndian, **elements: Any
) -> Path:
    """A file with these stored values; ``elements`` are set as they are."""
    data = header(stored, "x", syntax)
    data.PixelRepresentation = int(np.issubdtype(stored.dtype, np.signedinteger))
    if stored.ndim == 3:
        data.SamplesPerPixel, data.PlanarConfiguration = 3, 0
        data.PhotometricInterpretation = "RGB"
    for name, value in elements.items():
        setattr(data, name, value)
    data.HighBit = data.BitsStored - 1
    if "PixelData" not in data:
        big = syntax == ExplicitVRBigEndian
        data.PixelData = (stored.byteswap() if big else stored).tobytes()
        data["PixelData"].VR = "OW" if stored.dtype.itemsize > 1 else "OB"
    file = folder / "x.dcm"
    data.save_as(file, enforce_file_format=True)
    return file


def shown(*arguments: Any, **elements: Any) -> np.ndarray:
    picture = dicom.read(saved(*arguments, **elements))
    assert picture.mode in ("L", "RGB")
    return np.asarray(picture)


def linear(x: float, c: float, w: float) -> float:
    """PS3.3 C.11.2.1.2.1 word for word, y from 0 to 255."""
    if x <= c - 0.5 - (w - 1) / 2:
        return 0.0
    if x > c - 0.5 + (w - 1) / 2:
        return 255.0
    return ((x - (c - 0.5)) / (w - 1) + 0.5) * 255


def levels(bits: int, signed: bool = False) -> np.ndarray:
    low = -(2 ** (bits - 1)) if signed else 0
    values = np.arange(low, low + 2**bits, max(1, 2**bits // 4096))
    side = int(np.sqrt(len(values)))
    return values[: side * side].reshape(side, side).astype(np.int16 if signed else np.uint16)


def test_a_window_of_the_whole_range_is_a_straight_line(tmp_path: Path) -> None:
    stored = levels(12)
    found = shown(tmp_path, stored, BitsStored=12, WindowCenter="2048", WindowWidth="4096")
    assert np.array_equal(found, np.rint(stored * (255 / 4095)))


def test_the_example_window_gives_the_numbers_computed_by_hand() -> None:
    values = np.array([-1000.0, -160, -159, 40, 239, 240, 3000])
    found = dicom.windowed(values, dicom.Window(40, 400)) * 255
    assert found == pytest.approx([0, 0, 255 / 399, 200 * 255 / 399, 255, 255, 255])


@given(
    center=st.floats(-3000, 3000),
    width=st.floats(1, 5000),
    values=st.lists(st.integers(-4000, 4000), min_size=1, max_size=30),
)
def test_a_linear_window_is_the_formula_of_the_standard(
    center: float, width: float, values: list[int]
) -> None:
    found = 255 * dicom.windowed(np.array(values, dtype=np.float64), dicom.Window(center, width))
    assert found == pytest.approx([linear(x, center, width) for x in values], abs=1e-6)


@pytest.mark.parametrize("function", dicom.FUNCTIONS)
@pytest.mark.parametrize("signed", [False, True])
def test_every_function_agrees_with_pydicom(function: str, signed: bool) -> None:
    data = Dataset()
    data.PhotometricInterpretation, data.BitsStored = "MONOCHROME2", 12
    data.PixelRepresentation = int(signed)
    data.WindowCenter, data.WindowWidth, data.VOILUTFunction = "700.5", "900", function
    stored = levels(12, signed).astype(np.float64)
    low = -2048 if signed else 0
    found = dicom.windowed(stored, dicom.Window(700.5, 900, function))
    assert found == pytest.approx((apply_windowing(stored, data) - low) / 4095, abs=1e-12)


@pytest.mark.parametrize("function", [*dicom.FUNCTIONS, None])
def test_a_file_says_which_function_its_window_has(tmp_path: Path, function: str | None) -> None:
    extra = {"VOILUTFunction": function} if function else {}
    stored = levels(12)
    found = shown(tmp_path, stored, BitsStored=12, WindowCenter="1500", WindowWidth="700", **extra)
    window = dicom.Window(1500, 700, function or "LINEAR")
    assert np.array_equal(found, np.rint(255 * dicom.windowed(stored.astype(float), window)))


def test_a_width_of_one_is_a_step(tmp_path: Path) -> None:
    stored = np.array([[99, 100, 101]], dtype=np.uint16)
    found = shown(tmp_path, stored, WindowCenter="100.5", WindowWidth="1")
    assert found.tolist() == [[0, 0, 255]]


@pytest.mark.parametrize(
    "window",
    [
        {"WindowCenter": "500", "WindowWidth": "321"},
        {"WindowCenter": "500", "WindowWidth": "321", "VOILUTFunction": "SIGMOID"},
        {},
    ],
)
def test_monochrome1_is_exactly_255_less_monochrome2(
    tmp_path: Path, window: dict[str, str]
) -> None:
    stored = RNG.integers(0, 1024, size=(40, 30)).astype(np.uint16)
    one = shown(tmp_path, stored, PhotometricInterpretation="MONOCHROME1", **window)
    two = shown(tmp_path, stored, PhotometricInterpretation="MONOCHROME2", **window)
    assert len(np.unique(two)) > 50
    assert np.array_equal(one, 255 - two)


@pytest.mark.parametrize(
    "window",
    [
        {},
        {"WindowCenter": "100", "WindowWidth": "0"},
        {"WindowCenter": "100", "WindowWidth": "-5"},
        {"WindowCenter": "100", "WindowWidth": "0.5"},
        {"WindowCenter": "100", "WindowWidth": ""},
        {"WindowCenter": "100"},
    ],
)
def test_without_a_usable_window_the_pixels_own_range_is_shown(
    tmp_path: Path, window: dict[str, str]
) -> None:
    stored = RNG.integers(300, 1301, size=(50, 50)).astype(np.uint16)
    low, high = int(stored.min()), int(stored.max())
    expected = np.rint((stored.astype(float) - low) / (high - low) * 255)
    assert np.array_equal(shown(tmp_path, stored, **window), expected)


def test_a_picture_of_one_value_is_black_and_no_division_fails(tmp_path: Path) -> None:
    assert not shown(tmp_path, np.full((4, 4), 7, dtype=np.uint16)).any()


def test_of_several_windows_the_first_counts(tmp_path: Path) -> None:
    stored = levels(12)
    several = shown(
        tmp_path, stored, WindowCenter=["2000", "100"], WindowWidth=["1000", "20"], BitsStored=12
    )
    one = shown(tmp_path, stored, WindowCenter="2000", WindowWidth="1000", BitsStored=12)
    assert np.array_equal(several, one)


def test_values_are_rescaled_before_the_window(tmp_path: Path) -> None:
    stored = levels(12)
    found = shown(
        tmp_path,
        stored,
        BitsStored=12,
        RescaleSlope="2",
        RescaleIntercept="-1024",
        WindowCenter="40",
        WindowWidth="400",
    )
    expected = [round(linear(2 * int(x) - 1024, 40, 400)) for x in stored.ravel()]
    assert found.ravel().tolist() == expected


def test_an_empty_slope_counts_as_none(tmp_path: Path) -> None:
    stored = levels(12)
    window = {"WindowCenter": "40", "WindowWidth": "400"}
    empty = shown(tmp_path, stored, RescaleSlope=None, RescaleIntercept=None, **window)
    assert np.array_equal(empty, shown(tmp_path, stored, **window))


@pytest.mark.parametrize("syntax", [ExplicitVRLittleEndian, ExplicitVRBigEndian])
def test_signed_values_keep_their_sign_and_unused_bits_are_ignored(
    tmp_path: Path, syntax: str
) -> None:
    values = levels(12, signed=True)
    noise = RNG.integers(0, 16, size=values.shape).astype(np.uint16) << 12
    stored = ((values.astype(np.uint16) & 0x0FFF) | noise).view(np.int16)
    found = shown(tmp_path, stored, syntax, BitsStored=12, WindowCenter="-100", WindowWidth="900")
    assert found.ravel().tolist() == [round(linear(int(x), -100, 900)) for x in values.ravel()]


def test_unsigned_values_with_unused_bits_are_read_from_the_stored_ones(tmp_path: Path) -> None:
    values = levels(10)
    noise = RNG.integers(0, 64, size=values.shape).astype(np.uint16) << 10
    found = shown(tmp_path, values | noise, BitsStored=10, WindowCenter="512", WindowWidth="1024")
    assert np.array_equal(found, np.rint(values * (255 / 1023)))


def lookup(first: int, entries: np.ndarray, bits: int, signed: bool = False) -> list[Dataset]:
    item = Dataset()
    item.add_new("LUTDescriptor", "SS" if signed else "US", [len(entries) % 2**16, first, bits])
    item.add_new("LUTData", "US", entries.tolist())
    return [item]


def test_lookup_tables_go_entry_by_entry_and_hold_at_their_ends(tmp_path: Path) -> None:
    stored = levels(10)
    modality = RNG.integers(0, 65536, size=600)
    interest = np.sort(RNG.integers(0, 4096, size=300))
    found = shown(
        tmp_path,
        stored,
        ModalityLUTSequence=lookup(200, modality, 16),
        VOILUTSequence=lookup(20000, interest, 12),
        WindowCenter="1",
        WindowWidth="2",
    )
    for x, y in zip(stored.ravel().tolist(), found.ravel().tolist(), strict=True):
        value = int(modality[min(max(x - 200, 0), 599)])
        entry = int(interest[min(max(value - 20000, 0), 299)])
        assert y == round(entry * 255 / 4095)


def test_a_modality_table_agrees_with_pydicom(tmp_path: Path) -> None:
    stored = levels(10)
    table = lookup(100, RNG.integers(0, 65536, size=700), 16)
    data = pydicom.dcmread(saved(tmp_path, stored, ModalityLUTSequence=table))
    found = dicom.display(data).modality
    assert found is not None
    assert np.array_equal(found.at(stored.astype(float)), apply_modality_lut(stored, data))


def test_an_8_bit_table_may_have_more_than_256_entries(tmp_path: Path) -> None:
    stored = levels(10)
    entries = np.arange(1024) // 4
    found = shown(tmp_path, stored, BitsStored=10, VOILUTSequence=lookup(0, entries, 8))
    assert np.array_equal(found, stored // 4)


@pytest.mark.parametrize("interpretation", ["MONOCHROME1", "MONOCHROME2"])
@pytest.mark.parametrize("limit", [None, 5])
def test_padding_is_darkest_and_does_not_count_for_the_range(
    tmp_path: Path, interpretation: str, limit: int | None
) -> None:
    stored = RNG.integers(500, 900, size=(20, 20)).astype(np.uint16)
    stored[:3], stored[3] = 0, 4
    extra = {"PixelPaddingRangeLimit": limit} if limit is not None else {}
    found = shown(
        tmp_path, stored, PhotometricInterpretation=interpretation, PixelPaddingValue=0, **extra
    )
    assert not found[:3].any()
    inside = stored[4:].astype(float) if limit is not None else stored[3:].astype(float)
    expected = np.rint((inside - inside.min()) / (inside.max() - inside.min()) * 255)
    expected = 255 - expected if interpretation == "MONOCHROME1" else expected
    assert np.array_equal(found[-len(inside) :], expected)
    assert limit is None or not found[3].any()


def test_a_picture_of_padding_alone_is_black(tmp_path: Path) -> None:
    stored = np.full((4, 4), 9, dtype=np.uint16)
    found = shown(tmp_path, stored, PixelPaddingValue=9, PhotometricInterpretation="MONOCHROME1")
    assert not found.any()


def test_stored_values_too_far_apart_for_a_table_give_the_same(tmp_path: Path) -> None:
    stored = RNG.integers(0, 2**30, size=(30, 30)).astype(np.int64)
    how = dicom.Display(window=dicom.Window(2**29, 2**29), inverted=True)
    direct = 255 - np.rint(255 * dicom.windowed(stored.astype(float), dicom.Window(2**29, 2**29)))
    assert np.array_equal(dicom.gray(stored, how), direct)


@pytest.mark.parametrize("syntax", [JPEG2000Lossless, RLELossless])
def test_lossless_compression_changes_nothing(tmp_path: Path, syntax: str) -> None:
    stored = RNG.integers(0, 65536, size=(32, 48)).astype(np.uint16)
    plain = saved(tmp_path, stored, WindowCenter="30000", WindowWidth="50000")
    expected = np.asarray(dicom.read(plain))
    data = pydicom.dcmread(plain)
    data.compress(syntax)
    data.save_as(plain)
    assert pydicom.dcmread(plain).file_meta.TransferSyntaxUID == syntax
    assert np.array_equal(np.asarray(dicom.read(plain)), expected)


def test_baseline_jpeg_gives_what_pillow_decodes(tmp_path: Path) -> None:
    picture = np.add.outer(np.arange(128), np.arange(128)).astype(np.uint8)
    coded = io.BytesIO()
    Image.fromarray(picture).save(coded, "JPEG", quality=80)
    data = encapsulate([coded.getvalue()])
    found = shown(
        tmp_path, picture, JPEGBaseline8Bit, PixelData=data, WindowCenter="128", WindowWidth="256"
    )
    assert np.array_equal(found, np.asarray(Image.open(coded)))


@pytest.mark.parametrize("bits", [8, 10, 12, 16])
@pytest.mark.parametrize("signed", [False, True])
def test_jpeg_2000_keeps_every_depth_and_sign(tmp_path: Path, bits: int, signed: bool) -> None:
    low = -(2 ** (bits - 1)) if signed else 0
    stored = low + RNG.integers(0, 2**bits, size=(64, 64))
    kind = f"{'' if signed else 'u'}int{8 if bits == 8 else 16}"
    file = saved(tmp_path, stored.astype(kind), BitsStored=bits)
    plain = np.asarray(dicom.read(file))
    data = pydicom.dcmread(file)
    data.compress(JPEG2000Lossless)
    data.save_as(file)
    assert np.array_equal(np.asarray(dicom.read(file)), plain)


def test_colours_stay_as_they_are(tmp_path: Path) -> None:
    colours = RNG.integers(0, 256, size=(10, 12, 3)).astype(np.uint8)
    assert np.array_equal(shown(tmp_path, colours), colours)


def test_16_bit_colours_are_scaled_by_their_full_range(tmp_path: Path) -> None:
    colours = RNG.integers(0, 65536, size=(10, 12, 3)).astype(np.uint16)
    assert np.array_equal(shown(tmp_path, colours), np.rint(colours / 257))


def test_luminance_and_chrominance_become_colours(tmp_path: Path) -> None:
    colours = RNG.integers(0, 256, size=(10, 12, 3)).astype(np.uint8)
    ybr = np.asarray(Image.fromarray(colours).convert("YCbCr"))
    found = shown(tmp_path, ybr, PhotometricInterpretation="YBR_FULL")
    assert np.abs(found.astype(int) - colours).max() <= 3


def test_a_palette_gives_its_colours(tmp_path: Path) -> None:
    numbers = RNG.integers(0, 256, size=(6, 6)).astype(np.uint8)
    palette = RNG.integers(0, 256, size=(3, 256)).astype(np.uint8)
    elements: dict[str, Any] = {"PhotometricInterpretation": "PALETTE COLOR"}
    for name, table in zip(("Red", "Green", "Blue"), palette, strict=True):
        elements[f"{name}PaletteColorLookupTableDescriptor"] = [256, 0, 8]
        elements[f"{name}PaletteColorLookupTableData"] = table.tobytes()
    found = shown(tmp_path, numbers, **elements)
    assert np.array_equal(found, palette.T[numbers])


def test_several_frames_are_refused_by_number(tmp_path: Path) -> None:
    stored = np.zeros((4, 4), dtype=np.uint8)
    file = saved(tmp_path, stored, NumberOfFrames=3, PixelData=bytes(48))
    with pytest.raises(UserError) as caught:
        dicom.read(file)
    assert str(caught.value).startswith(f"{file}: has 3 frames")


def test_a_syntax_that_nothing_reads_is_named(tmp_path: Path) -> None:
    stored = np.zeros((4, 4), dtype=np.uint8)
    file = saved(tmp_path, stored, MPEG2MPML, PixelData=encapsulate([bytes(8)]))
    with pytest.raises(UserError) as caught:
        dicom.read(file)
    assert str(caught.value) == (
        f"{file}: no installed decoder reads its transfer syntax 'MPEG2 Main Profile / Main Level'"
        ": convert the file to an uncompressed one"
    )


def test_a_syntax_whose_decoder_is_not_installed_names_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = np.zeros((4, 4), dtype=np.uint8)
    file = saved(tmp_path, stored, JPEGLSLossless, PixelData=encapsulate([bytes(8)]))
    monkeypatch.setattr(pydicom.pixels.get_decoder(JPEGLSLossless), "_available", {})
    with pytest.raises(UserError) as caught:
        dicom.read(file)
    assert str(caught.value) == (
        f"{file}: no installed decoder reads its transfer syntax 'JPEG-LS Lossless Image "
        "Compression': pip install '.[dicom]', or only: pip install python-gdcm"
    )


def test_what_only_another_decoder_could_read_names_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = np.zeros((4, 4), dtype=np.uint8)
    file = saved(tmp_path, stored, JPEGBaseline8Bit, PixelData=encapsulate([b"\xff\xd8" * 4]))
    with pytest.raises(UserError, match="can't be read as an image: "):
        dicom.read(file)
    file = saved(tmp_path, stored, JPEGLSLossless, PixelData=encapsulate([b"\xff\xd8" * 4]))
    monkeypatch.setattr(dicom, "_installed", lambda packages: False)
    with pytest.raises(UserError, match="pip install python-gdcm"):
        dicom.read(file)


@pytest.mark.parametrize(
    ("elements", "reason"),
    [
        ({"PhotometricInterpretation": "CIELAB"}, "photometric interpretation 'CIELAB'"),
        ({"VOILUTFunction": "WAVY"}, "unknown VOI LUT function 'WAVY'"),
    ],
)
def test_what_is_not_understood_is_said(
    tmp_path: Path, elements: dict[str, str], reason: str
) -> None:
    file = saved(tmp_path, np.zeros((4, 4), dtype=np.uint8), **elements)
    with pytest.raises(UserError) as caught:
        dicom.read(file)
    assert str(caught.value).startswith(f"{file}: ") and reason in str(caught.value)


def test_a_truncated_file_is_refused_in_one_line(tmp_path: Path) -> None:
    file = saved(tmp_path, RNG.integers(0, 4096, size=(40, 40)).astype(np.uint16))
    whole = file.read_bytes()
    for share in (0.9, 0.5, 0.05):
        file.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(UserError) as caught:
            dicom.read(file)
        assert str(caught.value).startswith(f"{file}: ") and "\n" not in str(caught.value)


def test_a_job_without_dicom_does_not_import_pydicom() -> None:
    code = "import sys, stamp.images.pixels; sys.exit('pydicom' in sys.modules)"
    folder = Path(dicom.__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, check=False)
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("coded", "plain"),
    [
        ("MR_small_jpeg_ls_lossless.dcm", "MR_small.dcm"),
        ("MR_small_jp2klossless.dcm", "MR_small.dcm"),
        ("SC_rgb_jpeg_gdcm.dcm", "SC_rgb_rle.dcm"),
    ],
)
def test_lossless_files_of_other_programs_show_what_their_twins_show(
    coded: str, plain: str
) -> None:
    files = [get_testdata_file(name, download=False) for name in (coded, plain)]
    one, other = (np.asarray(dicom.read(Path(str(file)))) for file in files)
    assert len(np.unique(other)) >= 5
    assert np.array_equal(one, other)


def test_lossy_jpeg_of_twelve_bits_is_refused_and_no_package_is_named() -> None:
    file = Path(str(get_testdata_file("JPGExtended.dcm", download=False)))
    data = pydicom.dcmread(file)
    assert (data.file_meta.TransferSyntaxUID, data.BitsStored) == (JPEGExtended12Bit, 12)
    with pytest.raises(UserError, match=r"JPEG Extended.*12 bits: convert") as caught:
        dicom.read(file)
    assert "pip install" not in str(caught.value)
