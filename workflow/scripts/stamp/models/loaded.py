"""What every loader gives back."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn


@dataclass(frozen=True, slots=True)
class Loaded:
    """A module from normalised pixels to logits over the study's classes, and its normalisation.

    ``missing`` are the numbers of the classes that the model has no output for: its logits there
    are NaN, and whatever reads them leaves those classes out.
    """

    module: nn.Module
    mean: tuple[float, ...]
    std: tuple[float, ...]
    missing: tuple[int, ...] = ()

    @property
    def parameters(self) -> int:
        """How many numbers were learned (buffers do not count)."""
        return sum(parameter.numel() for parameter in self.module.parameters())
