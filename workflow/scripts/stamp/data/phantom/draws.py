"""Named random streams: each quantity of a cohort has its own, patient after patient."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stamp.data.phantom.shapes import Array


def tag(name: str) -> int:
    """A stable, non-zero integer for a name (seed sequences ignore trailing zeros)."""
    return zlib.crc32(name.encode()) or 1


@dataclass(frozen=True, slots=True)
class RandomDraws:
    """Random numbers for the patients of one cohort.

    A stream is keyed by the cohort and the quantity's name, and filled patient by patient. So more
    patients, another cohort's size or a new quantity change no number that was drawn before.
    """

    key: tuple[int, ...]
    patients: int

    def _stream(self, name: str) -> np.random.Generator:
        return np.random.default_rng([*self.key, tag(name)])

    def uniform(self, name: str, low: float, high: float, *shape: int) -> Array:
        """Uniform numbers in [low, high), one block of ``shape`` a patient."""
        draws = self._stream(name).random((self.patients, *shape))
        return (low + (high - low) * draws).astype(np.float32)

    def normal(self, name: str, mean: float, deviation: float, *shape: int) -> Array:
        """Gaussian numbers, one block of ``shape`` a patient."""
        draws = self._stream(name).standard_normal((self.patients, *shape))
        return (mean + deviation * draws).astype(np.float32)

    def choice(self, name: str, weights: tuple[float, ...], *shape: int) -> NDArray[np.intp]:
        """Numbers 0, 1, ... drawn with these weights, one block of ``shape`` a patient."""
        steps = np.cumsum(weights) / np.sum(weights)
        draws = self._stream(name).random((self.patients, *shape))
        return np.searchsorted(steps[:-1], draws, side="right")
