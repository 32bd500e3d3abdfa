"""Image files of any kind that the data sets come in, as images in gray or in colour."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image, UnidentifiedImageError

from stamp.core.errors import UserError
from stamp.images import dicom

DICOM_SUFFIXES = (".dcm", ".dicom")
KNOWN_HEADS = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff")
# No others: Pillow starts Ghostscript for some formats, and knows forty that nobody tested here.
FORMATS = ("PNG", "JPEG", "TIFF")
# A JPEG with further pictures behind it, as cameras write them: previews of the first.
WITH_PREVIEWS = "MPO"


def open_image(path: str | Path, channels: int) -> Image.Image:
    """The image in a file, in mode ``L`` (one channel) or ``RGB`` (three).

    A file's content decides what it is, not its name; only DICOM without a preamble is known by
    the suffix ``.dcm`` or ``.dicom``. Gray in 16 bits is scaled by its full range, round(v / 257);
    it is neither clipped nor stretched to the values that occur. Colours in 16 bits lose their low
    byte, as Pillow reads them: at most one level less. Fewer bits fill the range, a palette gives
    its colours. Floating-point values have no range to scale by and are refused. Transparency is
    ignored: a pixel has the colour stored for it. The orientation that an EXIF tag asks for is NOT
    applied: radiographs and benchmarks are read as stored, as their published results were. A file
    of several frames or pages is refused.
    """
    try:
        with open(path, "rb") as file:
            head = file.read(132)
        marked = head[128:] == b"DICM"
        if marked or (_named_dicom(path) and not head.startswith(KNOWN_HEADS)):
            return dicom.read(path, force=not marked).convert(_mode(channels))
        with Image.open(path, formats=FORMATS) as opened:
            frames = getattr(opened, "n_frames", 1)
            if frames > 1 and opened.format != WITH_PREVIEWS:
                raise UserError(f"{path}: has {frames} frames; an image of one frame is needed")
            if opened.mode == "F":
                raise UserError(
                    f"{path}: has floating-point values, which have no range: save it with 8 or "
                    "16 bits"
                )
            return _eight_bit(opened).convert(_mode(channels))
    except FileNotFoundError:
        raise UserError(f"{path}: no such image") from None
    except PermissionError:
        raise UserError(f"{path}: no permission to read it") from None
    except UnidentifiedImageError:
        known = f"{', '.join(FORMATS)} or DICOM"
        raise UserError(f"{path}: can't be read as an image: is not {known}") from None
    except (
        OSError,
        SyntaxError,
        ValueError,
        Image.DecompressionBombError,
    ):
        raise UserError(f"{path}: can't be read as an image") from None


def _mode(channels: int) -> str:
    return "L" if channels == 1 else "RGB"


def _named_dicom(path: str | Path) -> bool:
    return Path(path).suffix.lower() in DICOM_SUFFIXES


def _eight_bit(image: Image.Image) -> Image.Image:
    """The image in a mode that Pillow converts without clipping or a warning."""
    if image.mode == "I" or image.mode.startswith("I;16"):
        levels = np.clip(np.asarray(image, dtype=np.float64), 0, 65535)
        return Image.fromarray(np.rint(levels / 257).astype(np.uint8))
    if image.mode == "P" and "transparency" in image.info:
        return image.convert("RGBA")
    return image
