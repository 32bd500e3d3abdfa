"""How far class centroids are apart in output space, and how steep the outputs are.

``centroid_gap``: the mean over classes of the distance to the nearest other centroid; ``side_gap``
(multilabel): the mean distance of a class's positives from its negatives; ``lipschitz``: ``mean_i
max_k ||f(x_i + d_k) - f(x_i)|| / ||d_k||`` over small random perturbations d_k, f the output
probabilities. A finite number of directions bounds the constant from below only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from stamp.passes import NotAvailable
from stamp.profiles import entry
from stamp.profiles.centroids import class_terms, members, side_gaps
from stamp.profiles.material import Material

QUANTITIES = ("centroid_gap", "side_gap", "lipschitz")


def steepness(before: np.ndarray, after: np.ndarray, norms: np.ndarray) -> np.ndarray:
    """``max_k ||after_ki - before_i|| / norms_ki`` of each image, over d of some length."""
    moved = np.linalg.norm(after - before, axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        slopes = np.where(norms > 0, moved / norms, -np.inf)
    return slopes.max(axis=0)


def rows(material: Material) -> Iterator[dict[str, Any]]:
    """The three quantities, and the gap of each class."""
    yield from _gaps(material)
    try:
        at, after, found = material.passes.outputs("perturbed")
    except NotAvailable as missing:
        yield entry("lipschitz", reason=str(missing))
        return
    slopes = steepness(material.p[at], after, found["norms"].astype(np.float64))
    yield entry("lipschitz", None, float(slopes.mean()), n=len(at))


def _gaps(material: Material) -> Iterator[dict[str, Any]]:
    design = material.design
    belong = members(material.labels, design.task, design.classes)
    if len(belong.names) < 2:
        few = f"{len(belong.names)} classes have enough labeled images for a centroid"
        yield from (entry(name, reason=few) for name in ("centroid_gap", "side_gap"))
        return
    terms = class_terms(material.p, belong)
    yield entry("centroid_gap", None, float(terms.gap.mean()), n=len(belong.names))
    for name, gap, size in zip(belong.names, terms.gap, belong.sizes, strict=True):
        yield entry("class_gap", name, float(gap), n=int(size))
    if design.task == "multiclass":
        yield entry("side_gap", reason="a class has no negatives of its own in a multiclass study")
        return
    sides = side_gaps(material.p, material.labels)
    known = sides[~np.isnan(sides)]
    if known.size:
        yield entry("side_gap", None, float(known.mean()), n=known.size)
    else:
        yield entry("side_gap", reason="no class has enough positives and negatives")
