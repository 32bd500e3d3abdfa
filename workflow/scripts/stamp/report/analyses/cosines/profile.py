"""Cosines between the embeddings of semantic pairs, and between those of random pairs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.stats import rankdata

from stamp.inference.extra_outputs.manifest import NotAvailable
from stamp.report.analyses.layers.profile import FLAT, unit_length
from stamp.report.profiles.model_profile import ProfileInputs
from stamp.report.profiles.rows import entry
from stamp.scoring.bootstrap import PairDistances, renumbered, resampled_means
from stamp.stats.correlations.correlation import percentile_interval
from stamp.stats.group_tests import mann_whitney_log10_p

KINDS = ("semantic", "random")
EMBEDDINGS = "embeddings"


def placements(near: np.ndarray, far: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each value of one group, the share of the other that it beats, ties counted half.

    The mean of either is the probability that a value of the first group exceeds one of the second
    (DeLong, DeLong & Clarke-Pearson 1988): the first has the share below it, the second that above.
    """
    both = rankdata(np.concatenate([near, far]))
    above = (both[: near.size] - rankdata(near)) / far.size
    below = (both[near.size :] - rankdata(far)) / near.size
    return above, 1 - below


def rows(inputs: ProfileInputs) -> Iterator[dict[str, Any]]:
    """Mean ``cosine`` of both kinds, their ``difference``, Cliff's ``delta`` and ``log10_p``.

    Intervals are over resamples of units. That of delta resamples the placements, which is its
    bootstrap up to terms of second order.
    """
    try:
        sets = _sets(inputs)
    except NotAvailable as missing:
        yield from (entry("cosine", kind, reason=str(missing)) for kind in KINDS)
        yield from (entry(name, reason=str(missing)) for name in ("difference", "delta", "log10_p"))
        return
    near, far = (each.distances for each in sets)
    for kind, cosines in zip(KINDS, (near, far), strict=True):
        yield entry("cosine", kind, float(cosines.mean()), n=cosines.size)
    first, second = _resampled(inputs, sets)
    level = inputs.design.level
    difference = float(near.mean() - far.mean())
    yield entry("difference", None, difference, **_ends(first - second, level))
    above, below = placements(near, far)
    placed = [
        PairDistances(own, each.first, each.second)
        for own, each in zip((above, below), sets, strict=True)
    ]
    first, second = _resampled(inputs, placed)
    draws = np.clip(2 * (first + second - above.mean()) - 1, -1, 1)
    yield entry("delta", None, float(2 * above.mean() - 1), **_ends(draws, level))
    yield entry("log10_p", None, mann_whitney_log10_p(near, far), n=near.size + far.size)


def _sets(inputs: ProfileInputs) -> list[PairDistances]:
    """The cosines of the pairs that scores use, semantic and random, with the pairs' units.

    Pairs with a vector of zeros have no angle and are left out.
    """
    found = inputs.extra_outputs.arrays(EMBEDDINGS)
    if EMBEDDINGS not in found:
        raise NotAvailable("the network has no embeddings")
    vectors = found[EMBEDDINGS][inputs.extra_outputs.pool].astype(np.float64)
    if not np.isfinite(vectors).all():
        raise NotAvailable("the embeddings are not finite")
    if inputs.random_distances(vectors).mean() <= FLAT * np.mean(np.sum(vectors**2, axis=1)):
        raise NotAvailable("the embeddings are nearly constant")
    directions = unit_length(vectors)
    some = np.any(directions != 0, axis=1)
    sets = []
    for kind in (inputs.design.semantic, "random"):
        a, b = inputs.ends(kind)
        there = some[a] & some[b]
        if not there.any():
            raise NotAvailable("no pair has two vectors with a direction")
        a, b = a[there], b[there]
        cosines = np.einsum("ij,ij->i", directions[a], directions[b])
        sets.append(PairDistances(cosines, *inputs.units((a, b))))
    return sets


def _resampled(inputs: ProfileInputs, sets: list[PairDistances]) -> np.ndarray:
    """The mean of each set, [sets, resamples], over joint resamples of units."""
    pairs, units = renumbered(sets)
    return resampled_means(pairs, units, inputs.design.resamples, inputs.design.seed)


def _ends(draws: np.ndarray, level: float) -> dict[str, float]:
    """The percentile interval of draws, as a row has it."""
    found = percentile_interval(draws, level)
    return {"low": float(found.low), "high": float(found.high)}
