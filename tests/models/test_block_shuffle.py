"""A shuffled epoch in large blocks: every labeled row once, few reads, another order each time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stamp.core.artifacts import ids_digest, write_json
from stamp.images.pixel_cache import PixelCache
from stamp.models.training import block_shuffle, splits
from stamp.models.training.block_shuffle import BlockShuffle, fits_in_memory

ROWS, SIDE, SIZE = 103, 4, 8


@pytest.fixture
def split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> splits.TrainingSplit:
    """Images whose first pixel is their row, every ninth unlabeled; blocks of ten, by three."""
    monkeypatch.setattr(block_shuffle, "BLOCK", 10 * SIDE * SIDE)
    monkeypatch.setattr(block_shuffle, "TOGETHER", 3)
    images = np.zeros((ROWS, SIDE, SIDE, 1), dtype=np.uint8)
    images[:, 0, 0, 0] = np.arange(ROWS)
    np.save(tmp_path / "x.npy", images)
    ids = [str(row) for row in range(ROWS)]
    write_json(tmp_path / "x.json", {"ids": ids_digest(ids)})
    labels = np.arange(ROWS, dtype=float)
    labels[::9] = np.nan
    cache = PixelCache(tmp_path / "x.npy", tmp_path / "x.json", ids)
    return splits.split_of(cache, labels, {})


def epoch(split: splits.TrainingSplit, seed: int) -> list[int]:
    """The rows of an epoch's batches, which have the labels of their images."""
    rows: list[int] = []
    for pixels, labels in BlockShuffle(split, SIZE).batches(seed, "cpu"):
        assert len(pixels) == len(labels) == SIZE
        assert pixels[:, 0, 0, 0].tolist() == labels.tolist()
        rows += pixels[:, 0, 0, 0].tolist()
    return rows


def test_an_epoch_has_every_labeled_row_once_but_for_the_rest_of_the_last_batch(
    split: splits.TrainingSplit,
) -> None:
    found = epoch(split, 0)
    assert len(found) == len(split.rows) // SIZE * SIZE
    assert len(set(found)) == len(found) and set(found) <= set(split.rows.tolist())


def test_the_seed_decides_the_order(split: splits.TrainingSplit) -> None:
    assert epoch(split, 1) == epoch(split, 1)
    assert epoch(split, 1) != epoch(split, 2)


def test_each_block_is_read_once_and_as_a_whole(
    split: splits.TrainingSplit, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[tuple[int, int]] = []
    rows = PixelCache.rows

    def watched(cache: PixelCache, start: int, stop: int) -> np.ndarray:
        reads.append((start, stop))
        return rows(cache, start, stop)

    monkeypatch.setattr(PixelCache, "rows", watched)
    epoch(split, 0)
    assert sorted(reads) == [(start, start + 10) for start in range(0, ROWS, 10)]
    assert reads != sorted(reads)


def test_neighbours_in_the_cache_are_spread_over_the_epoch(split: splits.TrainingSplit) -> None:
    """Averaged over epochs, a row may stand anywhere: no part of the cache comes early."""
    places = np.full((300, ROWS), np.nan)
    for seed in range(300):
        found = epoch(split, seed)
        places[seed, found] = np.arange(len(found)) / len(found)
    mean = np.nanmean(places[:, split.rows], axis=0)
    assert np.abs(mean - 0.5).max() < 0.1  # five standard errors of a uniform place


def test_a_cache_larger_than_half_of_memory_does_not_fit(
    split: splits.TrainingSplit, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fits_in_memory(split.cache)
    pages = {"SC_PAGE_SIZE": 1, "SC_PHYS_PAGES": 2 * ROWS * SIDE * SIDE}
    monkeypatch.setattr(block_shuffle.os, "sysconf", pages.__getitem__)
    assert fits_in_memory(split.cache)
    pages["SC_PHYS_PAGES"] -= 2
    assert not fits_in_memory(split.cache)
