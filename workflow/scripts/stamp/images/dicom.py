"""Radiographs in DICOM files: from stored values to the 8-bit image that a viewer would show.

The order is the standard's (PS3.3 C.11, PS3.4 N.2): stored values, modality (lookup table, or slope
and intercept), values of interest (lookup table, or window), inversion where a small value means
bright (MONOCHROME1). All of it goes value by value, so it is worked out in double precision once
for each stored level and then looked up for the pixels. ``pydicom`` is imported only when a file is
read: a job without DICOM does not pay for it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from stamp.core.errors import UserError

if TYPE_CHECKING:
    from pydicom.dataset import Dataset
    from pydicom.uid import UID

Array = NDArray[np.float64]

FUNCTIONS = ("LINEAR", "LINEAR_EXACT", "SIGMOID")
COLOURS = ("RGB", "YBR_FULL", "YBR_FULL_422", "YBR_ICT", "YBR_RCT", "PALETTE COLOR")

# What reads a compressed transfer syntax beside Pillow, by the end of its UID: packages of the
# extra ``dicom``. Pillow reads all of baseline JPEG (4.50); nothing reads JPEG of 12 bits (4.51).
_PREFIX = "1.2.840.10008.1.2."
_LOSSY_JPEG = _PREFIX + "4.51"
_JPEG = ("4.57", "4.70", "4.80", "4.81")
_JPEG2000 = ("4.90", "4.91", "4.201", "4.202", "4.203")
DECODERS = {
    **dict.fromkeys((_PREFIX + end for end in _JPEG), "python-gdcm"),
    **dict.fromkeys((_PREFIX + end for end in _JPEG2000), "pylibjpeg pylibjpeg-openjpeg"),
}


@dataclass(frozen=True, slots=True)
class Window:
    """The values of interest as a centre, a width and the function between them."""

    center: float
    width: float
    function: str = "LINEAR"


@dataclass(frozen=True, slots=True)
class Lookup:
    """A lookup table: its entries, the value that the first one stands for, and their bits."""

    first: int
    entries: NDArray[np.uint16]
    bits: int

    def at(self, values: Array) -> Array:
        """The entry of each value; values beyond an end take the entry at that end."""
        place = np.clip(np.rint(values - self.first), 0, len(self.entries) - 1)
        return self.entries[place.astype(np.intp)].astype(np.float64)


@dataclass(frozen=True, slots=True)
class Display:
    """What a file says about showing its stored values.

    Without a window, values of 8 bits are shown as they are (``plain``), others so that all that
    occur fit in.
    """

    slope: float = 1.0
    intercept: float = 0.0
    modality: Lookup | None = None
    window: Window | None = None
    interest: Lookup | None = None
    inverted: bool = False
    padding: tuple[int, int] | None = None
    plain: bool = False


def read(path: str | Path, force: bool = False) -> Image.Image:
    """The image of a single-frame DICOM file, in mode ``L``, or ``RGB`` where it has colours.

    ``force`` takes a file without the preamble and the mark ``DICM``.
    """
    dataset = _opened(path, force)
    try:
        frames = int(dataset.get("NumberOfFrames") or 1)
        kind = str(dataset.get("PhotometricInterpretation"))
        if frames > 1:
            raise UserError(f"{path}: has {frames} frames; an image of one frame is needed")
        if kind not in ("MONOCHROME1", "MONOCHROME2", *COLOURS):
            raise UserError(
                f"{path}: photometric interpretation '{kind}'; expected MONOCHROME1, MONOCHROME2 "
                "or a colour one"
            )
        stored = _decoded(path, dataset)
        if kind in COLOURS:
            return Image.fromarray(_coloured(stored, dataset))
        return Image.fromarray(gray(stored, display(dataset)))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise _unreadable(path, error) from None


def gray(stored: NDArray[Any], how: Display) -> NDArray[np.uint8]:
    """The 8-bit image of stored values: round(255 f), f from 0 to 1 by the window or lookup.

    An image of MONOCHROME1 is exactly 255 less that of MONOCHROME2: it is inverted after rounding.
    Padding is 0, the darkest, whatever the interpretation. Without a window or a lookup table of
    interest, plain values are x = 255 f, so that an 8-bit file is the image that its PNG copy is;
    others have f = (x - least) / (greatest - least) over the pixels that are no padding.
    """
    levels, where = _levels(stored)
    values = how.slope * levels + how.intercept if how.modality is None else how.modality.at(levels)
    empty = np.zeros(len(levels), dtype=bool)
    if how.padding is not None:
        empty = (levels >= min(how.padding)) & (levels <= max(how.padding))
    if how.interest is not None:
        fraction = how.interest.at(values) / (2**how.interest.bits - 1)
    elif how.window is not None:
        fraction = windowed(values, how.window)
    elif how.plain:
        fraction = values / 255
    else:
        fraction = _stretched(values, values[~empty])
    shown = np.rint(255 * np.clip(fraction, 0, 1)).astype(np.uint8)
    if how.inverted:
        shown = 255 - shown
    shown[empty] = 0
    return shown[where]


def windowed(values: Array, window: Window) -> Array:
    """The part of the output range, 0 to 1, of each value x with centre c and width w.

    LINEAR, with c' = c - 1/2 and w' = w - 1: 0 where x <= c' - w'/2, 1 where x > c' + w'/2,
    else (x - c') / w' + 1/2. LINEAR_EXACT: the same with c' = c and w' = w. SIGMOID:
    1 / (1 + exp(-4 (x - c) / w)). DICOM PS3.3 C.11.2.1.2 and C.11.2.1.3.
    """
    center, width = window.center, window.width
    if window.function == "SIGMOID":
        return 0.5 * (1 + np.tanh(2 * (values - center) / width))
    if window.function == "LINEAR":
        center, width = center - 0.5, width - 1
    below, above = values <= center - width / 2, values > center + width / 2
    slope = 1 / width if width > 0 else 0.0
    return np.where(below, 0.0, np.where(above, 1.0, (values - center) * slope + 0.5))


def display(dataset: Dataset) -> Display:
    """How a file wants its values shown: the first window or lookup table where there are several.

    A lookup table goes before a window, as in ``pydicom``. A window that the standard does not
    allow (no width, a width of 0 or less, of less than 1 for LINEAR) counts as none.
    """
    slope, intercept = _number(dataset, "RescaleSlope"), _number(dataset, "RescaleIntercept")
    return Display(
        slope=1.0 if slope is None else slope,
        intercept=intercept or 0.0,
        modality=_lookup(dataset, "ModalityLUTSequence"),
        window=_window(dataset),
        interest=_lookup(dataset, "VOILUTSequence"),
        inverted=dataset.PhotometricInterpretation == "MONOCHROME1",
        padding=_padding(dataset),
        plain=_plain(dataset, 1.0 if slope is None else slope, intercept or 0.0),
    )


def _plain(dataset: Dataset, slope: float, intercept: float) -> bool:
    """Whether stored values are 8-bit grays already, with nothing that would change them."""
    stored = (dataset.BitsStored, dataset.get("PixelRepresentation", 0))
    return stored == (8, 0) and (slope, intercept) == (1.0, 0.0)


def _padding(dataset: Dataset) -> tuple[int, int] | None:
    """The first and the last of the stored values that are no image."""
    value, limit = (_number(dataset, f"PixelPadding{end}") for end in ("Value", "RangeLimit"))
    return None if value is None else (int(value), int(value if limit is None else limit))


def _window(dataset: Dataset) -> Window | None:
    center, width = _number(dataset, "WindowCenter"), _number(dataset, "WindowWidth")
    function = str(dataset.get("VOILUTFunction") or "LINEAR").upper()
    if function not in FUNCTIONS:
        raise ValueError(f"unknown VOI LUT function '{function}'")
    if center is None or width is None or width <= 0 or (function == "LINEAR" and width < 1):
        return None
    return Window(center, width, function)


def _lookup(dataset: Dataset, name: str) -> Lookup | None:
    if not dataset.get(name):
        return None
    item = dataset[name].value[0]
    count, first, bits = (int(number) for number in item.LUTDescriptor)
    count = count or 2**16
    entries = item.LUTData
    if isinstance(entries, bytes):
        order = "<" if dataset.original_encoding[1] in (True, None) else ">"
        entries = np.frombuffer(entries, "u1" if len(entries) < 2 * count else f"{order}u2")
    return Lookup(first, np.atleast_1d(np.asarray(entries, dtype=np.uint16))[:count], bits)


def _number(dataset: Dataset, name: str) -> float | None:
    """The first number of an element, or None where it is absent or empty."""
    value = dataset.get(name)
    if isinstance(value, (str, bytes)) or value is None:
        return float(value) if value else None
    if hasattr(value, "__len__"):
        value = value[0] if len(value) else None
    return None if value is None else float(value)


def _levels(stored: NDArray[Any]) -> tuple[Array, NDArray[np.intp]]:
    """The distinct stored values, ascending, and for each pixel the number of its value."""
    low, high = stored.min(), stored.max()
    if not np.issubdtype(stored.dtype, np.integer) or int(high) - int(low) >= 2**16:
        levels, where = np.unique(stored, return_inverse=True)
        return levels.astype(np.float64), where.reshape(stored.shape)
    offset = stored.astype(np.int64) - int(low)
    present = np.bincount(offset.ravel()) > 0
    levels = np.flatnonzero(present) + int(low)
    return levels.astype(np.float64), (np.cumsum(present) - 1)[offset]


def _stretched(values: Array, inside: Array) -> Array:
    """Where each value lies between the least and the greatest of ``inside``; 0 if these agree."""
    if not len(inside) or inside.max() == inside.min():
        return np.zeros_like(values)
    return (values - inside.min()) / (inside.max() - inside.min())


def _coloured(stored: NDArray[Any], dataset: Dataset) -> NDArray[np.uint8]:
    """Colours in 8 bits: as they are, or by the full range of their own bits."""
    bits = int(dataset.BitsStored)
    if dataset.PhotometricInterpretation == "PALETTE COLOR":
        from pydicom.pixels import apply_color_lut

        stored = apply_color_lut(stored, dataset)[..., :3]
        bits = 8 * stored.dtype.itemsize
    if bits == 8:
        return np.ascontiguousarray(stored, dtype=np.uint8)
    return np.rint(stored * (255 / (2**bits - 1))).astype(np.uint8)


def _opened(path: str | Path, force: bool) -> Dataset:
    try:
        import pydicom
    except ImportError:
        raise UserError(f"{path}: DICOM is read by pydicom: pip install pydicom") from None
    try:
        dataset = pydicom.dcmread(path, force=force)
    except FileNotFoundError:
        raise UserError(f"{path}: no such image") from None
    except Exception as error:  # a parser of foreign bytes may stumble over anything
        raise _unreadable(path, error) from None
    if "TransferSyntaxUID" not in dataset.file_meta:
        implicit, little = dataset.original_encoding
        dataset.file_meta.TransferSyntaxUID = pydicom.uid.UID(
            _PREFIX[:-1] if implicit else _PREFIX + ("1" if little else "2")
        )
    return dataset


def _decoded(path: str | Path, dataset: Dataset) -> NDArray[Any]:
    """Stored values [rows, columns], or colours [rows, columns, 3].

    Pillow decodes where it can: it is always there, and libjpeg's variants differ by a gray level,
    so an image does not depend on which other decoders are installed.
    """
    from pydicom.pixels import get_decoder, pixel_array

    syntax = dataset.file_meta.TransferSyntaxUID
    try:
        decoder = get_decoder(syntax)
    except NotImplementedError:
        raise _undecoded(path, syntax) from None
    if not decoder.is_available:
        raise _undecoded(path, syntax)
    if "pillow" in decoder.available_plugins:
        # It claims syntaxes of which it reads a part, such as JPEG with 12 bits.
        with suppress(Exception):
            return pixel_array(dataset, decoding_plugin="pillow")
    try:
        return pixel_array(dataset)
    except Exception as error:
        packages = DECODERS.get(str(syntax))
        twelve_bits = syntax == _LOSSY_JPEG and int(dataset.BitsStored) > 8
        if twelve_bits or (packages and not _installed(packages)):
            raise _undecoded(path, syntax) from None
        raise _unreadable(path, error) from None


def _undecoded(path: str | Path, syntax: UID) -> UserError:
    """The line on a compression that nothing here reads, with what would help."""
    packages = DECODERS.get(str(syntax))
    if packages:
        help_ = f"pip install '.[dicom]', or only: pip install {packages}"
    else:
        help_ = "convert the file to an uncompressed one"
    bits = " with 12 bits" if syntax == _LOSSY_JPEG else ""
    return UserError(
        f"{path}: no installed decoder reads its transfer syntax '{syntax.name}'{bits}: {help_}"
    )


def _installed(packages: str) -> bool:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return all(version(package) for package in packages.split())
    except PackageNotFoundError:
        return False


def _unreadable(path: str | Path, error: Exception) -> UserError:
    reason = " ".join(str(error).split()) or type(error).__name__
    return UserError(f"{path}: can't be read as an image: {reason}")
