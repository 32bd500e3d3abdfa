"""Sampling errors of images that come in clusters, such as the images of one patient.

An estimate's error is the sum of what each image adds to it, its influence. Images of one cluster
err together, so influences are summed within clusters before they are squared.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Clusters = NDArray[np.int64]


def summed(values: ArrayLike, clusters: Clusters | None) -> Array:
    """Values [n, ...] added up within clusters numbered from 0; None: each image is its own."""
    values = np.asarray(values, dtype=np.float64)
    if clusters is None:
        return values
    total = np.zeros((int(clusters.max(initial=-1)) + 1, *values.shape[1:]))
    np.add.at(total, clusters, values)
    return total


def small_sample(member: NDArray[np.bool_], clusters: Clusters | None) -> Array:
    """sqrt(G / (G - 1)) for the G clusters with a member [n, ...]; NaN for fewer than two."""
    count = (summed(member, clusters) > 0).sum(axis=0).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(count > 1, np.sqrt(count / (count - 1)), np.nan)


def proportion_influence(hit: NDArray[np.bool_], clusters: Clusters | None) -> Array:
    """What each cluster adds to the sampling error of a share p of n images; NaN for one cluster.

    ``sqrt(G / (G - 1)) sum_i (hit_i - p) / n`` over a cluster's images, so that the sum of squares
    is the squared standard error of a ratio of cluster totals (Cochran 1977, 11.6). With one image
    per cluster that is ``p (1 - p) / (n - 1)``.
    """
    scale = small_sample(np.ones(len(hit), dtype=bool), clusters)
    return summed((hit - hit.mean()) / len(hit) * scale, clusters)


def standard_error(influence: Array) -> Array:
    """The root of the sum of squares over clusters, the first axis."""
    return np.sqrt((influence**2).sum(axis=0))
