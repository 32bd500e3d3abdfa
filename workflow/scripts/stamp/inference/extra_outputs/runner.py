"""What all kinds of extra outputs share: the model on its images, and arrays made in chunks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from stamp.core.errors import UserError
from stamp.images.prefetch import ahead_on, pinned, prefetched
from stamp.inference.batch_size import halved
from stamp.inference.extra_outputs.selected_images import SelectedImages
from stamp.inference.logits import BATCH, Execution, Forward, check_outputs
from stamp.models.loaded_model import LoadedModel

SMALL_BATCH = 32  # where a batch is held with its activations, or several times over

Shape = tuple[Any, tuple[int, ...]]  # type and shape of an array


class Unavailable(UserError):
    """An output that a model turns out not to give while it is run."""


class Chunk(NamedTuple):
    """Some rows of one of the arrays: the first row's number, and the plane of a stack."""

    array: str
    values: np.ndarray
    row: int = 0
    plane: int = 0


@dataclass(frozen=True, slots=True)
class ArrayStream:
    """The arrays of one kind: announced by type and shape, computed chunk by chunk.

    ``images`` is how many images they are of, ``forwarded`` how many forward passes they take.
    ``notes`` go to the manifest.
    """

    arrays: Mapping[str, Shape]
    chunks: Iterator[Chunk]
    images: int
    forwarded: int
    notes: Mapping[str, str] = field(default_factory=dict)


class Runner:
    """A loaded model and the images that it is run on."""

    def __init__(
        self,
        loaded: LoadedModel,
        classes: int,
        images: SelectedImages,
        settings: Mapping[str, Any],
        seed: int,
        execution: Execution,
    ):
        device = execution.device
        self.loaded, self.classes, self.images = loaded, classes, images
        self.settings, self.seed, self.device = settings, seed, device
        self.forward = Forward(loaded, device)
        # by what a kind's batches are divided at first, and now, after memory ran out
        self.first_parts = self.parts = -(-BATCH // min(execution.batch, BATCH))
        # logits are kept as precise as they were computed
        self.precision = np.float16 if device == "cuda" else np.float32
        # two of the images, to see what the network gives
        self.example = torch.from_numpy(images.cache.take(images.rows[:2])).to(device)

    @property
    def module(self) -> nn.Module:
        return self.forward.module

    def batches(
        self, rows: np.ndarray, size: int = BATCH
    ) -> Iterator[tuple[int, list[str], torch.Tensor]]:
        """Where each batch begins, its image ids and its uint8 pixels on the device.

        On CUDA the next ones are read and pinned meanwhile.
        """
        size = max(1, size // self.parts)

        def read(start: int) -> torch.Tensor:
            pixels = self.images.cache.take(rows[start : start + size])
            return pinned(torch.from_numpy(pixels), self.device)

        starts = range(0, len(rows), size)
        found = prefetched(read, starts, ahead_on(self.device))
        for start, pixels in zip(starts, found, strict=True):
            ids = [self.images.ids[row] for row in rows[start : start + size]]
            yield start, ids, pixels.to(self.device, non_blocking=True)

    def take_smaller_batches(self) -> None:
        """Halve the batches, after memory ran out."""
        self.parts = BATCH // halved(BATCH // self.parts)

    def logits(self, pixels: torch.Tensor) -> np.ndarray:
        """Checked logits of uint8 pixels."""
        return self.checked(self.forward(pixels))

    def checked(self, logits: np.ndarray) -> np.ndarray:
        """The logits if they can be used, NaN for the classes that the model does not have."""
        try:
            check_outputs(logits, self.classes, "", self.loaded.missing)
        except UserError as mistake:
            raise Unavailable(str(mistake).removeprefix("model '': ")) from None
        if self.loaded.missing:
            logits[:, list(self.loaded.missing)] = np.nan
        return logits

    def logits_shape(self, planes: int | None = None) -> Shape:
        """Type and shape of the logits of one forward pass per image, or of several."""
        shape = (len(self.images.rows), self.classes)
        return self.precision, shape if planes is None else (planes, *shape)

    @property
    def rows_shape(self) -> Shape:
        """Type and shape of the array that says which images were forwarded."""
        return np.int32, (len(self.images.rows),)

    @property
    def rows_chunk(self) -> Chunk:
        """The array that says which images were forwarded."""
        return Chunk("rows", self.images.rows.astype(np.int32))


@contextmanager
def differentiating() -> Iterator[None]:
    """Torch's objection to a network's gradients becomes the reason why there are none."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        raise UserError(f"gradients can't be taken: {str(error).splitlines()[0]}") from None
