"""What is behind a score: groups and images, rounded outputs, and outputs that were seen before."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from stamp.inference.outputs import Outputs
from stamp.scoring.about_outputs import about_outputs, fingerprint, is_hard
from stamp.scoring.score import ScoreSettings, score_table

CLASSES = ["a", "b", "c"]


def pool(logits: np.ndarray, visits: int = 4) -> Outputs:
    n = len(logits)
    rows = pl.DataFrame(
        {
            "image": [f"i{k}" for k in range(n)],
            "group": [f"p{k // visits}" for k in range(n)],
            "role": ["pool"] * n,
        }
    )
    return Outputs(rows, logits, None)


def pairs(n: int, visits: int = 4) -> pl.DataFrame:
    """Consecutive visits, and as many pairs of different patients."""
    near = [(k, k + 1) for k in range(n - 1) if k // visits == (k + 1) // visits]
    far = [(k, (k + visits) % n) for k in range(len(near))]
    found = [(f"i{a}", f"i{b}", "temporal") for a, b in near]
    found += [(f"i{a}", f"i{b}", "random") for a, b in far]
    return pl.DataFrame(found, schema=["a", "b", "kind"], orient="row")


def logits(n: int = 80, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, len(CLASSES))).astype(np.float32)


@pytest.mark.parametrize("number", [2, 7, 60])
def test_groups_and_images_are_those_of_the_pairs_that_count(number):
    here = pairs(80)
    found = about_outputs(pool(logits()), here, "temporal", number, "multilabel")
    taken = {"temporal": set(), "random": set()}
    for kind, ends in taken.items():
        rows = [row for row in here.iter_rows(named=True) if row["kind"] == kind][:number]
        ends.update(row[end] for row in rows for end in ("a", "b"))
    assert found.images == len(taken["temporal"] | taken["random"])
    assert found.groups == len({int(image[1:]) // 4 for image in taken["temporal"]})


@pytest.mark.parametrize("task", ["multiclass", "multilabel"])
def test_one_hot_outputs_are_hard_and_confident_ones_are_not(task):
    z = logits()
    one_hot = np.where(z == z.max(axis=1, keepdims=True), 0.0, -69.0)
    if task == "multilabel":
        one_hot = np.where(z > 0, 16.1, -16.1)  # the logits of probabilities that were clipped
    assert about_outputs(pool(one_hot), pairs(80), "temporal", 9, task).hard
    assert not about_outputs(pool(z), pairs(80), "temporal", 9, task).hard
    assert not is_hard(np.full((50, 3), 0.995))


@pytest.mark.parametrize("scale", [False, True])
def test_hard_predictions_are_flagged_saturated_whatever_the_temperature(scale):
    z = logits()
    one_hot = np.where(z == z.max(axis=1, keepdims=True), 0.0, -69.0)
    settings = ScoreSettings("multiclass", CLASSES, "temporal", "iid", 60, scale, 20, 0.95, 0)
    table, _ = score_table(pool(one_hot), pairs(80), settings, 20.0, "m", False)
    assert table["hard"].all() and table["saturated"].all()
    table, _ = score_table(pool(z), pairs(80), settings, 20.0, "m", False)
    assert not table["hard"].any() and not table["saturated"].any()


def test_equal_outputs_have_one_fingerprint_and_others_another():
    p = np.random.default_rng(0).dirichlet(np.ones(3), size=200)
    assert fingerprint(p) == fingerprint(p.copy())
    exported = p + np.random.default_rng(1).normal(0, 1e-7, p.shape)  # another format's rounding
    assert np.allclose(fingerprint(p), fingerprint(exported), atol=1e-6)
    for other in (
        p[:, [1, 0, 2]],
        p[::-1],
        np.clip(p + np.random.default_rng(2).normal(0, 1e-3, p.shape), 0, 1),
    ):
        assert np.abs(np.subtract(fingerprint(p), fingerprint(other))).max() > 1e-4


def test_a_class_without_an_output_is_left_out_of_it():
    z = logits()
    z[:, 1] = np.nan
    found = about_outputs(pool(z), pairs(80), "temporal", 9, "multilabel")
    assert np.isfinite(found.fingerprint).all()
