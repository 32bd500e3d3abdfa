"""Models that are run as they are: a file or a function from pixels to outputs, nothing inside it.

Their outputs become logits over the study's classes like any other model's; features, taps and
gradients are not available, and whoever asks for them gets the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from stamp.core.errors import UserError
from stamp.models.loaded_model import LoadedModel
from stamp.models.loaders.checkpoint import by_name
from stamp.models.probabilities import LEAST_SIGMOID, LEAST_SOFTMAX, SUM

Run = Callable[[torch.Tensor], Any]


class BlackBoxModule(nn.Module):
    """A function of pixels as a module; ``kind`` is what it is called, such as an ONNX file."""

    def __init__(self, run: Run, kind: str):
        super().__init__()
        self.run = run  # a module too is registered by this, and moves with it
        self.kind = kind

    @property
    def why_closed(self) -> str:
        """Why nothing inside it can be looked at."""
        return f"not available: {self.kind} is run as it is, its layers are not known"

    def get_classifier(self) -> nn.Module:
        raise UserError(self.why_closed)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        found = self.run(pixels)
        if not isinstance(found, torch.Tensor):
            raise UserError(
                f"{self.kind} gives a {type(found).__name__}, but one tensor of outputs is expected"
            )
        if found.ndim != 2 or len(found) != len(pixels):
            raise UserError(
                f"{self.kind} gives outputs of shape {list(found.shape)} for {len(pixels)} images, "
                f"but [{len(pixels)}, classes] is expected"
            )
        return found


class FromProbabilities(nn.Module):
    """A network that ends in a softmax or sigmoid, with logits in the place of probabilities."""

    def __init__(self, network: nn.Module, kind: str):
        super().__init__()
        self.network: Any = network
        self.kind = kind

    def get_classifier(self) -> nn.Module:
        return self.network.get_classifier()

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        p = self.network(pixels).double()
        if ((p < 0) | (p > 1)).any():
            raise UserError("probabilities: an output is outside [0, 1]: are these logits?")
        if self.kind == "softmax":
            sums = p.sum(dim=1)
            if (far := abs(sums - 1) > SUM).any():
                raise UserError(
                    f"probabilities: the outputs of an image sum to {sums[far][0]:.3g}, not to 1: "
                    "is this no softmax?"
                )
            return p.clamp(min=LEAST_SOFTMAX).log().float()
        return p.clamp(LEAST_SIGMOID, 1 - LEAST_SIGMOID).logit().float()


def finished(
    module: nn.Module, block: Mapping[str, Any], classes: Sequence[str], what: str
) -> LoadedModel:
    """A module of a ``load`` block that says how its pixels are normalised and its outputs named.

    ``probabilities`` of the block is ``softmax`` or ``sigmoid`` where its outputs are such.
    """
    mean, std = (tuple(float(value) for value in block[key]) for key in ("mean", "std"))
    if len(mean) != len(std):
        raise UserError(f"{what}: mean has {len(mean)} numbers, std {len(std)}")
    channels = block["preprocessing"]["channels"]
    if channels not in (1, len(mean)):
        raise UserError(
            f"{what}: mean has {len(mean)} numbers, but pixels have {channels} channels"
        )
    if kind := block.get("probabilities"):
        module = FromProbabilities(module, kind)
    named, missing = by_name(
        module, block.get("outputs", list(classes)), classes, f"{what}: outputs"
    )
    return LoadedModel(named.eval(), mean, std, missing, stated_parameters=block.get("parameters"))
