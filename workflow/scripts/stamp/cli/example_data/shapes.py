"""Made-up shapes on noise, one folder per class."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

SHAPES = ("circle", "square", "triangle")


def write_shapes(folder: Path, each: int, size: int, seed: int) -> int:
    """Write shapes of random size and place on noise; how many images there are."""
    rng = np.random.default_rng([seed, 0x5A9E])
    for shape in SHAPES:
        (folder / shape).mkdir(parents=True)
        for number in range(each):
            image = Image.fromarray(rng.integers(0, 120, (size, size)).astype(np.uint8))
            radius = rng.uniform(0.15, 0.35) * size
            x, y = rng.uniform(radius, size - radius, 2)
            pen, box = ImageDraw.Draw(image), (x - radius, y - radius, x + radius, y + radius)
            if shape == "circle":
                pen.ellipse(box, fill=220)
            elif shape == "square":
                pen.rectangle(box, fill=220)
            else:
                pen.polygon([(box[0], box[3]), (box[2], box[3]), (x, box[1])], fill=220)
            image.save(folder / shape / f"{number:03d}.png")
    return each * len(SHAPES)
