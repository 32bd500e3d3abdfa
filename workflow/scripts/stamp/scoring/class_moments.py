"""SV and AV of class pairs by sums over classes, where random pairs reuse their images.

With unit weights w an image of cell k is an end of a class pair as often as
``u_k = w_k (N_c - w_k n_k) / 2 P_c`` (``ClassPairs.resampled``). So each weighted sum over the ends
of a class follows from two sums over its cells, one weighted by w and one by its square:
``sum_k u_k x_k = (N_c sum_k w_k x_k - sum_k w_k^2 n_k x_k) / 2 P_c``. The ends of every class weigh
1 together, and AV over pairs of different classes needs no more than these sums.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stamp.scoring.exact import Cells, Indices
from stamp.scoring.stamp import Array


@dataclass(frozen=True, slots=True)
class ClassMoments:
    """What is multiplied with the weights of each class' cells, and with their squares."""

    unit: list[Indices]  # of the cells of each class
    once: list[Array]  # N, Q and S of each cell, [2 + outputs, cells]
    squared: list[Array]  # the same times n_k, and the squared distances within each cell

    @classmethod
    def of(cls, cells: Cells) -> ClassMoments | None:
        """The moments; None where a unit has several classes, or where they would save no sums."""
        codes = np.unique(cells.group)
        outputs = cells.sums.shape[1]
        if len(codes) * (outputs + 2) > len(cells.unit) or not cells.one_per_unit:
            return None
        once = np.vstack([cells.mass, cells.squares, cells.sums.T])
        apart = cells.mass * cells.squares - np.einsum("ij,ij->i", cells.sums, cells.sums)
        squared = np.vstack([once * cells.mass, apart])
        rows = [np.flatnonzero(cells.group == code) for code in codes]
        return cls(
            [cells.unit[own] for own in rows],
            [once[:, own] for own in rows],
            [squared[:, own] for own in rows],
        )

    def parts(self, weights: Array) -> tuple[Array, Array]:
        """SV and AV for weights [units, resamples]; NaN where no pair is left."""
        own = [weights[unit] for unit in self.unit]
        first = np.stack([a @ w for a, w in zip(self.once, own, strict=True)])
        second = np.stack([b @ np.square(w) for b, w in zip(self.squared, own, strict=True)])
        images = first[:, :1]
        ends = images * first - second[:, :-1]
        twice = ends[:, 0]  # pairs of the class, each counted twice
        there = twice > 0
        share = np.divide(1.0, twice, out=np.zeros_like(twice), where=there)
        distances = images[:, 0] * first[:, 1] - _norm(first[:, 2:]) - second[:, -1]
        number = there.sum(axis=0)
        ends *= share[:, None]
        norms, together = ends[:, 1].sum(axis=0), ends[:, 2:].sum(axis=0)
        between = number * norms - _norm(together[None])[0]
        between -= norms - _norm(ends[:, 2:]).sum(axis=0)
        pairs = np.where(number > 1, number * (number - 1) / 2, np.nan)
        with np.errstate(invalid="ignore"):
            return 2 * (distances * share).sum(axis=0) / number, between / pairs


def _norm(sums: Array) -> Array:
    """Squared norms of vectors, [classes, resamples] of [classes, outputs, resamples]."""
    return np.asarray(np.einsum("ckr,ckr->cr", sums, sums), dtype=np.float64)
