"""The pixel cache gives the rows that were written, and its readers reach no decoder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stamp.core.artifacts import ids_digest, write_json
from stamp.core.code_digest import reached
from stamp.core.errors import UserError
from stamp.images.pixel_cache import JoinedCaches, PixelCache

SCRIPTS = Path(__file__).parents[2] / "workflow" / "scripts"


def cached(folder: Path, name: str, count: int) -> tuple[PixelCache, np.ndarray]:
    ids = [f"{name}{number}" for number in range(count)]
    pixels = np.random.default_rng(count).integers(0, 256, (count, 4, 4, 3), dtype=np.uint8)
    np.save(folder / f"{name}.npy", pixels)
    write_json(folder / f"{name}.json", {"ids": ids_digest(ids)})
    return PixelCache(folder / f"{name}.npy", folder / f"{name}.json", ids), pixels


def test_rows_are_taken_in_any_order_also_across_caches(tmp_path: Path) -> None:
    (one, first), (two, second) = cached(tmp_path, "a", 5), cached(tmp_path, "b", 3)
    both, every = JoinedCaches([one, two]), np.concatenate([first, second])
    rows = np.array([7, 0, 4, 4, 5])
    assert len(both) == 8 and np.array_equal(both.take(rows), every[rows])
    assert np.array_equal(one.take(np.array([3, 1])), first[[3, 1]])
    assert np.array_equal(one.rows(2, 9), first[2:])
    for cache in (one, both):
        with pytest.raises(IndexError, match="8 of"):
            cache.take(np.array([0, 8]))


def test_a_cache_of_other_images_or_one_cut_short_is_refused(tmp_path: Path) -> None:
    cache, _ = cached(tmp_path, "a", 5)
    with pytest.raises(UserError, match="made with ids"):
        PixelCache(tmp_path / "a.npy", tmp_path / "a.json", ["other"])
    whole = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(whole[:-1])
    for read in (lambda: cache.rows(0, 5), lambda: cache.take(np.array([4]))):
        with pytest.raises(UserError, match=r"a\.npy: .* ends too early"):
            read()


CACHED = ("stamp.images.pixel_cache",)  # what opens a view, which a job is told by name


@pytest.mark.parametrize(
    "script",
    [
        *("logits", "extra_outputs", "target_embeddings", "backbone_embeddings", "train"),
        *("projection_norm", "stress_tests"),
    ],
)
def test_a_job_that_reads_the_cache_reaches_no_decoder(script: str) -> None:
    files = {place.file.name for place in reached(SCRIPTS / f"{script}.py", CACHED)}
    assert "pixel_cache.py" in files
    assert not {"pixels.py", "reading.py", "dicom.py"} & (files - {f"{script}.py"})
