"""A study's pairs as rows of the pool: those that were drawn, and all that the pool allows.

The exact estimator is the sampled one without the noise of drawing: it weighs pairs as the study
draws them.

- Consecutive pairs (``temporal``, ``labeled``, ``changed``): every drawn pair counts the same, up
  to ``max_pairs`` and not just the first ``n_pairs``. Where more are eligible, some of the others
  have both images in the pool by chance: where their neighbours, or another kind's pairs, were
  drawn. They are left out, since such pairs are no fair sample of the eligible ones.
- Class pairs: all pairs of the images of the drawn ones; every class counts the same.
- Random pairs: an image counts as often as it is an end of those semantic pairs (``pool: reuse``),
  or each image of the drawn random pairs counts the same (``fresh``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stamp.core.errors import UserError
from stamp.data.pairs import class_codes, groups_are_classes
from stamp.scoring.bootstrap import PairDistances
from stamp.scoring.class_moments import ClassMoments
from stamp.scoring.exact import Cells, ClassPairs, ExactPairs, Indices, ListedPairs, RandomPairs
from stamp.scoring.stamp import Array, squared_distances

Rows = tuple[NDArray[np.int64], NDArray[np.int64]]

UNKNOWN = -1  # the class of an image without a label


@dataclass(frozen=True, slots=True)
class PairDesign:
    """How a study pairs images: the kind of its headline score, and how random pairs are drawn."""

    semantic: str
    random: str = "different_group"
    pool: str = "reuse"

    def __post_init__(self) -> None:
        if self.random not in ("different_group", "iid"):
            raise ValueError(f"random is 'different_group' or 'iid', not '{self.random}'")


@dataclass(frozen=True, slots=True)
class PoolPairs:
    """The drawn pairs of each kind as rows of the pool, and who is who among these rows."""

    drawn: Mapping[str, Rows]
    units: Indices  # what is resampled: the index's groups (patients), or images
    classes: Indices
    design: PairDesign

    @classmethod
    def of(
        cls,
        rows: pl.DataFrame,
        pairs: pl.DataFrame,
        design: PairDesign,
        columns: Sequence[str],
    ) -> PoolPairs:
        """The pairs of a study's file among the rows of its pool.

        Units are the groups. Where a study of class pairs has no groups but the classes, they are
        the images.
        """
        kinds = pairs["kind"].unique(maintain_order=True)
        drawn = {
            kind: pair_rows(pairs.filter(pl.col("kind") == kind), rows["image"]) for kind in kinds
        }
        classes = np.full(len(rows), UNKNOWN)
        if "class" in drawn:
            known = class_codes(rows, columns).rank("dense")
            classes = known.cast(pl.Int64).fill_null(UNKNOWN).to_numpy()
        units = np.arange(len(rows))
        if design.semantic != "class" or not groups_are_classes(rows, columns):
            units = rows["group"].rank("dense").cast(pl.Int64).fill_null(0).to_numpy()
        return cls(drawn, units, classes, design)

    @property
    def groups(self) -> Indices:
        """What random pairs differ in: classes beside class pairs, units beside all others."""
        return self.classes if self.design.semantic == "class" else self.units

    @property
    def known_groups(self) -> Indices:
        """The groups of the rows that have one."""
        return self.groups[self.groups != UNKNOWN]

    def sampled(self, p: Array, kind: str, number: int) -> PairDistances:
        """The squared distances of the first ``number`` pairs of a kind, and their units."""
        a, b = (end[:number] for end in self.drawn[kind])
        return PairDistances(squared_distances(p, a, b), self.units[a], self.units[b])

    def exact(self, p: Array, kind: str) -> ExactPairs:
        """All pairs of one kind and all random pairs, as the exact estimator takes them."""
        ends = self._ends
        far = np.flatnonzero(ends)
        known = np.unique(self.units[np.union1d(np.concatenate(self.drawn[kind]), far)])
        units = np.searchsorted(known, self.units)  # of other rows without a meaning
        semantic = self._semantic(p, kind, units, len(known))
        iid = self.design.random == "iid"
        if self.design.semantic == "class" and self.design.pool == "reuse":
            shared = semantic
            if not isinstance(shared, ClassPairs):
                shared = ClassPairs.of(p[far], units[far], self.classes[far])
            random = RandomPairs.of(shared.cells, by_group=True, iid=iid)
            moments = None if iid else ClassMoments.of(shared.cells)
            return ExactPairs(len(known), semantic, random, shared, moments)
        cells = Cells.of(p[far], ends[far], units[far], self.groups[far])
        random = RandomPairs.of(cells, by_group=self.design.semantic == "class", iid=iid)
        return ExactPairs(len(known), semantic, random)

    @property
    def _ends(self) -> Array:
        """How much each row counts as an image of random pairs."""
        reuse = self.design.pool == "reuse"
        drawn = self.drawn[self.design.semantic if reuse else "random"]
        ends = np.bincount(np.concatenate(drawn), minlength=len(self.units)).astype(np.float64)
        return ends if reuse else np.minimum(ends, 1.0)

    def _semantic(
        self, p: Array, kind: str, units: Indices, number: int
    ) -> ClassPairs | ListedPairs:
        a, b = self.drawn[kind]
        if kind == "class":
            rows = np.union1d(a, b)
            return ClassPairs.of(p[rows], units[rows], self.classes[rows])
        return ListedPairs.of(squared_distances(p, a, b), units[a], units[b], number)


def pair_rows(pairs: pl.DataFrame, images: pl.Series) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of image ids as pairs of row numbers."""
    place = pl.DataFrame({"image": images}).with_row_index("row")
    ends = []
    for end in ("a", "b"):
        found = pairs.select(image=end).join(place, on="image", how="left", maintain_order="left")
        if found["row"].null_count():
            missing = found.filter(pl.col("row").is_null())["image"][0]
            raise UserError(f"image '{missing}' is in the pairs, but not in the view 'source'")
        ends.append(found["row"].cast(pl.Int64).to_numpy())
    return ends[0], ends[1]
