"""The score of one model: known models get the values that they must have."""

from __future__ import annotations

import numpy as np
import pytest
from grouped_outputs import draw_pairs, grouped, scored
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

seeds = st.integers(0, 2**32)


def test_a_gaussian_random_effects_model_gives_its_share_of_variance_between_groups():
    rng = np.random.default_rng(2)
    p, groups = grouped(rng, groups=3000, each=4, between=2.0, within=1.0)
    _, random = draw_pairs(rng, groups, 0, 3000)
    a = np.arange(0, len(p), 4)
    found = scored(p, (a, a + 1), random, groups, resamples=10)
    assert found.exact_eta2 == pytest.approx(0.8, abs=0.01)
    assert found.stamp == pytest.approx(0.8, abs=0.03)
    assert found.within == pytest.approx(2 * 4 * 1.0, rel=0.05)


@pytest.mark.parametrize("p", [np.full((40, 3), 0.3), np.full((40, 3), 0.3) + 1e-6])
def test_a_constant_predictor_is_degenerate_and_never_the_best(p):
    p = p.copy()
    p[::2] += 1e-7
    groups = np.repeat(np.arange(10), 4)
    a = np.arange(0, 40, 2)
    found = scored(p, (a, a + 1), (a, (a + 4) % 40), groups, resamples=20)
    assert found.degenerate
    for value in (found.stamp, found.eta2, found.exact_stamp, found.exact_eta2, found.low):
        assert np.isnan(value)
    assert np.isnan(found.draws).all() and len(found.draws) == 20
    assert np.isfinite(found.raw) and np.isfinite(found.within)


def test_groups_that_are_told_apart_perfectly_score_one():
    groups = np.repeat(np.arange(4), 10)
    pairs = draw_pairs(np.random.default_rng(0), groups, 50, 50)
    found = scored(np.eye(4)[groups], *pairs, groups, unit="image", resamples=200)
    assert (found.stamp, found.exact_stamp, found.low, found.high) == pytest.approx((1, 1, 1, 1))
    assert found.eta2 == pytest.approx(1)
    assert found.saturated and not found.degenerate


def test_outputs_that_ignore_the_group_score_about_zero_and_may_be_negative():
    rng = np.random.default_rng(5)
    groups = np.repeat(np.arange(100), 10)
    values = []
    for _ in range(30):
        p = rng.random((1000, 3))
        values.append(scored(p, *draw_pairs(rng, groups, 100, 100), groups, resamples=2).stamp)
    assert abs(np.mean(values)) < 4 * np.std(values) / np.sqrt(30)
    assert min(values) < 0


@settings(max_examples=25, deadline=None)
@given(seeds, st.floats(0.1, 10))
def test_rotation_shift_and_scale_of_the_outputs_change_nothing(seed, scale):
    rng = np.random.default_rng(seed)
    p, groups = grouped(rng)
    pairs = draw_pairs(rng, groups, 20, 20)
    turn = stats.ortho_group.rvs(4, random_state=rng)
    before = scored(p, *pairs, groups, resamples=20)
    after = scored(scale * p @ turn + rng.normal(size=4), *pairs, groups, resamples=20)
    for name in ("stamp", "eta2", "exact_stamp", "exact_eta2", "low", "high", "se_bootstrap"):
        assert getattr(after, name) == pytest.approx(getattr(before, name), abs=1e-6)


@settings(max_examples=25, deadline=None)
@given(seeds, st.sampled_from(["different_group", "iid"]))
def test_reordering_images_and_pairs_changes_nothing(seed, design):
    rng = np.random.default_rng(seed)
    p, groups = grouped(rng)
    (a, b), (c, d) = draw_pairs(rng, groups, 20, 20)
    order, rows = rng.permutation(len(p)), rng.permutation(20)
    place = np.argsort(order)
    before = scored(p, (a, b), (c, d), groups, resamples=50, random_design=design)
    moved = (place[b[rows]], place[a[rows]]), (place[c], place[d])
    after = scored(p[order], *moved, groups[order], resamples=50, random_design=design)
    for name in ("stamp", "eta2", "exact_stamp", "exact_eta2", "low", "high", "se_analytic"):
        assert getattr(after, name) == pytest.approx(getattr(before, name), rel=1e-9)
    np.testing.assert_allclose(after.draws, before.draws)


def test_independent_draws_need_no_correction_and_other_groups_do():
    rng = np.random.default_rng(8)
    p, groups = grouped(rng)
    pairs = draw_pairs(rng, groups, 30, 30)
    iid = scored(p, *pairs, groups, resamples=5, random_design="iid")
    assert iid.eta2 == iid.stamp and iid.exact_stamp == iid.exact_eta2
    other = scored(p, *pairs, groups, resamples=5)
    assert other.groups_effective == pytest.approx(8)
    assert other.eta2 == pytest.approx(other.stamp / (other.stamp + 8 / 7 * (1 - other.stamp)))
    assert other.exact_total > iid.exact_total


def test_programming_mistakes_raise():
    p, groups = np.random.default_rng(0).random((4, 2)), np.array([0, 0, 1, 1])
    pairs = ([0], [1]), ([0], [2])
    with pytest.raises(ValueError, match="not finite"):
        scored(np.full((4, 2), np.nan), *pairs, groups)
    with pytest.raises(ValueError, match="at least one"):
        scored(p, ([], []), pairs[1], groups)
    with pytest.raises(ValueError, match="not 'other'"):
        scored(p, *pairs, groups, random_design="other")
