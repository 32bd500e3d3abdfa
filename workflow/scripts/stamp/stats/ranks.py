"""Mid-ranks and Spearman's rho, for whole batches and for resamples given as multiplicities."""

from __future__ import annotations

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
    return _ratio((x * y).sum(-1), (x * x).sum(-1), (y * y).sum(-1))


def comparisons(values: ArrayLike) -> Array:
    """sign(v_i - v_j) for each row of [rows, n] values, as [rows, j, i]; equal infinities tie."""
    values = np.asarray(values, dtype=np.float64)
    if np.isnan(values).any():
        raise ValueError("NaN cannot be ranked: drop it first")
    mine, other = values[:, None, :], values[:, :, None]
    return (mine > other).astype(np.float64) - (mine < other)


def resampled_spearman(x: Array, y: Array, counts: ArrayLike) -> Array:
    """Spearman's rho of each x with each y in each resample: ``[resamples, metrics, targets]``.

    ``x`` and ``y`` are the ``comparisons`` of [metrics, n] and [targets, n] values; ``counts``
    [resamples, n] says how often each model is in a resample (0 leaves it out). Mid-ranks are
    those of the resample, without sorting it: where the counts c sum to m,
    ``2 r_i - (m + 1) = sum_j c_j sign(x_i - x_j)``, one matrix product for all resamples.
    NaN where a resample leaves one side constant.
    """
    counts = np.asarray(counts, dtype=np.float64)
    x_ranks, y_ranks = counts @ x, counts @ y
    weighted = counts * x_ranks
    covariance = np.einsum("mrn,trn->rmt", weighted, y_ranks)
    x_variance = np.einsum("mrn,mrn->rm", weighted, x_ranks)
    y_variance = np.einsum("rn,trn,trn->rt", counts, y_ranks, y_ranks)
    return _ratio(covariance, x_variance[:, :, None], y_variance[:, None, :])


def _ratio(covariance: Array, x_variance: Array, y_variance: Array) -> Array:
    """covariance / sqrt(x_variance * y_variance), NaN where a variance is zero."""
    with np.errstate(invalid="ignore"):
        return covariance / np.sqrt(x_variance * y_variance)
