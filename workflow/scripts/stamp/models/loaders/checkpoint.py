"""Published checkpoints: an architecture and a weights file, outputs matched to classes by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from stamp.models.architectures import build
from stamp.models.backbones import normalisation, sized
from stamp.models.class_matching import choose, lacking
from stamp.models.loaded_model import LoadedModel
from stamp.models.weights import hub_record, located, read_weights


class NamedOutputs(nn.Module):
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


def by_name(
    network: nn.Module, outputs: Sequence[str], classes: Sequence[str], what: str
) -> tuple[nn.Module, tuple[int, ...]]:
    """``network`` with its outputs in the order of ``classes``, and the classes that it lacks."""
    if list(outputs) == list(classes):
        return network, ()
    chosen = choose(outputs, classes, what)
    return NamedOutputs(network, chosen), lacking(chosen)


def network(block: Mapping[str, Any], classes: Sequence[str]) -> LoadedModel:
    """The architecture of a ``load`` block, not trained, with the study's classes as outputs."""
    name, size = block["arch"], block["preprocessing"]["size"]
    mean, std = normalisation(block, name)
    outputs = block.get("outputs", list(classes))
    arguments = sized(name, block.get("arch_args", {}), size)
    made = build(name, arguments, len(outputs), len(mean), size)
    module, missing = by_name(made, outputs, classes, f"architecture '{name}': outputs")
    return LoadedModel(module, mean, std, missing)


def load(block: Mapping[str, Any], classes: Sequence[str], weights: Path | None) -> LoadedModel:
    """The architecture with the weights of ``weights``, or of the block's file, URL or hub."""
    loaded = network(block, classes)
    path = weights or located(block, f"architecture '{block['arch']}'")
    module = loaded.module.network if isinstance(loaded.module, NamedOutputs) else loaded.module
    read_weights(module, path, block.get("prefix", ""))
    return replace(loaded, origin=hub_record(path))
