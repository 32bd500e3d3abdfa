"""The pairs behind a score, against a loop over all pairs."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import polars as pl
import pytest

from stamp.inference.outputs import Outputs
from stamp.scoring.pair_examples import LARGEST, pair_examples, top_share
from stamp.scoring.score import ScoreSettings

CLASSES = ["cat", "dog", "eel", "fox", "gnu"]
TASKS = ["multiclass", "multilabel"]


def outputs(task: str, images: int = 40) -> Outputs:
    rng = np.random.default_rng(5)
    logits = rng.normal(size=(images, 5)) * 2
    rows = pl.DataFrame({"image": [f"i{n}" for n in range(images)], "group": "g", "role": "pool"})
    if task == "multiclass":
        labels = {"label": pl.Series(rng.integers(0, 5, images), dtype=pl.Int16)}
    else:
        labels = {name: pl.Series(rng.integers(0, 2, images), dtype=pl.Int8) for name in CLASSES}
    return Outputs(rows.with_columns(**labels), logits, 10)


def drawn(images: int = 40) -> pl.DataFrame:
    rng = np.random.default_rng(6)
    parts = []
    for kind in ("labeled", "class", "random"):
        a, b = rng.integers(0, images, (2, 60))
        parts.append(
            pl.DataFrame({"a": [f"i{n}" for n in a], "b": [f"i{n}" for n in b], "kind": kind})
        )
    return pl.concat(parts)


def how(task: str, classes: list[str], semantic: str, number: int, scale: bool) -> ScoreSettings:
    return ScoreSettings(task, classes, semantic, "iid", number, scale, 10, 0.95, 0)


def softened(logits: np.ndarray, task: str, temperature: float) -> np.ndarray:
    z = logits / temperature
    return 1 / (1 + np.exp(-z)) if task == "multilabel" else (np.exp(z).T / np.exp(z).sum(1)).T


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("scale", [True, False])
def test_the_largest_pairs_and_their_shares_are_those_of_a_loop(task: str, scale: bool) -> None:
    pool, pairs, number = outputs(task), drawn(), 50
    found = pair_examples(pool, pairs, how(task, CLASSES, "class", number, scale), 2.0)
    p = softened(pool.logits, task, 2.0 if scale else 1.0)
    chosen = pairs.filter(pl.col("kind") == "class").head(number)
    squared = [
        (sum((p[int(a[1:]), c] - p[int(b[1:]), c]) ** 2 for c in range(5)), a, b)
        for a, b in chosen.select("a", "b").iter_rows()
    ]
    total, best = sum(one[0] for one in squared), sorted(squared, reverse=True)[:LARGEST]
    assert [one["images"] for one in found["largest"]] == [[a, b] for _, a, b in best]
    for shown, (distance, a, _) in zip(found["largest"], best, strict=True):
        assert shown["squared"] == pytest.approx(distance)
        assert shown["share"] == pytest.approx(distance / total)
        for one in shown["outputs"]:
            assert one["a"] == pytest.approx(p[int(a[1:]), CLASSES.index(one["class"])], abs=1e-4)
        assert sum(one["share"] for one in shown["outputs"]) <= 1 + 1e-3
    assert found["pairs"] == number
    middle = np.median([one[0] for one in squared])
    nearest = min(abs(one[0] - middle) for one in squared)
    assert abs(found["typical"][0]["squared"] - middle) == pytest.approx(nearest)


def test_the_part_of_the_largest_pairs_is_of_the_whole_sum() -> None:
    squared = np.array([10.0, *[1.0] * 19])
    assert top_share(squared, 0.05) == pytest.approx(10 / 29)
    assert top_share(np.zeros(4), 0.05) is None


def test_each_histogram_holds_every_pair_once() -> None:
    settings = how("multiclass", CLASSES, "class", 60, False)
    far = pair_examples(outputs("multiclass"), drawn(), settings, 1.0)["distances"]
    assert sum(far["semantic"]) == pytest.approx(1, abs=1e-3)
    assert sum(far["random"]) == pytest.approx(1, abs=1e-3)
    steps = {round(b - a, 3) for a, b in pairwise(far["edges"])}
    assert len(steps) == 1 and far["edges"][0] == 0


def test_labels_are_named_and_unknown_ones_are_none() -> None:
    pool = outputs("multilabel")
    empty = {name: pl.lit(None, dtype=pl.Int8) for name in CLASSES}
    settings = how("multilabel", CLASSES, "class", 60, False)
    known = pair_examples(pool, drawn(), settings, 1.0)["largest"][0]
    row = pool.rows.row(int(known["images"][0][1:]), named=True)
    assert known["labels"][0] == [name for name in CLASSES if row[name] == 1]
    bare = Outputs(pool.rows.with_columns(**empty), pool.logits, 10)
    assert pair_examples(bare, drawn(), settings, 1.0)["largest"][0]["labels"] == [None, None]


def test_a_class_without_an_output_takes_no_part() -> None:
    pool = outputs("multilabel")
    pool.logits[:, 2] = np.nan
    settings = how("multilabel", CLASSES, "class", 60, False)
    found = pair_examples(pool, drawn(), settings, 1.0)
    assert not [o for one in found["largest"] for o in one["outputs"] if o["class"] == "eel"]


def test_a_constant_model_has_pairs_but_no_share() -> None:
    pool = outputs("multiclass")
    pool.logits[:] = 1.0
    found = pair_examples(pool, drawn(), how("multiclass", CLASSES, "class", 60, False), 1.0)
    assert found["top_share"] is None and found["largest"][0]["share"] == 0
