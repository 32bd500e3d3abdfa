"""The sampled score over re-drawn pairs, from the same outputs.

``semantic`` takes random halves of the semantic pairs: with s^2 the variance of M distances, the
mean of a half drawn without replacement varies by s^2 / M, just as the mean of M fresh pairs would
(half-samples; McCarthy 1969). ``random`` pairs the images anew, by further draws of the sequence
that the study's own random pairs begin, always of the semantic pairs' images. ``both`` does both.
The draws are the same for all models.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from stamp.data.pairs import random_images, random_pairs
from stamp.data.views import label_columns
from stamp.report.profiles.model_profile import CONSTANT, ProfileInputs
from stamp.report.profiles.rows import entry
from stamp.scoring.pool_pairs import pair_rows
from stamp.scoring.stamp import squared_distances, stamp

REDRAWS = 100
HALF = 22  # a tag that keeps the random streams of one seed apart
REDRAWN = ("semantic", "random", "both")


def half_means(values: np.ndarray, redraws: int, seed: int) -> np.ndarray:
    """The means of random halves of the values, without replacement."""
    rng = np.random.default_rng([seed, HALF])
    order = np.argsort(rng.random((redraws, len(values))), axis=1)
    return values[order[:, : max(1, len(values) // 2)]].mean(axis=1)


def repaired_means(inputs: ProfileInputs, redraws: int) -> np.ndarray:
    """The mean distance of random pairs drawn anew, as often as asked."""
    design = inputs.design
    drawn = inputs.pairs.filter(pl.col("kind") == design.semantic)
    own = inputs.pairs.filter(pl.col("kind") == "random")
    number = min(len(own), design.number)
    columns = label_columns(design.task, design.classes)
    images = random_images(inputs.rows, design.semantic, columns, drawn)
    count = len(own) + redraws * number
    more = random_pairs(images, count, design.seed, design.random).slice(len(own))
    distances = squared_distances(inputs.p, *pair_rows(more, inputs.rows["image"]))
    return distances.reshape(redraws, number).mean(axis=1)


def rows(inputs: ProfileInputs) -> Iterator[dict[str, Any]]:
    """The score of each draw, by what was drawn anew."""
    if inputs.constant:
        yield from (entry(name, reason=CONSTANT) for name in REDRAWN)
        return
    semantic = squared_distances(inputs.p, *inputs.ends(inputs.design.semantic))
    random = inputs.random_distances()
    within = half_means(semantic, REDRAWS, inputs.design.seed)
    total = repaired_means(inputs, REDRAWS)
    found = {
        "semantic": stamp(within, random.mean()),
        "random": stamp(semantic.mean(), total),
        "both": stamp(within, total),
    }
    for name, values in found.items():
        yield from (
            entry(name, draw, float(value), n=len(semantic)) for draw, value in enumerate(values)
        )
