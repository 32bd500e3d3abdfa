"""Frozen published backbones under a linear head that a rule fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from stamp.config.registries.model_sources import backbone_key
from stamp.models.backbones import embedding, normalisation
from stamp.models.loaded_model import LoadedModel
from stamp.models.weights import read_weights

__all__ = ["Backbone", "Probe", "backbone", "backbone_key", "load", "network"]


@dataclass(frozen=True, slots=True)
class Backbone:
    """A module from normalised pixels to [n, width] features, and its normalisation.

    ``origin`` says which file of the hub its weights are, if they are from there.
    """

    module: nn.Module
    mean: tuple[float, ...]
    std: tuple[float, ...]
    width: int
    origin: Mapping[str, str] = field(default_factory=dict)


class Probe(nn.Module):
    """A frozen backbone and a linear head."""

    def __init__(self, network: nn.Module, width: int, classes: int):
        super().__init__()
        self.network = network
        self.head = nn.Linear(width, classes)

    def get_classifier(self) -> nn.Module:
        return self.head

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.head(self.network(pixels))


def backbone(block: Mapping[str, Any], initial: bool = True) -> Backbone:
    """The backbone of a ``load`` block, frozen, with its published weights if ``initial``."""
    settings, size = block["backbone"], block["preprocessing"]["size"]
    mean, std = normalisation(settings, settings.get("timm", settings.get("transformers")))
    module, origin = embedding(settings, size, initial)
    module.eval().requires_grad_(False)
    with torch.inference_mode():
        width = module(torch.zeros(1, len(mean), size, size)).shape[1]
    return Backbone(module, mean, std, width, origin)


def network(block: Mapping[str, Any], classes: Sequence[str], initial: bool = True) -> LoadedModel:
    """The backbone under a head that is not fitted yet."""
    found = backbone(block, initial)
    probe = Probe(found.module, found.width, len(classes)).eval()
    return LoadedModel(probe, found.mean, found.std, origin=found.origin)


def load(block: Mapping[str, Any], classes: Sequence[str], weights: Path | None) -> LoadedModel:
    """The backbone with its published weights under the head that a rule fitted."""
    if weights is None:
        raise ValueError("a probe needs the file of its head")
    loaded = network(block, classes)
    head: Any = loaded.module
    read_weights(head.get_classifier(), weights)
    return loaded
