"""STAMP layer by layer: of pooled features at four depths of the network, and of its outputs.

On the vectors as they are (``raw``) and on vectors of length one (``normalised``), with the study's
semantic and random pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from stamp.inference.extra_outputs.manifest import NotAvailable
from stamp.report.profiles.model_profile import CONSTANT, ProfileInputs
from stamp.report.profiles.rows import entry
from stamp.scoring.stamp import squared_distances

OUTPUT = "output"
LAYERS = ("early", "mid", "late", "penultimate", OUTPUT)
KINDS = ("raw", "normalised")
FLAT = 1e-12  # share of the mean squared length below which features say nothing


def unit_length(vectors: np.ndarray) -> np.ndarray:
    """The vectors divided by their lengths; zero stays zero."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(length > 0, length, 1.0)


def rows(inputs: ProfileInputs) -> Iterator[dict[str, Any]]:
    """``raw`` and ``normalised`` STAMP of each layer."""
    try:
        taps = inputs.extra_outputs.arrays("embeddings")
        why = inputs.extra_outputs.note("embeddings", "taps")
    except NotAvailable as missing:
        taps, why = {}, str(missing)
    for layer in LAYERS:
        if layer == OUTPUT:
            vectors = inputs.p
            if inputs.constant:
                yield from (entry(kind, layer, reason=CONSTANT) for kind in KINDS)
                continue
        elif layer in taps:
            vectors = taps[layer][inputs.extra_outputs.pool].astype(np.float64)
        else:
            no = why or f"the network has no layer '{layer}'"
            yield from (entry(kind, layer, reason=no) for kind in KINDS)
            continue
        yield _layer(inputs, "raw", layer, vectors)
        yield _layer(inputs, "normalised", layer, unit_length(vectors))


def _layer(inputs: ProfileInputs, kind: str, layer: str, vectors: np.ndarray) -> dict[str, Any]:
    if not np.isfinite(vectors).all():
        return entry(kind, layer, reason="features are not finite")
    random = inputs.random_distances(vectors)
    if random.mean() <= FLAT * np.mean(np.sum(vectors**2, axis=1)):
        return entry(kind, layer, reason="features are nearly constant")
    ends = inputs.ends(inputs.design.semantic)
    return entry(kind, layer, **inputs.scored(squared_distances(vectors, *ends), ends, random))
