"""STAMP by follow-up gap: pairs of visits i and i + g of one group among the pooled images.

The distance between two visits is that of their numbers. Where the study orders by file names, the
pool does not show how many images lie between two of its own: there a gap of g is g consecutive
pairs, drawn as such, end to end. Every gap has the study's random pairs beside it. How many
pairs change label is counted, and is no noise: a disease that progresses changes labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from stamp.data.pairs import changed
from stamp.data.views import label_columns
from stamp.report.profiles.model_profile import CONSTANT, ProfileInputs, Rows
from stamp.report.profiles.rows import entry
from stamp.scoring.pool_pairs import pair_rows
from stamp.scoring.stamp import squared_distances

GAPS = tuple(range(1, 11))
FEWEST = 30  # pairs below which a gap is not scored
UNORDERED = ("class", "random")  # kinds of pairs whose images are not consecutive
SAMPLE = 21  # a tag that keeps the random streams of one seed apart


def visit_pairs(rows: pl.DataFrame, gap: int) -> Rows:
    """The rows of all pairs of images of one group whose visit numbers are ``gap`` apart."""
    placed = rows.with_row_index("row").select("row", "group", at=pl.col("order").cast(pl.Int64))
    placed = placed.drop_nulls()
    later = placed.select("group", at=pl.col("at") - gap, later="row")
    found = placed.join(later, on=["group", "at"], maintain_order="left_right")
    return (
        found["row"].cast(pl.Int64).to_numpy(),
        found["later"].cast(pl.Int64).to_numpy(),
    )


def chained_pairs(pairs: pl.DataFrame, images: pl.Series, gap: int) -> Rows:
    """The rows of all images that ``gap`` consecutive pairs join, each beginning where one ends."""
    steps = pairs.filter(~pl.col("kind").is_in(UNORDERED)).select("a", "b").unique()
    steps = steps.sort("a", "b")
    found = steps
    for _ in range(gap - 1):
        found = found.join(
            steps.rename({"a": "b", "b": "next"}), on="b", maintain_order="left_right"
        ).select("a", b="next")
    return pair_rows(found, images)


def rows(inputs: ProfileInputs) -> Iterator[dict[str, Any]]:
    """``stamp``, ``within`` and ``changed`` (share of pairs whose label changed) of each gap."""
    design = inputs.design
    random = inputs.random_distances()
    reason = None
    if design.semantic == "class":
        reason = "the groups are classes, whose images have no order"
    elif inputs.constant:
        reason = CONSTANT
    for gap in GAPS:
        found = (np.empty(0, int),) * 2 if reason else _chosen(inputs, gap)
        few = f"{len(found[0])} pooled pairs are {gap} visits apart: at least {FEWEST} are needed"
        if why := reason or (few if len(found[0]) < FEWEST else None):
            yield from (entry(name, gap, reason=why) for name in ("stamp", "within", "changed"))
            continue
        distances = squared_distances(inputs.p, *found)
        yield entry("stamp", gap, **inputs.scored(distances, found, random))
        yield entry("within", gap, float(distances.mean()), n=len(distances))
        images = inputs.rows["image"]
        pairs = pl.DataFrame({"a": images[found[0]], "b": images[found[1]]})
        other = changed(pairs, inputs.rows, label_columns(design.task, design.classes))
        yield entry("changed", gap, len(other) / len(pairs), n=len(pairs))


def _chosen(inputs: ProfileInputs, gap: int) -> Rows:
    """The pairs of a gap, a fixed random choice of as many as a score uses where there are more."""
    if inputs.order == "image":
        a, b = chained_pairs(inputs.pairs, inputs.rows["image"], gap)
    else:
        a, b = visit_pairs(inputs.rows, gap)
    rng = np.random.default_rng([inputs.design.seed, SAMPLE, gap])
    keep = np.sort(rng.permutation(len(a))[: inputs.design.number])
    return a[keep], b[keep]
