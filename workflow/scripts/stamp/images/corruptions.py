"""Six corruptions of gray images at five severities: pure functions of uint8 batches [n, h, w].

Each takes one random generator per image, so an image's corruption never depends on its
neighbours in the batch. ``SEVERITY`` holds every parameter. As in ImageNet-C, severity 1 is mild
and severity 5 hard but mostly legible to a person; lengths are pixels of a 28x28 frame.

================ ============================================ ======================================
kind             parameter, severities 1 to 5                 where the values come from
================ ============================================ ======================================
gaussian_noise   standard deviation, white = 1                ImageNet-C
gaussian_blur    sigma, pixels                                equal steps, stroke width about 3
contrast         factor about the image's mean                CIFAR-10-C
occlusion        side of a gray square, pixels                equal steps, digits are 20 high
affine           largest rotation (degrees), shear,           equal steps
                 enlargement, shift (pixels)
background       weight of the photograph behind the stroke   equal steps, below 1 so that a white
                                                              stroke is brighter than any photograph
================ ============================================ ======================================

ImageNet-C and CIFAR-10-C: Hendrycks and Dietterich, "Benchmarking Neural Network Robustness to
Common Corruptions and Perturbations", ICLR 2019. Where the steps are equal, the last was set by
looking at images; none was set by looking at a model's score.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Batch = npt.NDArray[np.uint8]
Generators = Sequence[np.random.Generator]

SEVERITIES = (1, 2, 3, 4, 5)

SEVERITY: dict[str, tuple[Any, ...]] = {
    "gaussian_noise": (0.08, 0.12, 0.18, 0.26, 0.38),
    "gaussian_blur": (0.4, 0.8, 1.2, 1.6, 2.0),
    "contrast": (0.75, 0.5, 0.4, 0.3, 0.15),
    "occlusion": (4, 6, 8, 10, 12),
    "affine": (
        (6.0, 0.04, 0.04, 0.5),
        (12.0, 0.08, 0.08, 1.0),
        (18.0, 0.12, 0.12, 1.5),
        (24.0, 0.16, 0.16, 2.0),
        (30.0, 0.20, 0.20, 2.5),
    ),
    "background": (0.17, 0.34, 0.51, 0.68, 0.85),
}


def gaussian_noise(batch: Batch, severity: int, rngs: Generators) -> Batch:
    """The images with independent normal noise on every pixel, clipped to 0..255."""
    sd = 255 * parameter("gaussian_noise", severity)
    noise = np.stack([rng.standard_normal(batch.shape[1:]) for rng in rngs])
    return _to_bytes(batch + sd * noise)


def gaussian_blur(batch: Batch, severity: int, rngs: Generators) -> Batch:
    """The images convolved with a normal kernel, mirrored at the border; nothing is random."""
    from scipy.ndimage import gaussian_filter

    sigma = parameter("gaussian_blur", severity)
    return _to_bytes(gaussian_filter(batch.astype(np.float64), sigma=(0, sigma, sigma)))


def contrast(batch: Batch, severity: int, rngs: Generators) -> Batch:
    """``mean + factor * (x - mean)`` with each image's own mean; nothing is random."""
    mean = batch.mean(axis=(1, 2), keepdims=True)
    return _to_bytes(mean + parameter("contrast", severity) * (batch - mean))


def occlusion(batch: Batch, severity: int, rngs: Generators) -> Batch:
    """The images behind an opaque square of a random gray.

    Its centre is uniform over the middle half of each axis, its gray uniform over 0..255.
    """
    side = parameter("occlusion", severity)
    draws = np.stack([rng.uniform(size=3) for rng in rngs])
    height, width = batch.shape[1:]
    rows = _covered(height, side, draws[:, 0])
    columns = _covered(width, side, draws[:, 1])
    gray = np.floor(256 * draws[:, 2]).astype(np.uint8)
    return np.where(rows[:, :, None] & columns[:, None, :], gray[:, None, None], batch)


def _covered(length: int, side: int, draw: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Which of ``length`` pixels an interval of ``side`` covers, by image [n, length]."""
    start = np.rint(length * (0.25 + 0.5 * draw) - side / 2)[:, None]
    pixel = np.arange(length)
    return (pixel >= start) & (pixel < start + side)


def affine(batch: Batch, severity: int, rngs: Generators) -> Batch:
    """The images rotated, sheared, rescaled and shifted about their centre, black outside.

    Each of the five amounts (rotation, shear, log of the scale, two shifts) has a random sign and a
    size uniform between half of its largest value and that value, so no image is left as it was.
    With output position y and input position x measured from the centre,
    ``x = Shear(-k) Rotation(-a) (y - shift) / scale``.
    """
    rotation, shear, enlargement, shift = parameter("affine", severity)
    draws = np.stack([rng.uniform(-1, 1, size=5) for rng in rngs])
    amounts = np.copysign(0.5 + 0.5 * np.abs(draws), draws)
    angle = np.deg2rad(rotation) * amounts[:, 0]
    skew = shear * amounts[:, 1]
    scale = (1 + enlargement) ** amounts[:, 2]
    cosine, sine = np.cos(angle), np.sin(angle)
    rows = np.stack([cosine, sine], axis=-1)
    columns = np.stack([-sine, cosine], axis=-1) - skew[:, None] * rows
    matrices = np.stack([rows, columns], axis=1) / scale[:, None, None]
    return warp(batch, matrices, shift * amounts[:, 3:])


def warp(batch: Batch, matrices: npt.NDArray[np.float64], shifts: npt.NDArray[np.float64]) -> Batch:
    """The images resampled bilinearly, black outside: y shows ``x = matrix @ (y - shift)``.

    ``matrices`` is [n, 2, 2], ``shifts`` [n, 2]; positions are (row, column) from the centre.
    """
    from scipy.ndimage import map_coordinates

    n, height, width = batch.shape
    centre = (np.array([height, width]) - 1) / 2
    grid = np.moveaxis(np.indices((height, width)), 0, -1).reshape(-1, 2) - centre
    source = np.einsum("nij,npj->nip", matrices, grid - shifts[:, None, :]) + centre[:, None]
    image = np.broadcast_to(np.arange(n)[:, None], source[:, 0].shape)
    where = np.stack([image, source[:, 0], source[:, 1]])
    pixels = map_coordinates(batch.astype(np.float64), where, order=1, mode="grid-constant")
    return _to_bytes(pixels.reshape(batch.shape))


def background(
    batch: Batch, severity: int, rngs: Generators, *, photographs: Sequence[Batch]
) -> Batch:
    """The images with a random patch of a gray photograph behind the stroke.

    ``x + (1 - x / 255) * weight * patch``: a pixel's brightness is the opacity of a white stroke.
    The photograph is drawn evenly, then the patch evenly over its positions.
    """
    weight = parameter("background", severity)
    shape = batch.shape[1:]
    windows = [np.lib.stride_tricks.sliding_window_view(photo, shape) for photo in photographs]
    draws = np.stack([rng.uniform(size=3) for rng in rngs])
    chosen = (len(windows) * draws[:, 0]).astype(np.intp)
    patches = np.empty(batch.shape, np.uint8)
    for which, window in enumerate(windows):
        here = chosen == which
        row, column = (draws[here, 1:] * window.shape[:2]).astype(np.intp).T
        patches[here] = window[row, column]
    return _to_bytes(batch + (1 - batch / 255) * weight * patches)


def parameter(kind: str, severity: int) -> Any:
    """What ``SEVERITY`` says of one kind at one severity, 1 to 5."""
    if severity not in SEVERITIES:
        raise ValueError(f"severity {severity!r} is not one of {SEVERITIES}")
    return SEVERITY[kind][severity - 1]


def _to_bytes(pixels: npt.NDArray[np.float64]) -> Batch:
    return np.rint(np.clip(pixels, 0, 255)).astype(np.uint8)


CORRUPTIONS: dict[str, Callable[..., Batch]] = {
    "gaussian_noise": gaussian_noise,
    "gaussian_blur": gaussian_blur,
    "contrast": contrast,
    "occlusion": occlusion,
    "affine": affine,
    "background": background,
}
