"""Metrics of changed inputs: against loops, closed forms and properties."""

from __future__ import annotations

from math import isnan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stamp.metrics.stability import (
    augmented_stamp,
    gradcam_dice,
    lipschitz,
    mc_dropout,
    tta_flip,
    tta_multi,
)

seeds = st.integers(0, 2**32)


def outputs(seed, *shape):
    return np.random.default_rng(seed).random(shape)


@given(seeds)
@settings(max_examples=15)
def test_variance_over_passes_is_that_of_a_loop(seed):
    p = outputs(seed, 5, 7, 3)
    looped = np.mean([sum(np.var(p[:, i, c], ddof=1) for c in range(3)) for i in range(7)])
    assert tta_multi(p).value == pytest.approx(looped)
    assert mc_dropout(p, "multiclass").value == pytest.approx(looped)
    assert mc_dropout(p, "multilabel").value == pytest.approx(looped / 3)


@given(seeds)
@settings(max_examples=15)
def test_augmented_stamp_sets_the_moves_against_the_random_pairs(seed):
    p, q = outputs(seed, 9, 4), outputs(seed + 1, 9, 4)
    moved = np.mean([((p[i] - q[i]) ** 2).sum() for i in range(9)])
    assert tta_flip(p, q).value == pytest.approx(moved)
    assert augmented_stamp(p, q, 0.5).value == pytest.approx(1 - moved / (0.5 + 1e-8))


def test_perfect_invariance_is_one_and_no_variance():
    p = outputs(1, 6, 3)
    assert augmented_stamp(p, p, 0.3).value == 1
    assert tta_flip(p, p).value == 0
    same = np.stack([p] * 4)
    assert tta_multi(same).value == mc_dropout(same, "multilabel").value == 0


def test_moves_as_large_as_those_between_random_pairs_are_zero():
    p = np.array([[1.0, 0], [0, 1]])
    assert augmented_stamp(p, p[::-1], 2.0).value == pytest.approx(0, abs=1e-6)


@given(seeds)
@settings(max_examples=15)
def test_the_lipschitz_proxy_of_a_linear_map_is_at_most_its_norm(seed):
    rng = np.random.default_rng(seed)
    linear, x, d = rng.normal(size=(4, 3)), rng.normal(size=(10, 3)), rng.normal(size=(8, 10, 3))
    norms = np.linalg.norm(d, axis=2)
    found = lipschitz(x @ linear.T, (x + d) @ linear.T, norms).value
    largest = [
        max(np.linalg.norm(linear @ d[k, i]) / norms[k, i] for k in range(8)) for i in range(10)
    ]
    assert found == pytest.approx(np.mean(largest))
    assert found <= np.linalg.norm(linear, 2) + 1e-9


def test_flat_maps_are_left_out_of_the_overlap_and_said():
    assert gradcam_dice([0.5, 1.0]).value == 0.75
    found = gradcam_dice([0.5, np.nan, 1.0])
    assert found.value == 0.75 and "2 of 3 images" in found.reason
    assert isnan(gradcam_dice([np.nan]).value) and "flat" in gradcam_dice([np.nan]).reason


def test_nothing_to_measure_has_a_reason():
    for found in (
        tta_flip(np.empty((0, 3)), np.empty((0, 3))),
        tta_multi(np.empty((4, 0, 3))),
        mc_dropout(np.ones((1, 5, 3)), "multiclass"),
        augmented_stamp(np.empty((0, 3)), np.empty((0, 3)), 1.0),
        gradcam_dice([]),
        lipschitz(np.empty((0, 3)), np.empty((8, 0, 3)), np.empty((8, 0))),
    ):
        assert isnan(found.value) and found.reason


def test_outputs_of_other_images_are_refused():
    with pytest.raises(ValueError, match="same images"):
        tta_flip(np.ones((3, 2)), np.ones((4, 2)))
