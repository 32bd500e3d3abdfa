"""Feature taps: a network's features on the way to its logits, at a quarter, half and so on.

Blocks are found by the names that networks give them, their outputs pooled as the layerwise score
needs them: averaged over space for maps, over patch tokens for token models.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import TracebackType
from typing import Any

import torch
from torch import nn

from stamp.core.errors import UserError
from stamp.models.classifier import classifier

SHARES = {"early": 0.25, "mid": 0.5, "late": 0.75, "penultimate": 1.0}
STAGES = ("stages", "layers", "blocks")


def _chain(module: nn.Module) -> list[nn.Module]:
    """A module and, one inside the other, the networks that it wraps."""
    chain = [module]
    while isinstance(inner := getattr(chain[-1], "network", None), nn.Module):
        chain.append(inner)
    return chain


def _groups(network: Any) -> list[nn.Module]:
    """The stages of a network in order, or its blocks where it has no stages."""
    if isinstance(getattr(network, "encoder", None), nn.Module):
        return list(getattr(network.encoder, "layers", getattr(network.encoder, "layer", ())))
    if isinstance(getattr(network, "layer1", None), nn.Module):
        names = sorted(name for name, _ in network.named_children() if name[:-1] == "layer")
        return [getattr(network, name) for name in names]
    for name in STAGES:
        if isinstance(found := getattr(network, name, None), nn.Sequential | nn.ModuleList):
            return list(found)
    return []


def blocks(module: nn.Module) -> list[nn.Module]:
    """The blocks of a network in order, out of all its stages; a dense block is one block."""
    network: Any = _chain(module)[-1]
    if hasattr(network, "why_closed"):
        raise UserError(network.why_closed)
    features = getattr(network, "features", None)
    if isinstance(features, nn.Module):
        found = [child for name, child in features.named_children() if "denseblock" in name]
    else:
        found = []
        for group in _groups(network):
            inner: Any = getattr(
                group, "blocks", group if isinstance(group, nn.Sequential) else None
            )
            found.extend([group] if inner is None else inner)
    if not found:
        raise UserError(f"no blocks are known in {type(network).__name__}")
    return found


def pool(output: Any, prefix: int, channels_last: bool) -> torch.Tensor:
    """[n, width]: the mean over space of a map, or over the tokens after the first ``prefix``."""
    tensor = output if isinstance(output, torch.Tensor) else output[0]
    if tensor.ndim == 4:
        return tensor.mean(dim=(1, 2) if channels_last else (2, 3))
    return tensor[:, prefix:].mean(dim=1) if tensor.ndim == 3 else tensor


def _prefix(module: nn.Module) -> int:
    """How many of the first tokens are no patches."""
    chain = _chain(module)
    told: list[Any] = [getattr(each, "num_prefix_tokens", None) for each in chain]
    found = [number for number in told if number is not None]
    return found[0] if found else int(getattr(chain[-1], "cls_token", None) is not None)


def _channels_last(module: nn.Module) -> bool:
    """Whether the maps of a network's blocks have their channels last."""
    network: Any = _chain(module)[-1]
    last = getattr(network, "output_fmt", "NCHW") == "NHWC"
    return last or type(network).__name__ == "VisionTransformerSAM"


def layout(module: nn.Module) -> tuple[int, bool, tuple[int, int] | None]:
    """How blocks lay their outputs out: first tokens that are no patches, channels last, the grid.

    The grid of the patches is None where the network does not tell.
    """
    embedding: Any = getattr(_chain(module)[-1], "patch_embed", None)
    told = getattr(embedding, "grid_size", None)
    grid = (int(told[0]), int(told[1])) if told is not None else None
    return _prefix(module), _channels_last(module), grid


class Taps:
    """``with Taps(module) as taps: module(pixels)``, then ``taps.pooled``.

    ``pooled`` has the outputs at 25, 50, 75 and 100 % of the blocks as early, mid, late and
    penultimate, each [n, width]; ``classifier_input`` is what enters the last linear layer, and all
    that a network without known blocks has to show: ``Taps(module, pooled=False)``.
    """

    def __init__(self, module: nn.Module, pooled: bool = True):
        self.module, self.wants_pooled = module, pooled
        self.pooled: dict[str, torch.Tensor] = {}
        self.classifier_input: torch.Tensor | None = None
        self._handles: list[Any] = []

    @property
    def places(self) -> Mapping[str, nn.Module]:
        """The block of each tap."""
        if not self.wants_pooled:
            return {}
        found = blocks(self.module)
        return {name: found[math.ceil(share * len(found)) - 1] for name, share in SHARES.items()}

    def __enter__(self) -> Taps:
        prefix, channels_last = _prefix(self.module), _channels_last(self.module)

        def tap(name: str) -> Any:
            def keep(block: nn.Module, inputs: Any, output: Any) -> None:
                self.pooled[name] = pool(output, prefix, channels_last)

            return keep

        def keep_input(layer: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
            self.classifier_input = inputs[0]

        for name, block in self.places.items():
            self._handles.append(block.register_forward_hook(tap(name)))
        self._handles.append(classifier(self.module).register_forward_pre_hook(keep_input))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
