"""Distances between the two images of each semantic pair, in the model's input space."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stamp.inference.extra_outputs.runner import SMALL_BATCH, ArrayStream, Chunk, Runner


def pixel_distances(runner: Runner) -> ArrayStream:
    """``||x_a - x_b||^2`` of every semantic pair; nothing is forwarded.

    ``a`` and ``b`` are rows of the source view.
    """
    ends = dict(zip("ab", runner.images.semantic, strict=True))

    def chunks() -> Iterator[Chunk]:
        for name, rows in ends.items():
            yield Chunk(name, rows.astype(np.int32))
        both = (runner.batches(rows, SMALL_BATCH) for rows in ends.values())
        for (start, _, first), (_, _, second) in zip(*both, strict=True):
            difference = runner.forward.normalised(first) - runner.forward.normalised(second)
            squared = difference.flatten(1).double().square().sum(dim=1)
            yield Chunk("squared", squared.cpu().numpy(), start)

    count = len(ends["a"])
    arrays = {
        "squared": (np.float64, (count,)),
        "a": (np.int32, (count,)),
        "b": (np.int32, (count,)),
    }
    return ArrayStream(arrays, chunks(), len(np.union1d(*ends.values())), 0)
