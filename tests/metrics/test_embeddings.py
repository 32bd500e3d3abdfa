"""Metrics of features: against closed forms, loops, scipy and scikit-learn, and by properties."""

from __future__ import annotations

from math import exp, isnan, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import sqrtm
from scipy.spatial.distance import cosine

from stamp.metrics.of_embeddings.embeddings import (
    dispersion,
    effective_rank,
    embedding_instability,
    feature_alignment,
    feature_discriminability,
    feature_norm,
    feature_stamp,
    frechet_distance,
    rotation_accuracy,
)

seeds = st.integers(0, 2**32)


def features(seed, n=40, d=6):
    return np.random.default_rng(seed).normal(size=(n, d)) + 1


def pairs(seed, n=40, count=30):
    rng = np.random.default_rng([seed, 1])
    return rng.integers(n, size=count), rng.integers(n, size=count)


@given(seeds)
@settings(max_examples=20)
def test_instability_and_alignment_are_those_of_scipy_s_cosines(seed):
    h, near, far = features(seed), pairs(seed), pairs(seed + 1)
    apart = [
        np.mean([cosine(h[a], h[b]) for a, b in zip(*each, strict=True)]) for each in (near, far)
    ]
    assert embedding_instability(h, near).value == pytest.approx(apart[0])
    assert feature_alignment(h, near, far).value == pytest.approx(apart[1] - apart[0])


def test_scaled_features_have_the_same_angles_and_zeros_have_none():
    h = features(0)
    scaled = h * np.arange(1, 41)[:, None]
    assert embedding_instability(scaled, pairs(0)).value == pytest.approx(
        embedding_instability(h, pairs(0)).value
    )
    gone = h.copy()
    gone[3] = 0
    assert embedding_instability(gone, ([3, 0], [1, 1])).value == pytest.approx(cosine(h[0], h[1]))
    assert "direction" in embedding_instability(gone, ([3], [1])).reason


@given(seeds)
@settings(max_examples=20)
def test_discriminability_is_the_ratio_of_the_scatter_matrices_traces(seed):
    h, y = features(seed), np.random.default_rng([seed, 2]).integers(3, size=40).astype(float)
    y[:3] = [0, 1, np.nan]
    known = ~np.isnan(y)
    mean = h[known].mean(axis=0)
    between = sum(
        (y[known] == c).sum() * np.outer(gap, gap)
        for c in np.unique(y[known])
        for gap in [h[known][y[known] == c].mean(axis=0) - mean]
    )
    total = (h[known] - mean).T @ (h[known] - mean)
    expected = np.trace(between) / np.trace(total)
    assert feature_discriminability(h, y, "multiclass").value == pytest.approx(expected)


def test_discriminability_of_several_labels_is_the_mean_of_each_against_its_absence():
    h = features(3)
    y = np.random.default_rng(4).integers(2, size=(40, 3)).astype(float)
    y[:, 2] = 0  # no positive: left out, and said
    found = feature_discriminability(h, y, "multilabel", minimum=5)
    each = [feature_discriminability(h, y[:, c], "multiclass").value for c in (0, 1)]
    assert found.value == pytest.approx(np.mean(each))
    assert "over 2 of 3 classes" in found.reason
    assert isnan(feature_discriminability(h, y[:, 2:], "multilabel", minimum=5).value)


def test_discriminability_is_one_where_features_are_the_classes_and_zero_where_means_agree():
    y = np.repeat([0.0, 1, 2], 4)
    assert feature_discriminability(np.eye(3)[y.astype(int)], y, "multiclass").value == 1
    h = np.tile([[1.0, 0], [-1, 0]], (6, 1))
    assert feature_discriminability(h, y, "multiclass").value == pytest.approx(0, abs=1e-12)


@given(seeds)
@settings(max_examples=10)
def test_feature_stamp_is_one_minus_the_ratio_over_all_pairs(seed):
    h, g = features(seed, n=18), np.random.default_rng([seed, 3]).integers(5, size=18)
    g[:4] = [0, 0, 1, 1]
    d = ((h[:, None] - h[None]) ** 2).sum(axis=2)
    other = ~np.eye(18, dtype=bool)
    same = (g[:, None] == g[None]) & other
    within = np.mean(
        [d[(g[:, None] == c) & same].mean() for c in np.unique(g) if (g == c).sum() > 1]
    )
    total = d[g[:, None] != g[None]].mean()
    assert feature_stamp(h, g).value == pytest.approx(1 - within / total)


def test_the_frechet_distance_of_gaussians_is_its_closed_form():
    rng = np.random.default_rng(5)
    a, b = rng.normal(size=(60_000, 2)), rng.normal(size=(60_000, 2)) * [2, 3] + [1, -1]
    # of N(0, I) and N((1, -1), diag(4, 9)): 2 + (1 + 4 - 4) + (1 + 9 - 6)
    assert frechet_distance(a, b).value == pytest.approx(2 + 1 + 4, rel=0.03)
    assert frechet_distance(a, a).value == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("n", [5, 40])
def test_the_frechet_distance_is_that_of_the_root_of_a_matrix_also_where_it_is_singular(n):
    a, b = features(6, n=n), features(7, n=n + 3) * 2
    s1, s2 = np.cov(a.T), np.cov(b.T)
    root = sqrtm(s1 @ s2 + 1e-12 * np.eye(6)).real
    gap = a.mean(axis=0) - b.mean(axis=0)
    expected = gap @ gap + np.trace(s1 + s2 - 2 * root)
    assert frechet_distance(a, b).value == pytest.approx(expected, rel=1e-4)


def test_rotations_that_show_in_the_features_are_named_and_others_are_chance():
    rng = np.random.default_rng(8)
    h = rng.normal(size=(4, 200, 8))
    assert rotation_accuracy(h, np.arange(200)).value == pytest.approx(0.25, abs=0.06)
    h[:, :, 0] += 40 * np.arange(4)[:, None]
    h[:, :, 1:4] += 40 * np.eye(4)[:, None, 1:]
    assert rotation_accuracy(h, np.arange(200) // 2).value == pytest.approx(1)


def test_images_of_a_group_are_never_on_both_sides_of_the_rotation_probe():
    rng = np.random.default_rng(9)
    # each group marks its four rotations in a way of its own: only a leak could tell them apart
    marks = rng.normal(size=(4, 20, 64)) * 5
    h = np.repeat(marks, 10, axis=1) + rng.normal(size=(4, 200, 64)) * 0.1
    assert rotation_accuracy(h, np.repeat(np.arange(20), 10)).value < 0.45
    assert rotation_accuracy(h, np.arange(200)).value > 0.9


def test_dispersion_of_known_means():
    h = np.array([[1.0, 0], [1, 0], [0, 1], [0, 1]]) * [[1], [3], [2], [5]]
    p = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]])
    # unit vectors: means (1, 0) and (0, 1) around (.5, .5), two images each, k - 1 = 1
    assert dispersion(h, p, "multiclass").value == pytest.approx(log(2 * 0.5 + 2 * 0.5))
    # one class of two pseudo-positives: the same groups
    assert dispersion(h, p[:, :1] * 0.8, "multilabel").value == pytest.approx(log(2))
    alone = dispersion(h, p * [1, 0], "multiclass")
    assert alone.value < -20 and "one predicted class" in alone.reason


def test_effective_rank_of_known_matrices():
    assert effective_rank(np.outer(np.arange(5.0), [1, 2, 3])).value == pytest.approx(1)
    even = np.concatenate([np.eye(4), -np.eye(4)])
    assert effective_rank(even).value == pytest.approx(4)
    uneven = np.concatenate([np.diag([3.0, 1]), -np.diag([3.0, 1])])
    assert effective_rank(uneven).value == pytest.approx(exp(-0.75 * log(0.75) - 0.25 * log(0.25)))
    assert feature_norm([[3.0, 4], [0, 1]]).value == pytest.approx(3)


@given(seeds)
@settings(max_examples=10)
def test_the_order_of_the_images_is_of_no_account(seed):
    rng = np.random.default_rng([seed, 4])
    h, order = features(seed), rng.permutation(40)
    y, p = rng.integers(3, size=40).astype(float), rng.random((40, 3))
    place = np.argsort(order)
    a, b = pairs(seed)
    for before, after in (
        (embedding_instability(h, (a, b)), embedding_instability(h[order], (place[a], place[b]))),
        (
            feature_discriminability(h, y, "multiclass"),
            feature_discriminability(h[order], y[order], "multiclass"),
        ),
        (feature_stamp(h, y), feature_stamp(h[order], y[order])),
        (dispersion(h, p, "multilabel"), dispersion(h[order], p[order], "multilabel")),
        (dispersion(h, p, "multiclass"), dispersion(h[order], p[order], "multiclass")),
        (effective_rank(h), effective_rank(h[order])),
        (frechet_distance(h, h + 1), frechet_distance(h[order], h + 1)),
    ):
        assert before.value == pytest.approx(after.value, rel=1e-9, abs=1e-9)


def test_constant_features_have_no_value_and_a_reason():
    h, y = np.ones((12, 3)), np.repeat([0.0, 1], 6)
    p = np.tile([[0.7, 0.3], [0.2, 0.8]], (6, 1))
    for found in (
        feature_discriminability(h, y, "multiclass"),
        feature_discriminability(h, y[:, None], "multilabel", minimum=2),
        feature_stamp(h, y),
        dispersion(h, p, "multiclass"),
        dispersion(h, p, "multilabel"),
        effective_rank(h),
    ):
        assert isnan(found.value) and "same for every image" in found.reason


def test_features_that_are_no_numbers_have_no_value():
    h = features(0)
    h[2, 1] = np.inf
    for found in (effective_rank(h), embedding_instability(h, pairs(0)), feature_norm(h)):
        assert isnan(found.value) and "finite" in found.reason
