"""Which images of the source or of the targets a model is run on for its extra outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from stamp.core.artifacts import ids_digest
from stamp.core.errors import UserError
from stamp.images.pixel_cache import JoinedCaches
from stamp.images.view_pixels import Pixels
from stamp.inference.extra_outputs.seeding import seed_of

Ends = tuple[np.ndarray, np.ndarray]  # the first and the second image of each pair
NO_PAIRS: Ends = (np.zeros(0, dtype=int), np.zeros(0, dtype=int))


@dataclass(frozen=True, slots=True)
class SelectedImages:
    """The images of a view, and those of them that are forwarded.

    ``ids`` are all images of the view and ``rows`` the numbers of those that are forwarded. Of the
    source these are the first pool images; ``pairs`` are the semantic pairs within them, as
    positions in ``rows``, and ``semantic`` all semantic pairs, as rows of the view. The views of
    all targets count as one view, without pairs.
    """

    cache: Pixels | JoinedCaches
    ids: Sequence[str]
    rows: np.ndarray
    pairs: Ends
    semantic: Ends

    @classmethod
    def of_source(
        cls, cache: Pixels, view: pl.DataFrame, pairs: pl.DataFrame, semantic: str, count: int
    ) -> SelectedImages:
        """The first ``count`` pool images, and the semantic pairs within them.

        The pool is in the order of the pairs, so there are at least half as many pairs as images;
        that many are taken.
        """
        rows = np.flatnonzero((view["role"] == "pool").to_numpy())[:count]
        position = {image: number for number, image in enumerate(view["image"].gather(rows))}
        every = pairs.filter(pl.col("kind") == semantic)
        within = every.filter(
            *(pl.col(end).is_in(list(position)) for end in ("a", "b")),
        ).head(len(rows) // 2)
        ids = view["image"].to_list()
        row = {image: number for number, image in enumerate(ids)}
        return cls(cache, ids, rows, _ends(within, position), _ends(every, row))

    @classmethod
    def of_labeled(
        cls,
        cache: Pixels,
        view: pl.DataFrame,
        labels: np.ndarray,
        split: str | None,
        count: int,
    ) -> SelectedImages:
        """The first ``count`` labeled pool images, of one split where it is given; without pairs.

        ``labels`` are those of the view, NaN where there is none.
        """
        known = ~np.isnan(labels.reshape(len(view), -1)).all(axis=1)
        chosen = known & (view["role"] == "pool").to_numpy()
        if split is not None:
            chosen &= (view["split"] == split).fill_null(False).to_numpy()
        rows = np.flatnonzero(chosen)[:count]
        if not len(rows):
            where = "" if split is None else f" of the split '{split}'"
            raise UserError(f"stress: no image of the pairs{where} is labeled")
        return cls(cache, view["image"].to_list(), rows, NO_PAIRS, NO_PAIRS)

    @classmethod
    def of_targets(
        cls, caches: Sequence[Pixels], views: Sequence[pl.DataFrame], count: int, seed: int
    ) -> SelectedImages:
        """Up to ``count`` images of every domain of every target, by a hash of seed and image."""
        rows: list[np.ndarray] = []
        ids: list[str] = []
        for view in views:
            names = view["image"].to_list()
            places = pl.Series("place", range(len(ids), len(ids) + len(names)), dtype=pl.Int64)
            order = pl.Series("order", [seed_of(seed, name, "targets") for name in names])
            table = pl.DataFrame([view["domain"], places, order])
            chosen = table.sort("order").group_by("domain", maintain_order=True).head(count)
            rows.append(np.sort(chosen["place"].to_numpy()))
            ids += names
        return cls(JoinedCaches(caches), ids, np.concatenate(rows), NO_PAIRS, NO_PAIRS)

    @property
    def selected_ids(self) -> list[str]:
        """The ids of the images that are forwarded."""
        return [self.ids[row] for row in self.rows]

    @property
    def digest(self) -> str:
        """A digest of the images and of the pairs."""
        own = self.selected_ids
        ends = [own[place] for pair in zip(*self.pairs, strict=True) for place in pair]
        return ids_digest([*self.ids, "", *own, "", *ends])

    @property
    def semantic_digest(self) -> str:
        """A digest of all semantic pairs."""
        return ids_digest(
            [self.ids[row] for pair in zip(*self.semantic, strict=True) for row in pair]
        )


def _ends(pairs: pl.DataFrame, number: Mapping[str, int]) -> Ends:
    """Both images of each pair, as numbers."""
    a, b = (np.array([number[image] for image in pairs[end]], dtype=int) for end in ("a", "b"))
    return a, b
