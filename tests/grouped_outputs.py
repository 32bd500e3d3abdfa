"""Made-up outputs of images in groups, pairs of them, and their score."""

from __future__ import annotations

import numpy as np

from stamp.scoring.bootstrap import BootstrapSettings
from stamp.scoring.score import score


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


def scored(p, semantic, random, groups, random_design="different_group", **settings):
    """The score of outputs, with the bootstrap's defaults."""
    return score(p, semantic, random, groups, random_design, BootstrapSettings(**settings))
