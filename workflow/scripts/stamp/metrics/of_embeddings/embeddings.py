"""Metrics of a model's embeddings: what enters its last linear layer, on source images.

``h`` are embeddings [n, d]; pairs are two arrays of row numbers. All is float64. The order of the
images does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stamp.metrics.of_embeddings.linear_probe import held_out_accuracy
from stamp.metrics.value import NO_IMAGES, ONE_IMAGE, Value, missing
from stamp.scoring.stamp import exact_groups

Array = NDArray[np.float64]
Pairs = tuple[ArrayLike, ArrayLike]

MINIMUM = 10
ROUNDING = 1e-24
LEAST = 1e-12  # the scatter of groups that are one
CONSTANT = "the embeddings are the same for every image"
AT_ONCE = 256  # pairs whose embeddings are held at a time
NOT_FINITE = "the embeddings are not finite"


def embedding_instability(h: ArrayLike, semantic: Pairs) -> Value:
    """``mean (1 - cos(h_a, h_b))`` over semantic pairs: 0 where both point the same way.

    The scale of the embeddings does not matter. Pairs with a vector of zeros have no angle and are
    left out.
    """
    cosines, reason = _cosines(h, semantic)
    return missing(reason) if reason else Value(float(1 - cosines.mean()))


def feature_alignment(h: ArrayLike, semantic: Pairs, random: Pairs) -> Value:
    """``mean_semantic cos(h_a, h_b) - mean_random cos(h_c, h_d)``.

    The paper names a feature alignment score without a formula; this is the alignment of Wang and
    Isola (2020) on the sphere, relative to that of random pairs.
    """
    near, reason = _cosines(h, semantic)
    far, reason_far = _cosines(h, random)
    if reason or reason_far:
        return missing(reason or reason_far)
    return Value(float(near.mean() - far.mean()))


def feature_discriminability(
    h: ArrayLike, labels: ArrayLike, task: str, minimum: int = MINIMUM
) -> Value:
    """``tr S_B / tr S_T``: the share of the embeddings' variance that lies between classes.

    Multiclass: groups are the classes, ``labels`` [n]. Multilabel: the mean over classes of the
    ratio for positives against negatives, ``labels`` [n, C], over the classes that have ``minimum``
    of both. NaN is an unknown label, whose image is left out.
    """
    h, reason = _checked(h)
    if reason:
        return missing(reason)
    y = np.asarray(labels, dtype=np.float64)
    if task == "multiclass":
        known = ~np.isnan(y)
        if len(np.unique(y[known])) < 2:
            return missing("fewer than 2 classes are labeled")
        share = _between(h[known], y[known])
        return missing(CONSTANT) if np.isnan(share) else Value(share)
    enough = [
        c for c in range(y.shape[1]) if min((y[:, c] == 1).sum(), (y[:, c] == 0).sum()) >= minimum
    ]
    if not enough:
        return missing(f"no class has {minimum} positives and negatives")
    known = ~np.isnan(y)
    shares = [_between(h[known[:, c]], y[known[:, c], c]) for c in enough]
    if np.isnan(shares).any():
        return missing(CONSTANT)
    note = f"over {len(enough)} of {y.shape[1]} classes: others lack {minimum} labels of 0 or 1"
    return Value(float(np.mean(shares)), "" if len(enough) == y.shape[1] else note)


def feature_stamp(h: ArrayLike, groups: ArrayLike) -> Value:
    """``1 - SV / AV`` of the embeddings over all pairs of a group and all pairs of two groups.

    The label-free sibling of :func:`feature_discriminability`: groups are patients or classes.
    """
    h, reason = _checked(h)
    if reason:
        return missing(reason)
    found = exact_groups(h, groups)
    if not found.groups or not np.isfinite(found.total_different):
        return missing("fewer than 2 groups, or no group of 2 images")
    if found.total_different <= 0:
        return missing(CONSTANT)
    return Value(1 - found.within / found.total_different)


@dataclass(frozen=True, slots=True)
class Moments:
    """Mean of embeddings, a root of their covariance, and why there are none, if so."""

    mean: Array
    root: Array
    reason: str = ""

    @classmethod
    def of(cls, h: ArrayLike) -> Moments:
        """Those of embeddings [n, d]."""
        h, reason = _checked(h)
        return cls(h, h, reason) if reason else cls(h.mean(axis=0), _root(h))


def frechet_distance(first: ArrayLike | Moments, second: ArrayLike | Moments) -> Value:
    """``||mu1 - mu2||^2 + tr(S1 + S2 - 2 (S1 S2)^.5)`` of two sets of embeddings (Frechet 1957).

    The distance of the Gaussians that have their means and covariances (ddof 1); Deng and Zheng
    (CVPR 2021) use it between source and target. With ``S1 = A'A`` and ``S2 = B'B`` the trace of
    the root is the sum of the singular values of ``A B'``, so no root of a matrix is taken and a
    covariance may be singular. Embeddings that are compared more than once may come as moments.
    """
    a, b = (each if isinstance(each, Moments) else Moments.of(each) for each in (first, second))
    if a.reason or b.reason:
        return missing(a.reason or b.reason)
    if len(a.mean) != len(b.mean):
        raise ValueError(f"embeddings of {len(a.mean)} and {len(b.mean)} numbers don't compare")
    gap = a.mean - b.mean
    spread = sum(float((each.root**2).sum()) for each in (a, b))
    shared = np.linalg.svd(a.root @ b.root.T, compute_uv=False).sum()
    return Value(max(0.0, float(gap @ gap + spread - 2 * shared)))


def rotation_accuracy(rotated: ArrayLike, groups: ArrayLike, penalty: float = 1.0) -> Value:
    """Share of images whose rotation by 0, 90, 180 or 270 degrees a linear probe names.

    ``rotated`` [4, n, d] are the embeddings at the four rotations. A ridge classifier on
    standardised embeddings learns from every other group (patient or class; images where all are
    one group) and is asked about the rest, then the other way round; the mean of both. Chance is
    .25. Deng et al. (ICML 2021) predict accuracy from it.
    """
    h = np.asarray(rotated, dtype=np.float64)
    if h.ndim != 3 or len(h) != 4:
        raise ValueError(f"embeddings at four rotations are [4, n, d], not of shape {h.shape}")
    _, reason = _checked(h.reshape(-1, h.shape[2]))
    if reason:
        return missing(reason)
    codes = np.unique(np.asarray(groups), return_inverse=True)[1]
    side = (codes if codes.max(initial=0) else np.arange(h.shape[1])) % 2
    if not 0 < side.sum() < len(side):
        return missing(ONE_IMAGE)
    return Value(float(np.mean([_probed(h, side == held, penalty) for held in (0, 1)])))


def dispersion(h: ArrayLike, p: ArrayLike, task: str) -> Value:
    """``log(sum_j n_j ||mu - mu_j||^2 / (k - 1))`` of normalised embeddings (Xie et al. 2023).

    The groups j are the predicted classes: the most probable one (multiclass, k of them occur), or
    for each class its pseudo-positives against the rest, as many of the most probable images as
    the mean probability says (at least one each); then the mean of the logarithms over classes.
    A model that predicts one class for every image has no scatter. It counts as ``LEAST``, not as
    missing: a comparison that left out the models that fail would flatter the others.
    """
    h, reason = _checked(h)
    p = np.asarray(p, dtype=np.float64)
    if reason:
        return missing(reason)
    norm = np.linalg.norm(h, axis=1, keepdims=True)
    h = h / np.where(norm > 0, norm, 1)  # in place of the others, which may be large
    if task == "multiclass":
        groups = [p.argmax(axis=1)]
        if len(np.unique(groups[0])) < 2:
            return Value(float(np.log(LEAST)), f"one predicted class: log {LEAST:g}, not log 0")
    else:
        groups = [_pseudo_positive(p[:, c]) for c in range(p.shape[1])]
    spread = [_scatter(h, group) for group in groups]
    if min(spread) <= 0:
        return missing(CONSTANT)
    return Value(float(np.mean(np.log(spread))))


def effective_rank(h: ArrayLike) -> Value:
    """``exp(H(s / sum s))`` with the singular values s of the centred embeddings.

    1 where they lie on a line, d where they spread evenly (Roy and Vetterli 2007; RankMe, Garrido
    et al. 2023, takes embeddings that are not centred).
    """
    h, reason = _checked(h)
    if reason:
        return missing(reason)
    if _total(h) == 0:
        return missing(CONSTANT)
    s = np.linalg.svd(_root(h), compute_uv=False)
    share = s[s > s.max() * 1e-12] / s.sum()
    return Value(float(np.exp(-(share * np.log(share)).sum())))


def feature_norm(h: ArrayLike) -> Value:
    """Mean length of the embeddings."""
    h, reason = _checked(h)
    return missing(reason) if reason else Value(float(np.linalg.norm(h, axis=1).mean()))


def _checked(h: ArrayLike) -> tuple[Array, str]:
    """``h`` as float64, and why there is nothing to compute from it, if so."""
    h = np.asarray(h, dtype=np.float64)
    if h.ndim != 2:
        raise ValueError(f"embeddings are [images, numbers], not of shape {h.shape}")
    if len(h) < 2:
        return h, NO_IMAGES if len(h) == 0 else ONE_IMAGE
    return h, "" if np.isfinite(h).all() else NOT_FINITE


def _cosines(h: ArrayLike, pairs: Pairs) -> tuple[Array, str]:
    """The cosine of each pair of embeddings that have a direction."""
    h, reason = _checked(h)
    if reason:
        return h, reason
    a, b = (np.asarray(rows, dtype=np.int64) for rows in pairs)
    norm = np.linalg.norm(h, axis=1)
    length = norm[a] * norm[b]
    some = length > 0
    if not some.any():
        return length, "no pair has two vectors with a direction"
    a, b = a[some], b[some]
    found = [
        np.einsum("ij,ij->i", h[a[at : at + AT_ONCE]], h[b[at : at + AT_ONCE]])
        for at in range(0, len(a), AT_ONCE)
    ]
    return np.concatenate(found) / length[some], ""


def _total(h: Array) -> float:
    """The squared distances to the mean, summed; 0 where they are rounding only."""
    centred = h - h.mean(axis=0)
    total = float(np.vdot(centred, centred))
    return total if total > ROUNDING * float(np.vdot(h, h)) else 0.0


def _between(h: Array, groups: Array) -> float:
    """The share of the squared distances to the mean that the groups' means have."""
    total = _total(h)
    centred = h - h.mean(axis=0)
    code, sizes = np.unique(groups, return_inverse=True, return_counts=True)[1:]
    sums = np.zeros((len(sizes), h.shape[1]))
    np.add.at(sums, code, centred)
    return float(((sums**2).sum(axis=1) / sizes).sum() / total) if total > 0 else float("nan")


def _scatter(h: Array, groups: NDArray[np.int64]) -> float:
    """``sum_j n_j ||mu - mu_j||^2 / (k - 1)`` over the k groups that occur."""
    kinds = len(np.unique(groups))
    total = _total(h)
    share = _between(h, groups.astype(np.float64))
    return share * total / (kinds - 1) if total > 0 else 0.0


def _pseudo_positive(p: Array) -> NDArray[np.int64]:
    """1 for as many of the most probable images as the mean probability says, 0 for the rest."""
    count = int(np.clip(np.rint(p.mean() * len(p)), 1, len(p) - 1))
    chosen = np.zeros(len(p), dtype=np.int64)
    chosen[np.argsort(-p, kind="stable")[:count]] = 1
    return chosen


def _root(h: Array) -> Array:
    """R [min(n, d), d] with ``R'R`` the covariance of the embeddings."""
    centred = h - h.mean(axis=0)
    centred /= np.sqrt(len(h) - 1)
    if len(h) <= h.shape[1]:
        return centred
    return np.asarray(np.linalg.qr(centred, mode="r"), dtype=np.float64)


def _probed(rotated: Array, held: NDArray[np.bool_], penalty: float) -> float:
    """Accuracy of a ridge probe on the images that are held out of its training."""
    train, test = (
        (rotated[:, side].reshape(-1, rotated.shape[2]), np.repeat(np.arange(4), side.sum()))
        for side in (~held, held)
    )
    return held_out_accuracy(train, test, penalty)
