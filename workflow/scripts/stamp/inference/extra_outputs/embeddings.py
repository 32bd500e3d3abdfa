"""Embeddings: the input of the last linear layer, and pooled activations of earlier blocks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from stamp.core.errors import UserError
from stamp.images.augmentations import turn
from stamp.inference.extra_outputs.runner import ArrayStream, Chunk, Runner, Unavailable
from stamp.models.classifier import classifier
from stamp.models.taps import Taps


def checked(values: torch.Tensor | None) -> np.ndarray:
    """Embeddings [n, width] as an array; a reason where they are of another shape or not finite."""
    if values is None:
        raise Unavailable("its layers can't be watched")
    found = values.detach().float().cpu().numpy()
    if found.ndim != 2:
        raise Unavailable(f"the input of its classifier has shape {list(found.shape[1:])}")
    if not np.isfinite(found).all():
        raise Unavailable("its embeddings are not finite")
    return found


def head_taps(runner: Runner) -> Taps:
    """Taps of the last linear layer alone."""
    if not hasattr(runner.module, "get_classifier"):
        raise UserError("its last linear layer is not known")
    classifier(runner.module)
    return Taps(runner.module, pooled=False)


def _all_taps(runner: Runner) -> tuple[Taps, str]:
    """Taps of the last layer and of earlier blocks, or of the last layer alone and the reason."""
    head, taps = head_taps(runner), Taps(runner.module)
    try:
        with taps:
            runner.forward(runner.example)
        for name in taps.places:
            checked(taps.pooled.get(name))
    except UserError as mistake:
        return head, str(mistake)
    return taps, ""


def _widths(runner: Runner, taps: Taps) -> dict[str, int]:
    """The width of every tap and of the embeddings, from an example."""
    with taps:
        runner.forward(runner.example)
    widths = {name: checked(taps.pooled[name]).shape[1] for name in taps.places}
    return {**widths, "embeddings": checked(taps.classifier_input).shape[1]}


def embedding_width(runner: Runner, taps: Taps) -> int:
    """The width of the embeddings, from an example."""
    return _widths(runner, taps)["embeddings"]


def embeddings(runner: Runner) -> ArrayStream:
    """The embeddings and the pooled taps of every image of the source view."""
    taps, missing = _all_taps(runner)
    every = np.arange(len(runner.images.ids))

    def chunks() -> Iterator[Chunk]:
        for start, _, pixels in runner.batches(every):
            with taps:
                runner.forward(pixels)
            for name in taps.places:
                yield Chunk(name, checked(taps.pooled[name]), start)
            yield Chunk("embeddings", checked(taps.classifier_input), start)

    arrays = {
        name: (np.float32, (len(every), width)) for name, width in _widths(runner, taps).items()
    }
    notes = {"taps": missing} if missing else {}
    return ArrayStream(arrays, chunks(), len(every), len(every), notes)


def target_embeddings(runner: Runner) -> ArrayStream:
    """The embeddings of the selected images of the targets."""
    taps, rows = head_taps(runner), runner.images.rows

    def chunks() -> Iterator[Chunk]:
        yield runner.rows_chunk
        for start, _, pixels in runner.batches(rows):
            with taps:
                runner.forward(pixels)
            yield Chunk("embeddings", checked(taps.classifier_input), start)

    shape = (len(rows), embedding_width(runner, taps))
    arrays = {"embeddings": (np.float32, shape), "rows": runner.rows_shape}
    return ArrayStream(arrays, chunks(), len(rows), len(rows))


def rotation_prediction(runner: Runner) -> ArrayStream:
    """The embeddings of the images rotated by 90, 180 and 270 degrees."""
    taps, rows = head_taps(runner), runner.images.rows

    def chunks() -> Iterator[Chunk]:
        yield runner.rows_chunk
        for start, _, pixels in runner.batches(rows):
            for plane, quarters in enumerate((1, 2, 3)):
                with taps:
                    runner.forward(turn(pixels, quarters))
                yield Chunk("embeddings", checked(taps.classifier_input), start, plane)

    shape = (3, len(rows), embedding_width(runner, taps))
    arrays = {"embeddings": (np.float32, shape), "rows": runner.rows_shape}
    return ArrayStream(arrays, chunks(), len(rows), 3 * len(rows))
