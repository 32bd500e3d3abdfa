"""Logits of augmented images: one random augmentation each, all together, or fixed views."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext

import numpy as np

from stamp.core.errors import UserError
from stamp.images.augmentations import AUGMENTATIONS, VIEWS
from stamp.inference.extra_outputs.embeddings import checked, embedding_width, head_taps
from stamp.inference.extra_outputs.runner import ArrayStream, Chunk, Runner
from stamp.models.taps import Taps


def augmented(name: str) -> Callable[[Runner], ArrayStream]:
    """The maker of the logits under one augmentation, drawn from seed and image id."""
    augment = AUGMENTATIONS[name]

    def make(runner: Runner) -> ArrayStream:
        rows = runner.images.rows
        arrays = {"logits": runner.logits_shape(), "rows": runner.rows_shape}

        def chunks() -> Iterator[Chunk]:
            yield runner.rows_chunk
            for start, ids, pixels in runner.batches(rows):
                yield Chunk("logits", runner.logits(augment(pixels, ids, runner.seed)), start)

        return ArrayStream(arrays, chunks(), len(rows), len(rows))

    return make


def composite(runner: Runner) -> ArrayStream:
    """The logits under all augmentations together, and the embeddings if the model has them."""
    rows, notes = runner.images.rows, {}
    arrays = {"logits": runner.logits_shape(), "rows": runner.rows_shape}
    taps: Taps | None = None
    try:
        taps = head_taps(runner)
        arrays["embeddings"] = (np.float32, (len(rows), embedding_width(runner, taps)))
    except UserError as mistake:
        taps, notes["embeddings"] = None, str(mistake)

    def chunks() -> Iterator[Chunk]:
        yield runner.rows_chunk
        for start, ids, pixels in runner.batches(rows):
            with taps or nullcontext():
                logits = runner.logits(AUGMENTATIONS["composite"](pixels, ids, runner.seed))
            yield Chunk("logits", logits, start)
            if taps is not None:
                yield Chunk("embeddings", checked(taps.classifier_input), start)

    return ArrayStream(arrays, chunks(), len(rows), len(rows), notes)


def tta(runner: Runner) -> ArrayStream:
    """The logits of each fixed view of test-time augmentation."""
    rows = runner.images.rows

    def chunks() -> Iterator[Chunk]:
        yield runner.rows_chunk
        for start, _, pixels in runner.batches(rows):
            for plane, view in enumerate(VIEWS.values()):
                yield Chunk("logits", runner.logits(view(pixels)), start, plane)

    arrays = {"logits": runner.logits_shape(len(VIEWS)), "rows": runner.rows_shape}
    notes = {"views": ", ".join(VIEWS)}
    return ArrayStream(arrays, chunks(), len(rows), len(VIEWS) * len(rows), notes)
