"""The pairs behind a model's score: those that add most to SV, typical ones, and all distances.

SV is a mean of squared distances, so that a few pairs can hold a large part of it. Which ones, and
which outputs moved there, is what a reader wants to see before trusting or doubting a score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from stamp.inference.outputs import Outputs, present
from stamp.scoring.pool_pairs import pair_rows
from stamp.scoring.score import ScoreSettings
from stamp.scoring.stamp import Array, probabilities, squared_distances

LARGEST, TYPICAL = 6, 3  # pairs that are shown of each kind
CLASSES = 4  # outputs that are shown of a pair
BINS = 24
TOP = 0.05  # the share of pairs whose part of SV is told


@dataclass(frozen=True, slots=True)
class SemanticPairs:
    """The pairs of a score with a model's outputs: ``a`` and ``b`` are rows of ``p``."""

    rows: pl.DataFrame
    p: Array
    classes: Sequence[str]  # of the columns of p
    a: np.ndarray
    b: np.ndarray
    squared: Array


def pair_examples(
    pool: Outputs, pairs: pl.DataFrame, settings: ScoreSettings, fitted: float
) -> dict[str, Any]:
    """A record of the largest and of typical semantic pairs, and of how far all pairs lie apart."""
    there = np.flatnonzero(present(pool.logits)).tolist()
    p = probabilities(pool.logits[:, there], settings.task, settings.temperature(fitted))
    named = [settings.classes[place] for place in there]
    (a, b), far = (
        pair_rows(pairs.filter(pl.col("kind") == kind).head(settings.number), pool.rows["image"])
        for kind in (settings.semantic, "random")
    )
    near = SemanticPairs(pool.rows, p, named, a, b, squared_distances(p, a, b))
    return {
        "kind": settings.semantic,
        "pairs": len(a),
        "top": TOP,
        "top_share": top_share(near.squared, TOP),
        "largest": [one_pair(near, i, settings) for i in largest(near.squared, LARGEST)],
        "typical": [one_pair(near, i, settings) for i in typical(near.squared, TYPICAL)],
        "distances": histogram(near.squared, squared_distances(p, *far), BINS),
    }


def largest(squared: Array, number: int) -> np.ndarray:
    """The places of the largest distances, the first of equal ones first."""
    return np.argsort(-squared, kind="stable")[:number]


def typical(squared: Array, number: int) -> np.ndarray:
    """The places of the distances nearest to the median."""
    return np.argsort(np.abs(squared - np.median(squared)), kind="stable")[:number]


def top_share(squared: Array, top: float) -> float | None:
    """The part of SV that the pairs with the largest distances hold; ``top`` is their share."""
    total = float(squared.sum())
    count = max(1, round(top * len(squared)))
    return float(np.sort(squared)[-count:].sum()) / total if total > 0 else None


def histogram(near: Array, far: Array, bins: int) -> dict[str, list[float]]:
    """Shares of the semantic and of the random pairs by distance (not squared), in equal bins."""
    near, far = np.sqrt(near), np.sqrt(far)
    most = max(float(near.max()), float(far.max())) or 1.0
    edges = np.linspace(0.0, most, bins + 1)
    shares = (np.histogram(one, edges)[0] / len(one) for one in (near, far))
    semantic, random = ([round(float(share), 5) for share in one] for one in shares)
    return {"edges": [round(float(x), 5) for x in edges], "semantic": semantic, "random": random}


def truth(row: Mapping[str, Any], settings: ScoreSettings) -> list[str] | None:
    """The classes that an image is labeled with; None where nobody labeled it."""
    if settings.task == "multiclass":
        label = row.get("label")
        return None if label is None else [settings.classes[label]]
    labels = {name: row.get(name) for name in settings.classes}
    if all(value is None for value in labels.values()):
        return None
    return [name for name, value in labels.items() if value == 1]


def one_pair(pairs: SemanticPairs, i: int, settings: ScoreSettings) -> dict[str, Any]:
    """A pair: its images, their labels, how far apart, and the outputs that moved most."""
    a, b, p = int(pairs.a[i]), int(pairs.b[i]), pairs.p
    moved = (p[a] - p[b]) ** 2
    squared, total = float(pairs.squared[i]), float(pairs.squared.sum())
    most = np.argsort(-moved, kind="stable")[:CLASSES].tolist()
    said = [int(p[a].argmax()), int(p[b].argmax())] if settings.task == "multiclass" else []
    ends = [pairs.rows.row(end, named=True) for end in (a, b)]
    return {
        "images": [end["image"] for end in ends],
        "labels": [truth(end, settings) for end in ends],
        "squared": squared,
        "share": squared / total if total > 0 else 0.0,
        "outputs": [
            {
                "class": pairs.classes[place],
                "a": round(float(p[a, place]), 4),
                "b": round(float(p[b, place]), 4),
                "share": round(float(moved[place]) / squared, 4) if squared > 0 else 0.0,
            }
            for place in dict.fromkeys([*said, *most])
        ],
    }
