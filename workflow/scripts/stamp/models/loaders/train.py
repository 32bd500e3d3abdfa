"""Models that a rule of the workflow trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stamp.models.architectures import build
from stamp.models.loaded_model import LoadedModel
from stamp.models.weights import read_weights

MEAN, STD = 0.5, 0.25


def network(block: Mapping[str, Any], classes: Sequence[str]) -> LoadedModel:
    """The untrained network of a ``load`` block, with the normalisation it is trained under."""
    pixels = block["preprocessing"]
    module = build(
        block["arch"], block.get("arch_args", {}), len(classes), pixels["channels"], pixels["size"]
    )
    return LoadedModel(module, (MEAN,) * pixels["channels"], (STD,) * pixels["channels"])


def load(block: Mapping[str, Any], classes: Sequence[str], weights: Path | None) -> LoadedModel:
    """The network with the weights that the training rule wrote."""
    if weights is None:
        raise ValueError("a trained model needs its weights file")
    loaded = network(block, classes)
    read_weights(loaded.module, weights)
    return loaded
