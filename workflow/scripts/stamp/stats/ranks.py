"""Mid-ranks and Spearman's rho, for whole batches and for resamples given as multiplicities."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def mid_ranks(values: ArrayLike) -> Array:
    """Ranks 1..n along the last axis, 1 for the smallest; ties share the mean of their ranks.

    Infinities rank as the extremes; NaN has no rank and raises ``ValueError``.
    """
    values = np.asarray(values, dtype=np.float64)
    if np.isnan(values).any():
        raise ValueError("NaN cannot be ranked: drop it first")
    order = np.argsort(values, axis=-1)
    ordered = np.take_along_axis(values, order, axis=-1)
    position = np.arange(values.shape[-1], dtype=np.float64)
    ranked = np.broadcast_to(position + 1, values.shape)
    rises = ordered[..., 1:] != ordered[..., :-1]
    if not rises.all():
        edge = np.ones((*values.shape[:-1], 1), dtype=bool)
        first = np.where(np.concatenate([edge, rises], axis=-1), position, 0)
        last = np.where(np.concatenate([rises, edge], axis=-1), position, position.size)
        first = np.maximum.accumulate(first, axis=-1)
        last = np.minimum.accumulate(last[..., ::-1], axis=-1)[..., ::-1]
        ranked = (first + last) / 2 + 1
    ranks = np.empty_like(values)
    np.put_along_axis(ranks, order, ranked, axis=-1)
    return ranks


def centred_ranks(values: ArrayLike) -> Array:
    """Twice the mid-rank's distance from the mean rank, ``2 r - (n + 1)``, along the last axis.

    These are whole numbers, so their sums of products are exact in float64 whatever the order of
    summation (up to n of about 200,000): equal correlations compare as equal.
    """
    ranks = mid_ranks(values)
    return 2 * ranks - (ranks.shape[-1] + 1)


def spearman(x: ArrayLike, y: ArrayLike) -> Array:
    """Spearman's rho along the last axis of two batches that broadcast; NaN where one is constant.

    rho is Pearson's correlation of the mid-ranks (Spearman 1904), which is right with ties.
    """
    return rank_correlation(centred_ranks(x), centred_ranks(y))


def rank_correlation(x: Array, y: Array) -> Array:
    """Pearson's correlation of centred ranks along the last axis; NaN where one is constant."""
    if x.shape[-1] != y.shape[-1]:
        raise ValueError(f"{x.shape[-1]} values cannot be paired with {y.shape[-1]}")
    return _ratio(_product(x, y), _product(x, x), _product(y, y))


def _product(x: Array, y: Array) -> Array:
    """Sums of products along the last axis."""
    return np.asarray(np.einsum("...i,...i->...", x, y))


@dataclass(frozen=True, slots=True)
class Sorted:
    """Rows of values in order: what ranks in any resample of them need, computed once.

    ``order`` sorts each row; of each value ``below`` is how many are smaller, ``through`` how many
    are smaller or equal.
    """

    order: NDArray[np.intp]
    below: NDArray[np.intp]
    through: NDArray[np.intp]

    @classmethod
    def of(cls, values: ArrayLike) -> Sorted:
        """The rows of [rows, n] values; equal infinities tie."""
        values = np.atleast_2d(np.asarray(values, dtype=np.float64))
        if np.isnan(values).any():
            raise ValueError("NaN cannot be ranked: drop it first")
        order = np.argsort(values, axis=1)
        ordered = np.take_along_axis(values, order, axis=1)
        pairs = list(zip(ordered, values, strict=True))
        below = [np.searchsorted(row, own, "left") for row, own in pairs]
        through = [np.searchsorted(row, own, "right") for row, own in pairs]
        return cls(order, np.array(below), np.array(through))

    def centred(self, counts: NDArray[np.int32]) -> Iterator[Array]:
        """Centred ranks in each resample, [resamples, n] for each row, of as many counts.

        Where the counts sum to m, ``2 r_i - (m + 1)`` is how many are smaller less how many are
        larger, by cumulative sums over the sorted values: of integers, several times as fast.
        """
        resamples, count = counts.shape
        total = counts.sum(axis=1, keepdims=True, dtype=np.int32)
        sums = np.zeros((resamples, count + 1), np.int32)
        for order, below, through in zip(self.order, self.below, self.through, strict=True):
            np.cumsum(counts[:, order], axis=1, dtype=np.int32, out=sums[:, 1:])
            ranks = np.take(sums, below, axis=1)
            ranks += np.take(sums, through, axis=1)
            ranks -= total
            yield ranks.astype(np.float64)


def resampled_spearman(x: Sorted, y: Sorted, counts: ArrayLike) -> Array:
    """Spearman's rho of each x with each y in each resample: ``[resamples, metrics, targets]``.

    ``counts`` [resamples, n] says how often each model is in a resample (0 leaves it out). The
    mid-ranks are those of the resample. NaN where a resample leaves one side constant.
    """
    whole = np.ascontiguousarray(counts, dtype=np.int32)
    y_ranks = np.stack(list(y.centred(whole)))
    weights = whole.astype(np.float64)
    y_weighted = y_ranks * weights
    y_variance = np.vecdot(y_weighted, y_ranks)
    found = np.empty((len(weights), len(x.order), len(y_ranks)))
    for at, row in enumerate(x.centred(whole)):
        variance = np.vecdot(row * weights, row)
        covariance = np.vecdot(row, y_weighted)
        found[:, at] = _ratio(covariance, variance, y_variance).T
    return found


def _ratio(covariance: Array, x_variance: Array, y_variance: Array) -> Array:
    """covariance / sqrt(x_variance * y_variance), NaN where a variance is zero."""
    with np.errstate(invalid="ignore"):
        return covariance / np.sqrt(x_variance * y_variance)
