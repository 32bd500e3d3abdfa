"""What every loader gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import nn


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A module from normalised pixels to logits over the study's classes, and its normalisation.

    ``missing`` are the numbers of the classes that the model has no output for: its logits there
    are NaN, and whatever reads them leaves those classes out. ``origin`` says which file of the hub
    holds the weights, with its commit; it goes into the metadata of the logits.
    ``stated_parameters`` is the number of parameters where the module has none to count.
    """

    module: nn.Module
    mean: tuple[float, ...]
    std: tuple[float, ...]
    missing: tuple[int, ...] = ()
    origin: Mapping[str, str] = field(default_factory=dict)
    stated_parameters: int | None = None

    @property
    def parameters(self) -> int | None:
        """How many numbers were learned (buffers do not count); None where nobody knows."""
        return (
            sum(parameter.numel() for parameter in self.module.parameters())
            or self.stated_parameters
        )
