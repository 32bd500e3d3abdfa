"""Four kinds of pairs that should move outputs more and more: the negative controls.

B: an image and its augmented self; A: two images of a group with the same label; C: of a group,
with another label; D: of two groups. The claim is B <= A <= C <= D of the mean squared distances.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from stamp.data.pairs import changed, labeled
from stamp.data.views import label_columns
from stamp.inference.extra_outputs.manifest import NotAvailable
from stamp.report.analyses.nuisance.profile import augmented_distances
from stamp.report.profiles.model_profile import CONSTANT, ProfileInputs, Rows
from stamp.report.profiles.rows import entry
from stamp.scoring.bootstrap import PairDistances, renumbered, resampled_means
from stamp.scoring.pool_pairs import pair_rows
from stamp.scoring.stamp import squared_distances

ORDER = ("B", "A", "C", "D")
STEPS = ("B <= A", "A <= C", "C <= D")
AUGMENTATION = "composite"
FEWEST = 10  # pairs that each kind needs


def controls(inputs: ProfileInputs, kind: str) -> Rows:
    """Pairs of one group, ``labeled`` alike or ``changed``: those drawn, else the headline's."""
    drawn = inputs.pairs.filter(pl.col("kind") == kind).head(inputs.design.number)
    if drawn.is_empty():
        headline = inputs.pairs.filter(pl.col("kind") == inputs.design.semantic)
        columns = label_columns(inputs.design.task, inputs.design.classes)
        choose = labeled if kind == "labeled" else changed
        drawn = choose(headline.head(inputs.design.number), inputs.rows, columns)
    return pair_rows(drawn, inputs.rows["image"])


def rows(inputs: ProfileInputs) -> Iterator[dict[str, Any]]:
    """Mean distances ``B`` to ``D``, whether they are in ``order``, and bootstrap ``probability``.

    The probability of a step is the share of joint resamples of groups in which it holds, that of
    the full order the share in which all three do.
    """
    try:
        sets = _sets(inputs)
    except NotAvailable as missing:
        names = [*ORDER, "order"]
        yield from (entry(name, reason=str(missing)) for name in names)
        yield from (entry("probability", part, reason=str(missing)) for part in (*STEPS, "all"))
        return
    means = np.array([distances.mean() for distances, *_ in sets])
    for name, mean, each in zip(ORDER, means, sets, strict=True):
        yield entry(name, None, float(mean), n=len(each[0]))
    yield entry("order", None, float(np.all(np.diff(means) >= 0)))
    groups = inputs.groups
    pairs, units = renumbered([PairDistances(d, groups[a], groups[b]) for d, a, b in sets])
    draws = resampled_means(pairs, units, inputs.design.resamples, inputs.design.seed)
    holds = np.diff(draws, axis=0) >= 0
    valid = ~np.isnan(draws).any(axis=0)
    for name, each in zip((*STEPS, "all"), (*holds, holds.all(axis=0)), strict=True):
        yield entry("probability", name, float(each[valid].mean()), n=int(valid.sum()))


def _sets(inputs: ProfileInputs) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Distances and rows of the four kinds, in the order of the claim."""
    if inputs.design.semantic == "class":
        raise NotAvailable("the groups are classes: no two images of one differ in their label")
    # equal distances are in any order: constant outputs would show the claimed one
    if inputs.constant:
        raise NotAvailable(CONSTANT)
    at, moved = augmented_distances(inputs, AUGMENTATION)
    same, other = (controls(inputs, kind) for kind in ("labeled", "changed"))
    random = inputs.ends("random")
    found = [(moved, at, at)]
    found += [(squared_distances(inputs.p, *ends), *ends) for ends in (same, other, random)]
    for name, each in zip(ORDER, found, strict=True):
        if len(each[0]) < FEWEST:
            raise NotAvailable(f"{len(each[0])} pairs of kind {name}: at least {FEWEST} are needed")
    return found
