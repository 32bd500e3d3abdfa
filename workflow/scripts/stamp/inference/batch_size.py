"""As many images at a time as the memory of the device holds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from stamp.core.errors import UserError
from stamp.core.progress import note


class InPieces:
    """A forward pass of a batch in pieces of ``size``, which is halved when memory runs out.

    What was done of a batch is kept; the piece that did not fit is tried again at half its size,
    and later batches begin at that size. ``forward`` must give one row per image.
    """

    def __init__(self, forward: Callable[[torch.Tensor], np.ndarray], size: int):
        self.forward, self.size = forward, size

    def __call__(self, batch: torch.Tensor) -> np.ndarray:
        done: list[np.ndarray] = []
        at = 0
        while at < len(batch):
            piece = self._tried(batch[at : at + self.size])
            if piece is None:
                self.size = halved(min(self.size, len(batch) - at))
                continue
            done.append(piece)
            at += len(piece)
        return done[0] if len(done) == 1 else np.concatenate(done)

    def _tried(self, images: torch.Tensor) -> np.ndarray | None:
        """The outputs; None where memory ran out, after the failed pass has let go of its own."""
        try:
            return self.forward(images)
        except torch.OutOfMemoryError:
            return None


def halved(size: int) -> int:
    """Half as many images, after memory ran out; one image that does not fit is an error."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    if size <= 1:
        raise UserError("the memory of the device does not hold one image at a time: use a larger")
    note(f"memory ran out with {size} images at a time: {size // 2} from here on")
    return size // 2
