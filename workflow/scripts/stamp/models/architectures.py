"""Architectures by name: timm's, with any of their arguments, and a linear model on pixels."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from stamp.core.errors import UserError, suggest
from stamp.models.torchvision_ops import timm


class Linear(nn.Module):
    """Logistic regression on pixels, with the interface of a timm model."""

    def __init__(self, inputs: int, classes: int):
        super().__init__()
        self.num_features = inputs
        self.head = nn.Linear(inputs, classes)

    def get_classifier(self) -> nn.Module:
        return self.head

    def forward_features(self, pixels: torch.Tensor) -> torch.Tensor:
        return pixels.flatten(1)

    def forward_head(self, features: torch.Tensor, pre_logits: bool = False) -> torch.Tensor:
        return features if pre_logits else self.head(features)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.forward_head(self.forward_features(pixels))


def _timm_class(name: str) -> type[nn.Module] | None:
    """A network class of timm, written ``module:Class``, for those whose names fix their widths."""
    module, _, attribute = name.partition(":")
    if not attribute or not re.fullmatch(r"[a-z0-9_]+", module):
        return None
    try:
        found = getattr(importlib.import_module(f"timm.models.{module}"), attribute, None)
    except ModuleNotFoundError:
        return None
    return found if isinstance(found, type) and issubclass(found, nn.Module) else None


def known(name: str) -> None:
    """Refuse an architecture that does not exist, with the nearest that does."""
    if name != "linear" and not timm.is_model(name) and _timm_class(name) is None:
        raise UserError(f"unknown architecture '{name}': {suggest(name, timm.list_models())}")


def build(
    name: str, arguments: Mapping[str, Any], classes: int, channels: int, size: int
) -> nn.Module:
    """An untrained network from ``channels`` x ``size`` x ``size`` pixels to ``classes`` logits."""
    known(name)
    if name == "linear":
        return Linear(channels * size * size, classes)
    common = {"num_classes": classes, "in_chans": channels, **arguments}
    made = _timm_class(name)
    try:
        return made(**common) if made else timm.create_model(name, pretrained=False, **common)
    except (TypeError, ValueError, AssertionError, RuntimeError) as error:
        line = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(
            f"architecture '{name}' can't be built with {dict(arguments)}: {line}"
        ) from None
