"""Distances between the embeddings of the source and those of a target's unlabeled images.

Up to ``IMAGES`` images of each side, evenly spaced in their order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import pdist

from stamp.metrics.of_embeddings.linear_probe import held_out_accuracy
from stamp.metrics.of_embeddings.principal_axes import spaced
from stamp.metrics.value import ONE_IMAGE, Value, missing

Array = NDArray[np.float64]

IMAGES = 500


@dataclass(frozen=True, slots=True)
class SourceKernel:
    """Source embeddings with a Gaussian kernel as wide as the median distance between them."""

    h: Array
    width: float
    own: float  # the mean kernel of two source images

    @classmethod
    def of(cls, h: ArrayLike) -> SourceKernel:
        """That of embeddings [n, d]."""
        chosen = spaced(h, IMAGES)
        between = pdist(chosen)
        width = float(np.median(between)) if len(between) else 0.0
        return cls(chosen, width, _mean_kernel(chosen, chosen, width) if width > 0 else 1.0)


def mmd(source: SourceKernel, target: ArrayLike) -> Value:
    """Maximum mean discrepancy of source and target, biased estimate (Gretton et al. 2012).

    ``sqrt(mean k(s, s') + mean k(t, t') - 2 mean k(s, t))`` over all pairs, an image with itself
    included, with ``k(a, b) = exp(-|a - b|^2 / (2 w^2))`` and w the median distance between source
    images. It lies in [0, sqrt 2], is 0 for equal samples and, with w of the model's own, does not
    depend on the scale of the embeddings.
    """
    there = spaced(target, IMAGES)
    if min(len(source.h), len(there)) < 2:
        return missing(ONE_IMAGE)
    if source.width == 0:
        return missing("the median distance between the source's embeddings is 0")
    cross = _mean_kernel(source.h, there, source.width)
    squared = source.own + _mean_kernel(there, there, source.width) - 2 * cross
    return Value(float(np.sqrt(max(0.0, squared))))


def proxy_a_distance(source: ArrayLike, target: ArrayLike) -> Value:
    """``2 (1 - 2 e)``, e the error of a linear classifier between both domains.

    The stand-in for the divergence of the hypothesis class with itself (Ben-David et al. 2007,
    2010): 2 where a linear classifier tells all images apart, 0 where it tells none. As many images
    of each side; trained on every other one, tested on the rest, then the other way round; an error
    above one half counts as one half.
    """
    count = min(len(np.asarray(source)), len(np.asarray(target)), IMAGES)
    if count < 4:
        return missing(f"{count} images of the smaller side: at least 4 are needed")
    a, b = spaced(source, count), spaced(target, count)
    kinds = np.repeat([0, 1], count)
    h, even = np.concatenate([a, b]), np.tile(np.arange(count) % 2 == 0, 2)
    found = [
        held_out_accuracy((h[part], kinds[part]), (h[~part], kinds[~part]))
        for part in (even, ~even)
    ]
    error = min(0.5, 1 - float(np.mean(found)))
    return Value(2 * (1 - 2 * error))


def _mean_kernel(a: Array, b: Array, width: float) -> float:
    squared = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2 * a @ b.T
    return float(np.exp(np.maximum(squared, 0) / (-2 * width**2)).mean())
