"""Embeddings on the leading principal axes of the source's, so that wide ones stay affordable."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

WIDEST = 256  # axes that are kept at most
IMAGES = 1000  # that they are taken from where embeddings are wider


@dataclass(frozen=True, slots=True)
class PrincipalAxes:
    """Orthonormal axes [d, k], those of the largest variance first."""

    axes: Array

    @classmethod
    def of(cls, h: ArrayLike) -> PrincipalAxes:
        """All axes of embeddings of up to ``WIDEST`` numbers, the leading ones of wider ones."""
        array = np.asarray(h, dtype=np.float64)
        if array.shape[1] > WIDEST:
            array = spaced(array, IMAGES)
        centred = array - array.mean(axis=0)
        if array.shape[1] <= len(array):
            found = np.linalg.eigh(centred.T @ centred)[1]
        else:  # the smaller Gram matrix; axes that no image leaves 0 on
            squares, left = np.linalg.eigh(centred @ centred.T)
            kept = squares > 1e-12 * max(squares[-1], 1e-300)
            found = centred.T @ left[:, kept] / np.sqrt(squares[kept])
        return cls(found[:, ::-1][:, :WIDEST])

    def on(self, h: ArrayLike) -> Array:
        """Embeddings on all axes; if they are not wider, a rotation, which moves no distance."""
        return np.asarray(h, dtype=np.float64) @ self.axes

    def on_leading(self, h: ArrayLike) -> Array:
        """Embeddings on at most half as many axes as images, for a linear model of them."""
        array = np.asarray(h, dtype=np.float64)
        return array @ self.axes[:, : max(1, len(array) // 2)]


def spaced(h: ArrayLike, count: int) -> Array:
    """At most ``count`` rows, evenly spaced."""
    array = np.asarray(h, dtype=np.float64)
    if len(array) <= count:
        return array
    return array[np.linspace(0, len(array) - 1, count).round().astype(np.int64)]
