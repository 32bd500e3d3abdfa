"""Augmented images of the source: the same for every model, whatever the batch.

Changes are of uint8 pixels [n, h, w, c] as they stand in the pixel cache, before any model's
normalisation, and give uint8 again. What is drawn for an image comes from a hash of the seed, the
image id and the augmentation's name alone: neither the model nor the batch matters.
The augmentations that networks are trained with are in ``stamp.models.training.augment``.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.nn import functional

DEGREES = 10.0
BRIGHTNESS = (0.8, 1.2)
CONTRAST = (0.8, 1.2)
SCALE = (0.8, 1.0)
LUMA = (0.299, 0.587, 0.114)

Change = Callable[[torch.Tensor, Sequence[str], int], torch.Tensor]


def uniforms(ids: Sequence[str], seed: int, name: str, count: int = 1) -> np.ndarray:
    """[n, count] numbers in [0, 1), at most 4: from SHA-256 of seed, image id and ``name``."""
    if not 1 <= count <= 4:
        raise ValueError(f"a digest gives 1 to 4 numbers, not {count}")
    digests = b"".join(
        hashlib.sha256(f"{seed}\0{one}\0{name}".encode()).digest()[: 8 * count] for one in ids
    )
    return (np.frombuffer(digests, dtype=">u8") >> 11).reshape(-1, count) * 2.0**-53


def between(ids: Sequence[str], seed: int, name: str, low: float, high: float) -> np.ndarray:
    """One number per image, uniform between ``low`` and ``high``."""
    return low + (high - low) * uniforms(ids, seed, name)[:, 0]


def mirror(pixels: torch.Tensor) -> torch.Tensor:
    """Left and right exchanged."""
    return pixels.flip(2)


def turn(pixels: torch.Tensor, quarters: int) -> torch.Tensor:
    """Turned counter-clockwise by quarters of a circle; no pixel is interpolated."""
    return pixels.rot90(quarters, (1, 2))


def rotate(pixels: torch.Tensor, degrees: Any) -> torch.Tensor:
    """Each image rotated counter-clockwise about its centre, bilinear, 0 outside of the image.

    An output pixel at distance (x, y) from the centre, y pointing down, is read at ``(x cos a -
    y sin a, x sin a + y cos a)``, as torchvision's ``rotate`` of a tensor does; pixels beyond the
    edge count as 0 in the interpolation.
    """
    height, width = pixels.shape[1:3]
    angle = np.radians(_each(degrees, len(pixels)))[:, None, None]
    y, x = np.mgrid[:height, :width]
    x, y = x - (width - 1) / 2, y - (height - 1) / 2
    column = x * np.cos(angle) - y * np.sin(angle) + (width - 1) / 2
    row = x * np.sin(angle) + y * np.cos(angle) + (height - 1) / 2
    return _read(pixels, row, column)


def brighten(pixels: torch.Tensor, factor: Any) -> torch.Tensor:
    """``factor * x``, rounded and cut off at 255."""
    return _uint8(pixels.to(torch.float32) * _column(factor, pixels))


def change_contrast(pixels: torch.Tensor, factor: Any) -> torch.Tensor:
    """``m + factor * (x - m)``, rounded and cut off at 0 and 255.

    ``m`` is the image's mean gray: of the pixels themselves, or of 0.299 R + 0.587 G + 0.114 B.
    """
    values = pixels.to(torch.float32)
    gray = values
    if pixels.shape[3] == 3:
        gray = values @ torch.tensor(LUMA, device=pixels.device)[:, None]
    mean = gray.mean(dim=(1, 2, 3), keepdim=True)
    return _uint8(mean + (values - mean) * _column(factor, pixels))


def crop(pixels: torch.Tensor, side: Any, top: Any, left: Any) -> torch.Tensor:
    """The square of ``side`` pixels at (``top``, ``left``), resized to the image's size.

    Bilinear with pixel centres at halves, within the square only: an output pixel j is read at
    ``(j + 0.5) side / size - 0.5``, at least 0 and at most ``side - 1``.
    """
    n, height, width = pixels.shape[:3]
    side, top, left = (_each(value, n)[:, None] for value in (side, top, left))

    def places(size: int, start: np.ndarray) -> np.ndarray:
        return start + ((np.arange(size) + 0.5) * side / size - 0.5).clip(0, side - 1)

    rows, columns = places(height, top), places(width, left)
    shape = (n, height, width)
    row, column = np.broadcast_to(rows[:, :, None], shape), np.broadcast_to(columns[:, None], shape)
    return _read(pixels, row, column)


def centre_crop(pixels: torch.Tensor, share: float) -> torch.Tensor:
    """The middle of the image, ``share`` of its sides, resized to the whole."""
    size = min(pixels.shape[1:3])
    side = round(share * size)
    return crop(pixels, side, (pixels.shape[1] - side) // 2, (pixels.shape[2] - side) // 2)


def flip(pixels: torch.Tensor, ids: Sequence[str], seed: int) -> torch.Tensor:
    """Mirrored, all of them. For radiographs that changes the heart's side."""
    return mirror(pixels)


def rotation(pixels: torch.Tensor, ids: Sequence[str], seed: int) -> torch.Tensor:
    """Turned by -10 to 10 degrees, see :func:`rotate`."""
    return rotate(pixels, between(ids, seed, "rotation", -DEGREES, DEGREES))


def brightness(pixels: torch.Tensor, ids: Sequence[str], seed: int) -> torch.Tensor:
    """Brightness times 0.8 to 1.2, see :func:`brighten`."""
    return brighten(pixels, between(ids, seed, "brightness", *BRIGHTNESS))


def contrast(pixels: torch.Tensor, ids: Sequence[str], seed: int) -> torch.Tensor:
    """Contrast times 0.8 to 1.2, see :func:`change_contrast`."""
    return change_contrast(pixels, between(ids, seed, "contrast", *CONTRAST))


def resized_crop(pixels: torch.Tensor, ids: Sequence[str], seed: int) -> torch.Tensor:
    """A square of 80 to 100 % of the image's area, anywhere in it, resized to the whole.

    torchvision's ``RandomResizedCrop`` with scale (0.8, 1) and ratio 1: the side is
    ``round(sqrt(share) size)``, its top and left are uniform over where it fits.
    """
    height, width = pixels.shape[1:3]
    share, down, right = uniforms(ids, seed, "crop", 3).T
    size = math.sqrt(height * width)
    side = np.rint(np.sqrt(SCALE[0] + (SCALE[1] - SCALE[0]) * share) * size)
    side = side.clip(1, min(height, width))
    top, left = np.floor(down * (height - side + 1)), np.floor(right * (width - side + 1))
    return crop(pixels, side, top, left)


def composite(pixels: torch.Tensor, ids: Sequence[str], seed: int) -> torch.Tensor:
    """All five one after the other: crop, flip, rotation, brightness, contrast, as each is drawn.

    The draws are those of the single augmentations: an image that is rotated by 3 degrees in
    :func:`rotation` is rotated by 3 degrees here.
    """
    for change in (resized_crop, flip, rotation, brightness, contrast):
        pixels = change(pixels, ids, seed)
    return pixels


AUGMENTATIONS: dict[str, Change] = {
    "flip": flip,
    "rotation": rotation,
    "brightness": brightness,
    "contrast": contrast,
    "crop": resized_crop,
    "composite": composite,
}

# The fixed views of test-time augmentation, beside the image itself and its mirror image.
VIEWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    **{f"rotation {a:+d}": lambda x, a=a: rotate(x, a) for a in (-10, -5, 5, 10)},  # type: ignore[misc]
    **{f"brightness {f}": lambda x, f=f: brighten(x, f) for f in (0.9, 1.1)},  # type: ignore[misc]
    **{f"contrast {f}": lambda x, f=f: change_contrast(x, f) for f in (0.9, 1.1)},  # type: ignore[misc]
    "centre crop 90 %": lambda x: centre_crop(x, 0.9),
}


def _each(value: Any, n: int) -> np.ndarray:
    """One number per image, as float64 [n]."""
    return np.broadcast_to(np.asarray(value, dtype=np.float64), (n,))


def _column(value: Any, pixels: torch.Tensor) -> torch.Tensor:
    numbers = torch.from_numpy(_each(value, len(pixels)).astype(np.float32))
    return numbers.to(pixels.device)[:, None, None, None]


def _uint8(values: torch.Tensor) -> torch.Tensor:
    return values.round().clamp(0, 255).to(torch.uint8)


def _read(pixels: torch.Tensor, row: np.ndarray, column: np.ndarray) -> torch.Tensor:
    """The images at places [n, h, w] between their pixels, bilinear, 0 outside of them."""
    height, width = pixels.shape[1:3]
    grid = np.stack([(2 * column + 1) / width - 1, (2 * row + 1) / height - 1], axis=-1)
    places = torch.from_numpy(grid.astype(np.float32)).to(pixels.device)
    planes = pixels.permute(0, 3, 1, 2).to(torch.float32)
    read = functional.grid_sample(planes, places, "bilinear", "zeros", align_corners=False)
    return _uint8(read).permute(0, 2, 3, 1)
