"""The STAMP estimator against loops and closed forms."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from stamp.scoring import stamp as subject
from stamp.scoring.stamp import (
    correct_different_groups,
    effective_groups,
    exact_groups,
    health,
    probabilities,
    squared_distances,
    stamp,
)

seeds = st.integers(0, 2**32)


def squared(x, y):
    return float(sum((i - j) ** 2 for i, j in zip(x, y, strict=True)))


@given(seeds, st.floats(0.05, 20))
def test_probabilities_agree_with_scipy(seed, temperature):
    z = np.random.default_rng(seed).normal(scale=30, size=(7, 5))
    expected = special.softmax(z / temperature, axis=1)
    np.testing.assert_allclose(probabilities(z, "multiclass", temperature), expected, atol=1e-14)
    expected = special.expit(z / temperature)
    np.testing.assert_allclose(probabilities(z, "multilabel", temperature), expected, atol=1e-14)


@pytest.mark.parametrize("task", ["multiclass", "multilabel"])
def test_huge_logits_of_half_precision_neither_overflow_nor_change_in_place(task):
    z = np.array([[60000, -60000], [-60000, -60000]], dtype=np.float16)
    before = z.copy()
    with np.errstate(all="raise", under="ignore"):
        p = probabilities(z, task)
    assert p.dtype == np.float64
    assert np.isfinite(p).all()
    np.testing.assert_array_equal(z, before)


def test_a_softmax_restricted_to_classes_is_the_probability_given_one_of_them():
    z = np.random.default_rng(0).normal(size=(6, 5))
    p, columns = probabilities(z, "multiclass", 1.7), [4, 1]
    conditional = p[:, columns] / p[:, columns].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(probabilities(z[:, columns], "multiclass", 1.7), conditional)
    sigmoids = probabilities(z, "multilabel", 1.7)[:, columns]
    np.testing.assert_array_equal(probabilities(z[:, columns], "multilabel", 1.7), sigmoids)


def test_a_temperature_that_is_not_positive_and_an_unknown_task_raise():
    for value in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="temperature"):
            probabilities(np.zeros((1, 2)), "multiclass", value)
    with pytest.raises(ValueError, match="task"):
        probabilities(np.zeros((1, 2)), "regression")


def test_distances_agree_with_a_loop_across_block_borders(monkeypatch):
    monkeypatch.setattr(subject, "_BLOCK", 7)
    rng = np.random.default_rng(1)
    p, a, b = rng.random((9, 3)), rng.integers(0, 9, 20), rng.integers(0, 9, 20)
    expected = [squared(p[i], p[j]) for i, j in zip(a, b, strict=True)]
    np.testing.assert_allclose(squared_distances(p, a, b), expected)


def test_stamp_is_not_clipped():
    assert stamp(3.0, 1.0) == pytest.approx(-2.0, abs=1e-7)
    assert stamp(0.0, 1.0) == 1.0


@settings(max_examples=50)
@given(
    seeds,
    st.lists(st.integers(0, 4), min_size=4, max_size=14),
    st.sampled_from(["uniform", "size"]),
)
def test_the_exact_estimator_is_the_mean_over_all_pairs(seed, groups, weights):
    groups = np.array(groups) * 3
    p = np.random.default_rng(seed).normal(size=(len(groups), 3))
    found = exact_groups(p, groups, weights)
    pairs = [(i, j, squared(p[i], p[j])) for i, j in combinations(range(len(groups)), 2)]
    assert found.total_iid == pytest.approx(np.mean([d for *_, d in pairs]))
    across = [d for i, j, d in pairs if groups[i] != groups[j]]
    if across:
        assert found.total_different == pytest.approx(np.mean(across))
        assert found.stamp_different == pytest.approx(
            stamp(found.within, np.mean(across)), nan_ok=True
        )
    else:
        assert np.isnan(found.total_different)
    sizes, means = [], []
    for group in np.unique(groups):
        own = [d for i, j, d in pairs if groups[i] == groups[j] == group]
        if own:
            sizes.append(np.sum(groups == group))
            means.append(np.mean(own))
    assert found.groups == len(sizes)
    if sizes:
        expected = np.average(means, weights=None if weights == "uniform" else sizes)
        assert found.within == pytest.approx(expected)
    else:
        assert np.isnan(found.within)


def test_different_group_pairs_overstate_eta_squared_and_the_correction_takes_it_back():
    rng = np.random.default_rng(3)
    centres = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    groups = np.repeat(np.arange(3), 20_000)
    p = centres[groups] + rng.normal(size=(len(groups), 2))
    s_between = np.mean(np.sum((centres - centres.mean(axis=0)) ** 2, axis=1))
    eta2 = s_between / (s_between + 2.0)
    a, b = rng.integers(0, 20_000, size=(2, 60_000))
    which = rng.integers(0, 3, size=60_000)
    c, d = rng.integers(0, len(p), size=(2, 120_000))
    other = groups[c] != groups[d]
    within = squared_distances(p, a + which * 20_000, b + which * 20_000).mean()
    value = stamp(within, squared_distances(p, c[other], d[other]).mean())
    assert value > eta2 + 0.05
    assert correct_different_groups(value, 3) == pytest.approx(eta2, abs=0.01)
    assert correct_different_groups(value, effective_groups(groups)) == pytest.approx(
        eta2, abs=0.01
    )


def test_the_effective_number_of_equal_groups_is_their_number():
    assert effective_groups(np.repeat(np.arange(7), 4)) == pytest.approx(7)
    assert effective_groups([0] * 99 + [1]) < 1.03


def test_outputs_that_vary_in_one_class_only_are_not_degenerate():
    p = np.full((100, 50), 0.02)
    p[:, 7] += np.linspace(0, 0.1, 100)
    assert not health(p, total=1e-3).degenerate
    assert health(p, total=4e-5).degenerate
    assert health(np.full((100, 50), 0.02), total=1.0).degenerate


def test_saturation_is_every_output_at_a_corner_not_many_small_probabilities():
    one_hot = np.eye(4)[np.arange(200) % 4]
    assert health(one_hot, 1.0).saturated
    assert health(one_hot * 0.996 + 0.001, 1.0).saturated
    assert not health(one_hot * 0.9 + 0.025, 1.0).saturated
    many = np.full((50, 2000), 1 / 2000)
    assert not health(many, 1.0).saturated
    mixed = one_hot.copy()
    mixed[:4] = 0.25
    assert not health(mixed, 1.0).saturated
    assert health(mixed, 1.0).saturated_share == pytest.approx(0.98)
