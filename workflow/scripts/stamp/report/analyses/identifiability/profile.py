"""How far class centroids are apart in output space, and how sensitive the outputs are.

``centroid_gap``: the mean over classes of the distance to the nearest other centroid; ``side_gap``
(multilabel): the mean distance of a class's positives from its negatives; ``lipschitz``: ``mean_i
max_k ||f(x_i + d_k) - f(x_i)|| / ||d_k||`` over small random perturbations d_k, f the output
probabilities. A finite number of directions bounds the constant from below only.

Two variants of the last: ``lipschitz_spectral``, the mean over images of the spectral norm of f's
Jacobian at x_i, and ``lipschitz_pairs``, ``sqrt(SV / mean ||x_a - x_b||^2)`` over the semantic
pairs of the score. All three are in the model's own input space, f at the temperature of scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from stamp.inference.extra_outputs.manifest import NotAvailable
from stamp.report.profiles.centroids import class_terms, members, side_gaps
from stamp.report.profiles.model_profile import ProfileInputs
from stamp.report.profiles.rows import entry
from stamp.scoring.stamp import squared_distances


def sensitivity(before: np.ndarray, after: np.ndarray, norms: np.ndarray) -> np.ndarray:
    """``max_k ||after_ki - before_i|| / norms_ki`` of each image, over d of some length."""
    moved = np.linalg.norm(after - before, axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        slopes = np.where(norms > 0, moved / norms, -np.inf)
    return slopes.max(axis=0)


def rows(inputs: ProfileInputs) -> Iterator[dict[str, Any]]:
    """The gaps, those of each class, and the three kinds of sensitivity."""
    yield from _gaps(inputs)
    for name, measured in SENSITIVITY.items():
        try:
            value, count = measured(inputs)
        except NotAvailable as missing:
            yield entry(name, reason=str(missing))
        else:
            yield entry(name, None, value, n=count)


def _perturbed(inputs: ProfileInputs) -> tuple[float, int]:
    at, after, found = inputs.extra_outputs.outputs("perturbations")
    # the pass's own outputs at x, which are as precise as those beside it
    before = inputs.extra_outputs.probabilities("perturbations", found["base"])
    slopes = sensitivity(before, after, found["norms"].astype(np.float64))
    return float(slopes.mean()), len(at)


def _spectral(inputs: ProfileInputs) -> tuple[float, int]:
    norms = inputs.extra_outputs.arrays("jacobian")["norms"]
    return float(norms.mean(dtype=np.float64)), len(norms)


def _pairs(inputs: ProfileInputs) -> tuple[float, int]:
    found, ends = (
        inputs.extra_outputs.arrays("pixel_distances"),
        inputs.ends(inputs.design.semantic),
    )
    count = len(ends[0])
    for name, rows in zip("ab", ends, strict=True):
        if not np.array_equal(inputs.extra_outputs.rows(found[name][:count]), rows):
            raise ValueError("the extra output 'pixel_distances' is of other pairs than the score")
    apart = float(found["squared"][:count].mean())
    if apart == 0:
        raise NotAvailable("the two images of every semantic pair are the same")
    within = float(squared_distances(inputs.p, *ends).mean())
    return float(np.sqrt(within / apart)), count


SENSITIVITY: dict[str, Callable[[ProfileInputs], tuple[float, int]]] = {
    "lipschitz": _perturbed,
    "lipschitz_spectral": _spectral,
    "lipschitz_pairs": _pairs,
}


def _gaps(inputs: ProfileInputs) -> Iterator[dict[str, Any]]:
    design = inputs.design
    belong = members(inputs.labels, design.task, design.classes)
    if len(belong.names) < 2:
        few = f"{len(belong.names)} classes have enough labeled images for a centroid"
        yield from (entry(name, reason=few) for name in ("centroid_gap", "side_gap"))
        return
    terms = class_terms(inputs.p, belong)
    yield entry("centroid_gap", None, float(terms.gap.mean()), n=len(belong.names))
    for name, gap, size in zip(belong.names, terms.gap, belong.sizes, strict=True):
        yield entry("class_gap", name, float(gap), n=int(size))
    if design.task == "multiclass":
        yield entry("side_gap", reason="a class has no negatives of its own in a multiclass study")
        return
    sides = side_gaps(inputs.p, inputs.labels)
    known = sides[~np.isnan(sides)]
    if known.size:
        yield entry("side_gap", None, float(known.mean()), n=known.size)
    else:
        yield entry("side_gap", reason="no class has enough positives and negatives")
