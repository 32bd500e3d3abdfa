"""Made-up outputs of images in groups, pairs of them, and their score."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np

from stamp.scoring.bootstrap import stamp_interval
from stamp.scoring.pool_pairs import PairDesign, PoolPairs
from stamp.scoring.score import ScoreSettings, score


def grouped(rng, groups=8, each=5, outputs=4, between=1.0, within=0.5):
    """Gaussian random effects: outputs [n, C] and the group of each row."""
    centre = rng.normal(scale=between, size=(groups, 1, outputs))
    noise = rng.normal(scale=within, size=(groups, each, outputs))
    return (centre + noise).reshape(-1, outputs), np.repeat(np.arange(groups), each)


def draw_pairs(rng, groups, semantic, random):
    """Distinct rows of one group each, and rows of different groups each."""
    n = len(groups)
    a, b = rng.integers(0, n, size=(2, 200 * (semantic + random)))
    same = np.flatnonzero((groups[a] == groups[b]) & (a != b))[:semantic]
    other = np.flatnonzero(groups[a] != groups[b])[:random]
    assert len(same) == semantic and len(other) == random
    return (a[same], b[same]), (a[other], b[other])


def pool_pairs(semantic, random, groups, unit="group", random_design="different_group", **design):
    """Pairs of visits of a group, or of images of a class (``unit="image"``), as a study's."""
    kind = "class" if unit == "image" else "temporal"
    drawn = {kind: semantic, "random": random}
    rows = {name: tuple(np.asarray(end, dtype=np.int64) for end in drawn[name]) for name in drawn}
    groups = np.asarray(groups, dtype=np.int64)
    units = np.arange(len(groups)) if unit == "image" else groups
    return PoolPairs(rows, units, groups, PairDesign(kind, random_design, **design))


def scored(p, semantic, random, groups, random_design="different_group", unit="group", **how):
    """The score of outputs by the sampled estimator unless told, with the bootstrap's defaults."""
    pairs = pool_pairs(semantic, random, groups, unit, random_design)
    kind, contract = pairs.design.semantic, how.pop("contract", True)
    how = {"estimator": "sampled", "resamples": 10_000, "level": 0.95, "seed": 0, **how}
    many = len(p) ** 2
    settings = ScoreSettings("multiclass", [], kind, random_design, many, scale=False, **how)
    found = score(p, pairs, kind, settings)
    if contract:
        return found
    near, far = pairs.sampled(p, kind, many), pairs.sampled(p, "random", many)
    plain = stamp_interval(near, far, found.raw, replace(settings.bootstrap, contract=False))
    return replace(found, **asdict(plain))
