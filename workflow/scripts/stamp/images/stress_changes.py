"""The changes of stress tests: label-preserving, each at one moderate severity.

Every public function of this module is a change that a study can name under ``stress``: it takes
uint8 pixels [n, h, w, c] as they stand in the pixel cache, their image ids and the seed, and gives
uint8 pixels of the same shape. The first line of its docstring is what the documentation says of
it. What is drawn for an image comes from a hash of the seed, the image id and the name of the
change alone: neither the model nor the batch matters. A further function is a further change;
nothing else has to be told of it. Lengths are relative to the shorter side of the image.

Severities follow the middle ones of ImageNet-C (Hendrycks and Dietterich 2019) where it has the
change. None was set by looking at a model's score. There is no inversion and no mirror image: both
can change what a picture shows.
"""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
import torch
from PIL import Image
from torch.nn import functional

from stamp.core.errors import UserError
from stamp.images.augmentations import LUMA, change_contrast, crop, rotate, uniforms

# --- sensor and encoding --------------------------------------------------------------------------


def noise(pixels: torch.Tensor, ids: Sequence[str], seed: int) -> torch.Tensor:
    """Gaussian noise on every value, standard deviation 0.1 of white."""
    drawn = [one.standard_normal(pixels.shape[1:]) for one in _generators(ids, seed, "noise")]
    return _bytes(pixels.float() + 25.5 * _like(drawn, pixels))


def salt_and_pepper(pixels: torch.Tensor, ids: Sequence[str], seed: int) -> torch.Tensor:
    """5 % of the pixels black or white."""
    generators = _generators(ids, seed, "salt_and_pepper")
    u = _like([one.random(pixels.shape[1:3]) for one in generators], pixels)[..., None]
    return pixels.masked_fill(u < 0.025, 0).masked_fill(u >= 0.975, 255)


def blur(pixels: torch.Tensor, ids: Sequence[str], seed: int) -> torch.Tensor:
    """Gaussian blur, sigma 1/64 of the side and at least one pixel, mirrored at the border."""
    sigma = max(1.0, min(pixels.shape[1:3]) / 64)
    reach = min(round(4 * sigma), min(pixels.shape[1:3]) - 1)
    places = torch.arange(-reach, reach + 1, dtype=torch.float32, device=pixels.device)
    kernel = torch.exp(-places.square() / (2 * sigma**2))
    kernel = kernel / kernel.sum()
    n, height, width, channels = pixels.shape
    planes = pixels.permute(0, 3, 1, 2).reshape(-1, 1, height, width).float()
    planes = functional.pad(planes, (reach, reach, reach, reach), mode="reflect")
    planes = functional.conv2d(planes, kernel.view(1, 1, -1, 1))
    planes = functional.conv2d(planes, kernel.view(1, 1, 1, -1))
    return _bytes(planes.view(n, channels, height, width).permute(0, 2, 3, 1))


def pixelation(pixels: torch.Tensor, ids: Sequence[str], seed: int) -> torch.Tensor:
    """Half of the resolution: every block of 2 x 2 pixels is its mean."""
    height, width = pixels.shape[1:3]
    planes = pixels.permute(0, 3, 1, 2).float()
    small = functional.avg_pool2d(planes, 2, ceil_mode=True, count_include_pad=False)
    large = small.repeat_interleave(2, dim=2).repeat_interleave(2, dim=3)
    return _bytes(large[:, :, :height, :width].permute(0, 2, 3, 1))


def jpeg(pixels: torch.Tensor, ids: Sequence[str], seed: int) -> torch.Tensor:
    """JPEG at quality 20."""
    decoded = np.stack([_recoded(one, 20) for one in pixels.cpu().numpy()])
    return torch.from_numpy(decoded).to(pixels.device)


def posterise(pixels: torch.Tensor, ids: Sequence[str], seed: int) -> torch.Tensor:
    """Eight levels of gray or of each colour: the first three bits."""
    return torch.bitwise_and(pixels, 0b11100000)


# --- tone -----------------------------------------------------------------------------------------


def contrast(pixels: torch.Tensor, ids: Sequence[str], seed: int) -> torch.Tensor:
    """Half of the contrast, about the image's mean gray."""
    return change_contrast(pixels, 0.5)


def brighter(pixels: torch.Tensor, ids: Sequence[str], seed: int) -> torch.Tensor:
    """0.2 of white added to every value."""
    return _bytes(pixels.float() + 51)


def darker(pixels: torch.Tensor, ids: Sequence[str], seed: int) -> torch.Tensor:
    """0.2 of white taken off every value."""
    return _bytes(pixels.float() - 51)


def exposure(pixels: torch.Tensor, ids: Sequence[str], seed: int) -> torch.Tensor:
    """Under- or overexposed: every value to the power of 1.6 or 1 / 1.6, white being 1."""
    high = uniforms(ids, seed, "stress exposure")[:, 0] < 0.5
    power = _like(np.where(high, 1.6, 1 / 1.6), pixels)[:, None, None, None]
    return _bytes(255 * (pixels.float() / 255) ** power)


def window(pixels: torch.Tensor, ids: Sequence[str], seed: int) -> torch.Tensor:
    """A narrower window of the gray values: 0.7 of them, placed at random, fill all of them."""
    low = _like(255 * 0.3 * uniforms(ids, seed, "stress window")[:, 0], pixels)
    return _bytes((pixels.float() - low[:, None, None, None]) / 0.7)


# --- geometry and what is in the way --------------------------------------------------------------


def rotation(pixels: torch.Tensor, ids: Sequence[str], seed: int) -> torch.Tensor:
    """Turned by 15 degrees to either side, black outside of the image."""
    return rotate(pixels, 15 * _signs(ids, seed, "rotation"))


def small_rotation(pixels: torch.Tensor, ids: Sequence[str], seed: int) -> torch.Tensor:
    """Turned by 5 degrees to either side, as a patient is positioned; black outside."""
    return rotate(pixels, 5 * _signs(ids, seed, "small_rotation"))


def scale(pixels: torch.Tensor, ids: Sequence[str], seed: int) -> torch.Tensor:
    """Seen from nearer or from further away by 1.25, black outside of the image."""
    size = min(pixels.shape[1:3])
    side = size * 1.25 ** _signs(ids, seed, "scale")
    return crop(pixels, side, (size - side) / 2, (size - side) / 2)


def shift(pixels: torch.Tensor, ids: Sequence[str], seed: int) -> torch.Tensor:
    """Moved by a tenth of the side in any direction, black outside of the image."""
    size = min(pixels.shape[1:3])
    angle = 2 * np.pi * uniforms(ids, seed, "stress shift")[:, 0]
    return crop(pixels, size, size / 10 * np.sin(angle), size / 10 * np.cos(angle))


def occlusion(pixels: torch.Tensor, ids: Sequence[str], seed: int) -> torch.Tensor:
    """A square of 0.3 of the side in the image's mean colour, its centre in the middle half."""
    height, width = pixels.shape[1:3]
    side = 0.3 * min(height, width)
    down, right = uniforms(ids, seed, "stress occlusion", 2).T
    rows = _covered(height, side, down, pixels.device)[:, :, None, None]
    columns = _covered(width, side, right, pixels.device)[:, None, :, None]
    return torch.where(rows & columns, _bytes(pixels.float().mean((1, 2), keepdim=True)), pixels)


def collimation(pixels: torch.Tensor, ids: Sequence[str], seed: int) -> torch.Tensor:
    """Black bars at all four sides, each 0.04 to 0.12 of the side, as of a collimator."""
    height, width = pixels.shape[1:3]
    cut = min(height, width) * (0.04 + 0.08 * uniforms(ids, seed, "stress collimation", 4))
    top, bottom, left, right = np.rint(cut).T[:, :, None]
    row, column = np.arange(height), np.arange(width)
    seen = ((row >= top) & (row < height - bottom))[:, :, None]
    seen = seen & ((column >= left) & (column < width - right))[:, None]
    return pixels * torch.from_numpy(seen[..., None]).to(pixels.device)


# --- colour ---------------------------------------------------------------------------------------


def saturation(pixels: torch.Tensor, ids: Sequence[str], seed: int) -> torch.Tensor:
    """Colours at 0.3 of their saturation: mixed with the pixel's gray."""
    values = _coloured(pixels, "saturation")
    gray = values @ torch.tensor(LUMA, device=pixels.device)[:, None]
    return _bytes(gray + 0.3 * (values - gray))


def colour_cast(pixels: torch.Tensor, ids: Sequence[str], seed: int) -> torch.Tensor:
    """Another white balance: each channel times 0.75 to 1.25."""
    values = _coloured(pixels, "colour_cast")
    gains = 0.75 + 0.5 * uniforms(ids, seed, "stress colour_cast", 3)
    return _bytes(values * _like(gains, pixels)[:, None, None])


# --- what they share ------------------------------------------------------------------------------


def _generators(ids: Sequence[str], seed: int, name: str) -> list[np.random.Generator]:
    """One random generator per image, from the hash that all draws come from."""
    whole = uniforms(ids, seed, f"stress {name}")[:, 0] * 2.0**53
    return [np.random.default_rng(int(number)) for number in whole]


def _signs(ids: Sequence[str], seed: int, name: str) -> np.ndarray:
    """-1 or 1 for each image."""
    return np.where(uniforms(ids, seed, f"stress {name}")[:, 0] < 0.5, -1.0, 1.0)


def _like(values: Sequence[np.ndarray] | np.ndarray, pixels: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(np.asarray(values, dtype=np.float32)).to(pixels.device)


def _bytes(values: torch.Tensor) -> torch.Tensor:
    return values.round().clamp(0, 255).to(torch.uint8)


def _recoded(image: np.ndarray, quality: int) -> np.ndarray:
    """An image [h, w, c] as its JPEG file shows it."""
    file = io.BytesIO()
    gray = image.shape[2] == 1
    Image.fromarray(image[:, :, 0] if gray else image).save(file, "JPEG", quality=quality)
    return np.asarray(Image.open(file)).reshape(image.shape)


def _covered(length: int, side: float, draw: np.ndarray, device: torch.device) -> torch.Tensor:
    """Which of ``length`` pixels are within ``side / 2`` of each image's centre, [n, length]."""
    centre = length * (0.25 + 0.5 * draw)[:, None]
    return torch.from_numpy(np.abs(np.arange(length) + 0.5 - centre) < side / 2).to(device)


def _coloured(pixels: torch.Tensor, name: str) -> torch.Tensor:
    if pixels.shape[3] != 3:
        raise UserError(f"'{name}' changes colours, and its images have one channel")
    return pixels.float()
