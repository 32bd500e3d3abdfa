"""How a hospital's equipment turns attenuation into an 8-bit image."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stamp.data.phantom.draws import RandomDraws
from stamp.data.phantom.shapes import Array, edge

CORNERS = {"top left": (0, 0), "top right": (0, 1), "low left": (1, 0), "low right": (1, 1)}
LETTER_R = ("11110", "10001", "11110", "10100", "10011")
LETTER_L = ("10000", "10000", "10000", "10000", "11111")
TOKEN = ("11111", "11011", "10001", "11011", "11111")
GLYPHS = {"R": LETTER_R, "L": LETTER_L, "token": TOKEN}


@dataclass(frozen=True, slots=True)
class Scanner:
    """One hospital's equipment; lengths are fractions of the image's side."""

    window: tuple[float, float]  # attenuations shown as black and as white
    gamma: float = 1.0
    contrast: float = 0.0  # 0 a straight tone curve, 1 an S
    blur: float = 0.006  # standard deviation
    resolution: float = 1.0  # detector pixels per picture pixel
    noise: float = 0.02  # of one exposure through air, in attenuation
    sharpen: float = 0.0  # weight of the unsharp mask
    sharpen_radius: float = 0.03
    border: tuple[float, float] = (0.0, 0.02)  # collimated away at each side, least and most
    border_gray: int = 0
    letter: str = "R"
    letter_corner: str = "top left"
    token_corner: str = "top right"


@dataclass(frozen=True, slots=True)
class Exposure:
    """One row an image: settings and accidents of one exposure."""

    offset: Array
    gain: Array
    dose: Array
    border: Array  # left, right, top, bottom, as numbers in [0, 1)
    letter: Array  # gray value and two position numbers in [0, 1)
    token: Array
    has_token: NDArray[np.bool_]


def draw_exposure(draws: RandomDraws, visits: int, has_token: NDArray[np.bool_]) -> Exposure:
    """The exposure at each visit, arrays of (patients, visits)."""
    return Exposure(
        offset=draws.normal("exposure offset", 0, 0.05, visits),
        gain=np.clip(draws.normal("exposure gain", 1, 0.07, visits), 0.75, 1.25),
        dose=draws.uniform("dose", 0.6, 1.5, visits),
        border=draws.uniform("border", 0, 1, visits, 4),
        letter=draws.uniform("letter", 0, 1, visits, 3),
        token=draws.uniform("token", 0, 1, visits, 3),
        has_token=has_token,
    )


def blur_matrix(size: int, deviation: float) -> Array:
    """Rows of a Gaussian of ``deviation`` pixels that sum to 1: a blur along one axis."""
    at = np.arange(size)
    weights = np.exp(-0.5 * ((at[:, None] - at[None, :]) / max(deviation, 1e-3)) ** 2)
    return (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)


def detector_matrix(size: int, resolution: float) -> Array:
    """Averaging onto ``resolution * size`` pixels and linear interpolation back, along one axis."""
    coarse = max(2, round(size * resolution))
    ends = np.arange(coarse + 1) * (size / coarse)
    start, stop = np.arange(size), np.arange(1, size + 1)
    overlap = np.minimum(ends[1:, None], stop) - np.maximum(ends[:-1, None], start)
    down = np.clip(overlap, 0, None) * (coarse / size)
    at = np.clip((np.arange(size) + 0.5) * coarse / size - 0.5, 0, coarse - 1)
    up = np.clip(1 - np.abs(at[:, None] - np.arange(coarse)[None, :]), 0, None)
    return (up @ down).astype(np.float32)


def _filtered(picture: Array, scanner: Scanner) -> Array:
    """Detector and unsharp mask, each a matrix on both axes: M P M', P + w (P - G P G')."""
    size = picture.shape[-1]
    if scanner.resolution < 1:
        detector = detector_matrix(size, scanner.resolution)
        picture = detector @ picture @ detector.T
    if scanner.sharpen:
        mask = blur_matrix(size, scanner.sharpen_radius * size)
        picture = picture + np.float32(scanner.sharpen) * (picture - mask @ picture @ mask.T)
    return picture


def _toned(picture: Array, exposure: Exposure, scanner: Scanner) -> Array:
    """Window, gamma and an S-shaped curve, 0 to 1; 3t^2 - 2t^3 is the S."""
    low, high = scanner.window
    gain, offset = exposure.gain[:, None, None], exposure.offset[:, None, None]
    shown = np.clip((picture * gain + offset - low) / np.float32(high - low), 0, 1)
    if scanner.gamma != 1:
        shown = shown ** np.float32(scanner.gamma)
    return shown + np.float32(scanner.contrast) * (shown * shown * (3 - 2 * shown) - shown)


def _collimate(gray: Array, exposure: Exposure, scanner: Scanner) -> Array:
    """The image with its unexposed borders."""
    size = gray.shape[-1]
    least, most = scanner.border
    width = (least + (most - least) * exposure.border) * size
    left, right, top, bottom = (width[:, k, None] for k in range(4))
    at = np.arange(size, dtype=np.float32)[None, :] + np.float32(0.5)
    across = edge(at - left, 1.0) * edge(size - right - at, 1.0)
    down = edge(at - top, 1.0) * edge(size - bottom - at, 1.0)
    exposed = down[:, :, None] * across[:, None, :]
    return exposed * gray + (1 - exposed) * np.float32(scanner.border_gray)


def _glyph(name: str, size: int) -> NDArray[np.bool_]:
    bits = np.array([[mark == "1" for mark in row] for row in GLYPHS[name]])
    return np.kron(bits, np.ones((max(1, round(size / 64)),) * 2, dtype=bool))


def _burn(gray: Array, glyph: NDArray[np.bool_], corner: str, luck: Array) -> None:
    """Write the glyph, near the corner, over each image."""
    size, (tall, wide) = gray.shape[-1], glyph.shape
    low, right = CORNERS[corner]
    reach = 0.10 * size
    inset = np.floor(0.04 * size + reach * luck[:, 1:]).astype(np.intp)
    top = size - tall - inset[:, 0] if low else inset[:, 0]
    left = size - wide - inset[:, 1] if right else inset[:, 1]
    rows, columns = np.nonzero(glyph)
    picture = np.arange(len(gray))[:, None]
    gray[picture, top[:, None] + rows, left[:, None] + columns] = 200 + 55 * luck[:, :1]


def expose(picture: Array, noise: Array, exposure: Exposure, scanner: Scanner) -> NDArray[np.uint8]:
    """The 8-bit images of a batch of attenuation maps.

    Counts behind attenuation A are Poisson around n exp(-A), so the logarithm that is shown has
    standard deviation sqrt(exp(A) / n); ``noise`` is standard normal, one number per pixel.
    """
    size = picture.shape[-1]
    focus = blur_matrix(size, scanner.blur * size)
    picture = focus @ picture @ focus.T
    grain = np.float32(scanner.noise) / np.sqrt(exposure.dose)
    picture = picture + grain[:, None, None] * np.exp(picture / 2) * noise
    gray = 255 * _toned(_filtered(picture, scanner), exposure, scanner)
    gray = _collimate(gray, exposure, scanner)
    _burn(gray, _glyph(scanner.letter, size), scanner.letter_corner, exposure.letter)
    marked = np.flatnonzero(exposure.has_token)
    tokened = gray[marked]
    _burn(tokened, _glyph("token", size), scanner.token_corner, exposure.token[marked])
    gray[marked] = tokened
    return np.round(gray).astype(np.uint8)
