"""Random augmentations of a batch of training images, drawn from their own generator."""

from __future__ import annotations

import math

import torch
from torch.nn import functional

DEGREES = 12.0
SHIFT = 0.08
SCALE = 0.1
BRIGHTNESS = 0.2
CONTRAST = 0.3
NOISE = 0.05
HOLE = 0.25


def _uniform(n: int, low: float, high: float, generator: torch.Generator) -> torch.Tensor:
    return torch.rand(n, generator=generator) * (high - low) + low


def affine(images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Each image rotated, scaled and shifted by its own amount (bilinear, black outside)."""
    n = len(images)
    angle = _uniform(n, -DEGREES, DEGREES, generator) * (math.pi / 180)
    scale = _uniform(n, 1 - SCALE, 1 + SCALE, generator)
    matrix = torch.zeros(n, 2, 3)
    matrix[:, 0, 0] = matrix[:, 1, 1] = torch.cos(angle) * scale
    matrix[:, 0, 1] = -torch.sin(angle) * scale
    matrix[:, 1, 0] = torch.sin(angle) * scale
    matrix[:, :, 2] = torch.stack(
        [_uniform(n, -2 * SHIFT, 2 * SHIFT, generator) for _ in range(2)], dim=1
    )
    grid = functional.affine_grid(matrix, list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid, align_corners=False)


def augment(images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Augmented float images in [0, 1]: geometry, brightness, contrast, noise, one hole."""
    n, _, height, width = images.shape
    out = affine(images, generator)
    gain = _uniform(n, 1 - CONTRAST, 1 + CONTRAST, generator)[:, None, None, None]
    offset = _uniform(n, -BRIGHTNESS, BRIGHTNESS, generator)[:, None, None, None]
    out = (out - 0.5) * gain + 0.5 + offset
    sigma = _uniform(n, 0.0, NOISE, generator)[:, None, None, None]
    out = out + sigma * torch.randn(out.shape, generator=generator)
    rows = torch.arange(height)[None, :] - torch.randint(height, (n, 1), generator=generator)
    columns = torch.arange(width)[None, :] - torch.randint(width, (n, 1), generator=generator)
    hole = (rows.abs() < HOLE * height / 2)[:, :, None] & (columns.abs() < HOLE * width / 2)[
        :, None
    ]
    return out.masked_fill(hole[:, None], 0.5).clamp(0, 1)
