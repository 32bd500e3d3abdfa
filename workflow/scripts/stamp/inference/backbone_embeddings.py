"""Embeddings of a frozen backbone, once per view: all probes on the backbone share the file.

They are written batch by batch, so peak memory does not grow with the number of images.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from stamp.core.array_writer import RowWriter
from stamp.core.artifacts import atomic_write, ids_digest
from stamp.core.errors import UserError
from stamp.core.progress import bar
from stamp.images.view_pixels import Pixels
from stamp.inference.logits import Execution, batches, fitting_forward
from stamp.models.loaded_model import LoadedModel
from stamp.models.loaders.probe import Backbone


def check_embeddings(embeddings: np.ndarray, width: int) -> None:
    """Refuse embeddings of the wrong width or that are not finite."""
    if embeddings.ndim != 2 or embeddings.shape[1] != width:
        raise UserError(
            f"embeddings have shape {list(embeddings.shape[1:])}, but {width} are announced"
        )
    if not np.isfinite(embeddings).all():
        raise UserError("embeddings are not finite (NaN or infinite)")


def extract_embeddings(
    target: Path,
    cache: Pixels,
    backbone: Backbone,
    metadata: Mapping[str, Any],
    execution: Execution,
) -> None:
    """Run a backbone over the pixels of a view and write its embeddings [images, width]."""
    device = execution.device
    loaded = LoadedModel(backbone.module, backbone.mean, backbone.std)
    forward = fitting_forward(loaded, execution, cache.shape[1] * cache.shape[2])
    made_from = {f"weights_{key}": value for key, value in backbone.origin.items()}
    common = {
        "ids": ids_digest(cache.ids),
        "images": len(cache),
        "device": device,
        **execution.card,
    }
    with atomic_write(target) as part:
        shape = (len(cache), backbone.width)
        writer = RowWriter(part, "embeddings", shape, {**metadata, **common, **made_from})
        with bar(None, f"{metadata['backbone']} {metadata['view']}", len(cache)) as shown:
            for images in batches(cache, execution.batch, device):
                embeddings = forward(images)
                check_embeddings(embeddings, backbone.width)
                writer.append(embeddings)
                shown.update(len(embeddings))
        writer.close()
