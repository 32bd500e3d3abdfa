"""Features of a frozen backbone, once per view: all probes on the backbone share the file.

They are written batch by batch, so peak memory does not grow with the number of images.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import nn

from stamp.core.array_writer import RowWriter
from stamp.core.artifacts import atomic_write, ids_digest
from stamp.core.errors import UserError
from stamp.core.progress import bar
from stamp.images.pixels import PixelCache
from stamp.inference.logits import BATCH, Forward, batches
from stamp.models.loaded import Loaded


class Backbone(Protocol):
    """A module from normalised pixels to ``width`` features, and its normalisation."""

    @property
    def module(self) -> nn.Module: ...
    @property
    def mean(self) -> tuple[float, ...]: ...
    @property
    def std(self) -> tuple[float, ...]: ...
    @property
    def width(self) -> int: ...
    @property
    def origin(self) -> Mapping[str, str]: ...


def check_features(features: np.ndarray, width: int) -> None:
    """Refuse features of the wrong width or that are not finite."""
    if features.ndim != 2 or features.shape[1] != width:
        raise UserError(
            f"features have shape {list(features.shape[1:])}, but {width} are announced"
        )
    if not np.isfinite(features).all():
        raise UserError("features are not finite (NaN or infinite)")


def extract_features(
    target: Path,
    cache: PixelCache,
    ids: Sequence[str],
    backbone: Backbone,
    device: str,
    metadata: Mapping[str, Any],
    batch: int = BATCH,
    threads: int | None = None,
) -> None:
    """Run ``backbone`` over a view's pixels; its features [images, width] go to ``target``."""
    if threads is not None:
        torch.set_num_threads(threads)
    forward = Forward(Loaded(backbone.module, backbone.mean, backbone.std), device)
    made_from = {f"weights_{key}": value for key, value in backbone.origin.items()}
    common = {"ids": ids_digest(ids), "images": len(ids), "device": device}
    card = {**metadata, **common, **made_from}
    with atomic_write(target) as part:
        writer = RowWriter(part, "features", (len(ids), backbone.width), card)
        with bar(None, f"{metadata['backbone']} {metadata['view']}", len(ids)) as shown:
            for images in batches(cache, batch, device):
                features = forward(images)
                check_features(features, backbone.width)
                writer.append(features)
                shown.update(len(features))
        writer.close()
