"""ResNets with attention: CBAM within every block, BAM after the first three stages.

Squeeze-and-excitation needs nothing here: timm has it as ``seresnet50`` and the like.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from stamp.core.errors import UserError, suggest
from stamp.models.architectures import build as build_plain
from stamp.models.torchvision_ops import timm

KINDS = ("cbam", "bam")


class BAM(nn.Module):
    """Bottleneck attention (Park et al. 2018): ``F + F * sigmoid(channel(F) + spatial(F))``.

    ``channel`` is an MLP on the global average, ``spatial`` a stack of dilated convolutions, both
    through C / 16 channels and ended by a batch norm; the sum is broadcast over the map.
    """

    def __init__(self, channels: int, reduction: int = 16, dilation: int = 4):
        super().__init__()
        narrow = max(1, channels // reduction)
        self.channel = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(channels, narrow, 1),
            nn.ReLU(inplace=True),
            nn.Conv2d(narrow, channels, 1),
            nn.BatchNorm2d(channels),
        )
        dilated = [
            layer
            for _ in range(2)
            for layer in (
                nn.Conv2d(narrow, narrow, 3, padding=dilation, dilation=dilation, bias=False),
                nn.BatchNorm2d(narrow),
                nn.ReLU(inplace=True),
            )
        ]
        self.spatial = nn.Sequential(
            nn.Conv2d(channels, narrow, 1, bias=False),
            nn.BatchNorm2d(narrow),
            nn.ReLU(inplace=True),
            *dilated,
            nn.Conv2d(narrow, 1, 1, bias=False),
            nn.BatchNorm2d(1),
        )

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return features + features * torch.sigmoid(self.channel(features) + self.spatial(features))


def is_attention(name: str) -> bool:
    """Whether a weight's name is of an attention module, as opposed to the plain ResNet's."""
    return re.search(r"^layer\d\.(\d+\.se|bam)\.", name) is not None


def build(
    name: str,
    arguments: Mapping[str, Any],
    attention: str,
    classes: int,
    channels: int,
    size: int,
) -> nn.Module:
    """An untrained ResNet with attention; the plain ResNet's weights keep their names in it."""
    if attention not in KINDS:
        raise UserError(f"unknown attention '{attention}': {suggest(attention, KINDS)}")
    if attention == "cbam":
        arguments = {**arguments, "block_args": {"attn_layer": "cbam"}}
    network = build_plain(name, arguments, classes, channels, size)
    if not isinstance(network, timm.models.ResNet):
        raise UserError(f"attention '{attention}' goes into ResNets, and '{name}' is none")
    if attention == "bam":
        stages: list[dict[str, Any]] = list(network.feature_info)[1:4]
        for stage in stages:
            getattr(network, stage["module"]).add_module("bam", BAM(stage["num_chs"]))
    return network
