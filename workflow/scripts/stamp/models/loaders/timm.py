"""timm models with published weights: from the hub, through its cache, or from a file elsewhere.

The weights of a tag are first brought to the cache, at the block's ``revision``, and then read from
there by timm, which knows each architecture's older layouts. ``head: random`` puts an untrained
classifier on a network, for checkpoints that were published without one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from stamp.core.errors import UserError
from stamp.models.architectures import build
from stamp.models.backbones import (
    converted,
    in_the_hub,
    normalisation,
    published,
    read_by_timm,
    sized,
)
from stamp.models.loaded_model import LoadedModel
from stamp.models.weights import ORIGINS, fit, hub_record, located, read_state

HEAD_STD = 0.02


def load(block: Mapping[str, Any], classes: Sequence[str], weights: Path | None) -> LoadedModel:
    """The named timm model with its weights, and an output for each of the study's classes."""
    name, size, untrained = (
        block["name"],
        block["preprocessing"]["size"],
        block.get("head") == "random",
    )
    record = published(name)
    mean, std = normalisation(block, name)
    given = sized(name, block.get("args", {}), size)
    channels = given.pop("in_chans", block["preprocessing"]["channels"])
    if channels == 1 and len(mean) == 3:
        mean, std = (sum(mean) / 3,), (sum(std) / 3,)
    if weights is None and not any(key in block for key in ORIGINS):
        outputs = 0 if untrained else _outputs(block, record, len(classes))
        path = located(_tag_origin(block, record), f"weights of '{name}'")
        arguments = {"num_classes": outputs, **given, "in_chans": channels}
        module = read_by_timm(name, path, arguments)
    else:
        if "revision" in block and "hub" not in block:
            raise UserError(f"weights of '{name}': revision is of the hub, not of file or url")
        outputs = 0 if untrained else given.pop("num_classes", len(classes))
        path = weights or located(block, f"weights of '{name}'")
        module = build(name, given, outputs, channels, size)
        state = converted(read_state(path, block.get("prefix", "")), module)
        head = str(record.classifier if record else "head").partition(".")[0]
        fit(module, state, path, allow_extra=lambda key: untrained and key.startswith(f"{head}."))
    if untrained:
        attach_random_head(module, len(classes), name)
    return LoadedModel(module, mean, std, origin=hub_record(path))


def _outputs(block: Mapping[str, Any], record: Any, classes: int) -> int:
    """How many outputs the published weights have: as many as the study has classes."""
    name = block["name"]
    if record is None:
        return classes
    if not record.num_classes:
        raise UserError(
            f"weights of '{name}' have no classifier: `head: random` gives them an untrained one"
        )
    if record.num_classes != classes:
        raise UserError(
            f"weights of '{name}' have {record.num_classes} outputs, "
            f"but the study has {classes} classes"
        )
    return classes


def _tag_origin(block: Mapping[str, Any], record: Any) -> dict[str, Any]:
    """Where the weights of a tag are; keys that only weights from elsewhere have are refused."""
    name = block["name"]
    if record is not None and record.hf_hub_id:
        for key, mapping in (("prefix", block), ("num_classes", block.get("args", {}))):
            if key in mapping:
                raise UserError(f"weights of '{name}': {key} is for weights of file, url or hub")
    return in_the_hub(name, block)


def attach_random_head(module: Any, classes: int, name: str) -> None:
    """Give a network an untrained linear classifier, the same for the same name everywhere.

    Weights are normal with a standard deviation of 0.02 and the bias is 0, as timm begins a vision
    transformer. Its outputs say nothing of the classes; the exclusion rules are there to find that.
    """
    module.reset_classifier(classes)
    head = module.get_classifier()
    if not isinstance(head, nn.Linear):
        raise UserError(f"'{name}': `head: random` is for networks that end in a linear layer")
    rng = np.random.default_rng(list(hashlib.sha256(name.encode()).digest()))
    with torch.no_grad():
        head.weight.copy_(torch.from_numpy(HEAD_STD * rng.standard_normal(head.weight.shape)))
        if head.bias is not None:
            head.bias.zero_()
