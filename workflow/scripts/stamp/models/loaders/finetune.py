"""Networks that start from published weights and are fine-tuned by a rule, or were elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from stamp.models import attention
from stamp.models.architectures import build
from stamp.models.backbones import initial_state, normalisation, sized
from stamp.models.classifier import classifier, head_parameters
from stamp.models.loaded_model import LoadedModel
from stamp.models.loaders.checkpoint import by_name
from stamp.models.weights import fit, hub_record, located, read_weights


def _bare(block: Mapping[str, Any], outputs: int) -> LoadedModel:
    """The untrained network with its normalisation: that of the weights it starts from."""
    name, size = block["arch"], block["preprocessing"]["size"]
    mean, std = normalisation(block, block.get("initial", {}).get("timm", name))
    arguments = sized(name, block.get("arch_args", {}), size)
    if kind := block.get("attention"):
        module = attention.build(name, arguments, kind, outputs, len(mean), size)
    else:
        module = build(name, arguments, outputs, len(mean), size)
    classifier(module)
    return LoadedModel(module, mean, std)


def network(block: Mapping[str, Any], classes: Sequence[str], initial: bool = True) -> LoadedModel:
    """The network of a ``load`` block with a new classifier, and its initial weights if asked.

    The initial weights must be there for every parameter but the classifier's and those of
    attention modules, which a plain ResNet has not.
    """
    loaded = _bare(block, len(classes))
    settings = block.get("initial", {})
    if not initial or settings.get("none"):
        return loaded
    module, name = loaded.module, block["arch"]
    arguments = sized(name, block.get("arch_args", {}), block["preprocessing"]["size"])
    state, where, origin = initial_state(
        settings, module, name, arguments, len(classes), len(loaded.mean)
    )
    head = {id(tensor) for tensor in head_parameters(module)}
    new = {key for key, tensor in module.named_parameters() if id(tensor) in head}
    fit(
        module,
        {key: tensor for key, tensor in state.items() if key not in new},
        where,
        allow_missing=lambda key: key in new or attention.is_attention(key),
    )
    return replace(loaded, origin=origin)


def load(block: Mapping[str, Any], classes: Sequence[str], weights: Path | None) -> LoadedModel:
    """The network with the weights that a rule trained, or those of the block's checkpoint."""
    published = block.get("checkpoint")
    if published is None and weights is None:
        raise ValueError("a fine-tuned model needs its weights file")
    settings = published or {}
    outputs = settings.get("outputs", list(classes))
    loaded = _bare(block, len(outputs))
    path = weights or located(settings, f"architecture '{block['arch']}': checkpoint")
    read_weights(loaded.module, path, settings.get("prefix", ""))
    what = f"architecture '{block['arch']}': checkpoint.outputs"
    module, missing = by_name(loaded.module, outputs, classes, what)
    return LoadedModel(module, loaded.mean, loaded.std, missing, hub_record(path))
