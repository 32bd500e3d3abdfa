"""A score that grows batch by batch, for an evaluation loop."""

from __future__ import annotations

from typing import Any

import numpy as np

from stamp.api import arrays
from stamp.api.images import Images
from stamp.api.score import DEFAULT, ScoredModel, Settings, score
from stamp.core.errors import UserError


class Accumulator:
    """Collects outputs with ``update`` and scores them with ``compute``, as torchmetrics does.

    Outputs are kept on the CPU, in float32 where that loses nothing: 4 bytes per image and class.
    The score is that of :func:`stamp.score` on all batches in their order.
    """

    def __init__(self, settings: Settings = DEFAULT) -> None:
        self.settings = settings
        self.reset()

    def reset(self) -> None:
        """Forget all batches."""
        self._outputs: list[np.ndarray] = []
        self._images: dict[str, list[Any]] = {}

    def update(self, outputs: Any, images: Images) -> None:
        """Add a batch: outputs [images, classes], and who and what its images show."""
        found = arrays.outputs(outputs)
        if self._outputs and found.shape[1] != self._outputs[0].shape[1]:
            known = self._outputs[0].shape[1]
            raise UserError(f"a batch has {found.shape[1]} classes, those before it {known}")
        given = {
            name: arrays.per_image(value, f"images.{name}", len(found))
            for name in Images.__dataclass_fields__
            if (value := getattr(images, name)) is not None
        }
        if self._outputs and set(given) != set(self._images):
            missing = sorted(set(given) ^ set(self._images))
            raise UserError(f"images.{missing[0]} is given for some batches and not for others")
        short = found.astype(np.float32)
        self._outputs.append(short if np.array_equal(short, found, equal_nan=True) else found)
        for name, values in given.items():
            self._images.setdefault(name, []).extend(values)

    def compute(self) -> ScoredModel:
        """The score of all images so far."""
        if not self._outputs:
            raise UserError("no batch yet: call update first")
        return score(np.concatenate(self._outputs), Images(**self._images), self.settings)
