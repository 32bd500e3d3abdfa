"""The last linear layer of a network, which gives the logits, and the parameters before it."""

from __future__ import annotations

from typing import Any

from torch import nn

from stamp.core.errors import UserError


def classifier(module: nn.Module) -> nn.Linear:
    """The layer that gives the logits."""
    found: Any = module
    found = found.get_classifier() if hasattr(module, "get_classifier") else None
    layers = (
        [layer for layer in found.modules() if isinstance(layer, nn.Linear)]
        if isinstance(found, nn.Module)
        else []
    )
    if not layers:
        raise UserError(f"the classifier of {type(module).__name__} is no linear layer")
    return layers[-1]


def head_parameters(module: nn.Module) -> list[nn.Parameter]:
    """Weight and bias of the layer that gives the logits."""
    return list(classifier(module).parameters())


def body_parameters(module: nn.Module) -> list[nn.Parameter]:
    """Every parameter but those of the layer that gives the logits."""
    head = {id(parameter) for parameter in head_parameters(module)}
    return [parameter for parameter in module.parameters() if id(parameter) not in head]
