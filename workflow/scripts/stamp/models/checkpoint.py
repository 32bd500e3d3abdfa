"""Published checkpoints: an architecture and a weights file, outputs matched to classes by name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from stamp.errors import UserError
from stamp.models.architectures import build
from stamp.models.backbones import normalisation, sized
from stamp.models.loaded import Loaded
from stamp.models.weights import located, read_weights


class Named(nn.Module):
    """A network with its outputs in the order of the study's classes; NaN where it has none."""

    chosen: torch.Tensor
    present: torch.Tensor

    def __init__(self, network: nn.Module, chosen: Sequence[int | None]):
        super().__init__()
        self.network: Any = network
        self.classes = len(chosen)
        places = [place for place, output in enumerate(chosen) if output is not None]
        outputs = [output for output in chosen if output is not None]
        self.register_buffer("present", torch.tensor(places), persistent=False)
        self.register_buffer("chosen", torch.tensor(outputs), persistent=False)

    def get_classifier(self) -> nn.Module:
        return self.network.get_classifier()

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        outputs = self.network(pixels)
        logits = outputs.new_full((len(outputs), self.classes), torch.nan)
        return logits.index_copy(1, self.present, outputs.index_select(1, self.chosen))


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def by_name(
    network: nn.Module, outputs: Sequence[str], classes: Sequence[str], what: str
) -> tuple[nn.Module, tuple[int, ...]]:
    """``network`` with its outputs in the order of ``classes``, and the classes that it lacks.

    Names must be the study's own. An output that no class is named after is left out; one that
    differs from a class in spelling only is a mistake, and so is a name given twice.
    """
    if list(outputs) == list(classes):
        return network, ()
    spelled = {_letters(name): name for name in classes}
    for name in filter(None, outputs):
        meant = spelled.get(_letters(name), name)
        if meant != name:
            raise UserError(f"{what}: unknown class '{name}': did you mean '{meant}'?")
        if list(outputs).count(name) > 1:
            raise UserError(f"{what}: the output '{name}' is named twice")
    chosen = [list(outputs).index(name) if name in outputs else None for name in classes]
    if all(output is None for output in chosen):
        raise UserError(f"{what}: none of its outputs is a class of the study")
    missing = tuple(number for number, output in enumerate(chosen) if output is None)
    return Named(network, chosen), missing


def network(block: Mapping[str, Any], classes: Sequence[str]) -> Loaded:
    """The architecture of a ``load`` block, not trained, with the study's classes as outputs."""
    name, size = block["arch"], block["pixels"]["size"]
    mean, std = normalisation(block, name)
    outputs = block.get("outputs", list(classes))
    arguments = sized(name, block.get("arch_args", {}), size)
    made = build(name, arguments, len(outputs), len(mean), size)
    module, missing = by_name(made, outputs, classes, f"architecture '{name}': outputs")
    return Loaded(module, mean, std, missing)


def load(block: Mapping[str, Any], classes: Sequence[str], weights: Path | None) -> Loaded:
    """The architecture with the weights of ``weights``, or of the block's file, URL or hub."""
    loaded = network(block, classes)
    path = weights or located(block, f"architecture '{block['arch']}'")
    module = loaded.module.network if isinstance(loaded.module, Named) else loaded.module
    read_weights(module, path, block.get("prefix", ""))
    return loaded
