"""The size and the channels of pixels that some images suggest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stamp.core.errors import UserError
from stamp.images.reading import open_image

TRIED = 16
USUAL = 224


@dataclass(frozen=True, slots=True)
class Pixels:
    """What models see of an image, and why."""

    size: int
    channels: int
    why: str


def pixels_of(paths: Sequence[str], size: int | None, channels: int | None) -> Pixels:
    """What the user said, else the shorter side, at most 224, and one channel where all is gray."""
    there = [path for path in paths[:: max(1, len(paths) // TRIED)] if Path(path).is_file()]
    seen = []
    for path in there[:TRIED]:
        try:
            seen.append(open_image(path, 3))
        except UserError:
            continue  # check-data tells which
    if not seen:
        why = "as no image could be opened: only outputs that you bring can be scored"
        return Pixels(size or USUAL, channels or 3, why)
    gray = all(np.ptp(np.asarray(one), axis=2).max() == 0 for one in seen)
    side = min(min(one.size) for one in seen)
    colours = "gray" if gray else "colour"
    why = f"from {len(seen)} images in {colours}, {side} pixels or more at the shorter side"
    return Pixels(size or min(USUAL, side), channels or (1 if gray else 3), why)
