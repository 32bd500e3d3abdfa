"""STAMP: estimators against loops and closed forms, bootstrap against literal resampling."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from stamp.scoring import stamp as subject
from stamp.scoring.stamp import (
    analytic_se,
    bootstrap_stamp,
    correct_different_groups,
    effective_groups,
    exact_groups,
    health,
    iid_total,
    probabilities,
    restrict,
    score,
    squared_distances,
    stamp,
    unit_se,
)

seeds = st.integers(0, 2**32)


def grouped(rng, groups=8, each=5, outputs=4, between=1.0, within=0.5):
    """Gaussian random effects: outputs [n, C] and the group of each row."""
    centre = rng.normal(scale=between, size=(groups, 1, outputs))
    noise = rng.normal(scale=within, size=(groups, each, outputs))
    return (centre + noise).reshape(-1, outputs), np.repeat(np.arange(groups), each)


def draw_pairs(rng, groups, semantic, random):
    """Distinct rows of one group each, and rows of different groups each."""
    n = len(groups)
    a, b = rng.integers(0, n, size=(2, 200 * (semantic + random)))
    same = np.flatnonzero((groups[a] == groups[b]) & (a != b))[:semantic]
    other = np.flatnonzero(groups[a] != groups[b])[:random]
    assert len(same) == semantic and len(other) == random
    return (a[same], b[same]), (a[other], b[other])


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
    np.testing.assert_allclose(restrict(z, columns, "multiclass", 1.7), conditional)
    sigmoids = probabilities(z, "multilabel", 1.7)[:, columns]
    np.testing.assert_array_equal(restrict(z, columns, "multilabel", 1.7), sigmoids)


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


def test_a_gaussian_random_effects_model_gives_its_share_of_variance_between_groups():
    rng = np.random.default_rng(2)
    p, groups = grouped(rng, groups=3000, each=4, between=2.0, within=1.0)
    _, random = draw_pairs(rng, groups, 0, 3000)
    a = np.arange(0, len(p), 4)
    found = score(p, (a, a + 1), random, groups, resamples=10)
    assert found.exact_eta2 == pytest.approx(0.8, abs=0.01)
    assert found.stamp == pytest.approx(0.8, abs=0.03)
    assert found.within == pytest.approx(2 * 4 * 1.0, rel=0.05)


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


@given(seeds, st.lists(st.integers(1, 6), min_size=2, max_size=6))
def test_the_total_of_independent_draws_follows_from_that_of_different_groups(seed, sizes):
    groups = np.repeat(np.arange(len(sizes)), sizes)
    p = np.random.default_rng(seed).normal(size=(len(groups), 2))
    p *= 1 + groups[:, None]
    d = np.array([[squared(x, y) for y in p] for x in p])
    same = groups[:, None] == groups
    within = [d[np.ix_(groups == g, groups == g)].mean() for g in range(len(sizes))]
    shares = np.array(sizes) / len(groups)
    assert iid_total(d[~same].mean(), shares, within) == pytest.approx(d.mean())


def test_the_effective_number_of_equal_groups_is_their_number():
    assert effective_groups(np.repeat(np.arange(7), 4)) == pytest.approx(7)
    assert effective_groups([0] * 99 + [1]) < 1.03


@pytest.mark.parametrize("p", [np.full((40, 3), 0.3), np.full((40, 3), 0.3) + 1e-6])
def test_a_constant_predictor_is_degenerate_and_never_the_best(p):
    p = p.copy()
    p[::2] += 1e-7
    groups = np.repeat(np.arange(10), 4)
    a = np.arange(0, 40, 2)
    found = score(p, (a, a + 1), (a, (a + 4) % 40), groups, resamples=20)
    assert found.degenerate
    for value in (found.stamp, found.eta2, found.exact_stamp, found.exact_eta2, found.low):
        assert np.isnan(value)
    assert np.isnan(found.draws).all() and len(found.draws) == 20
    assert np.isfinite(found.raw) and np.isfinite(found.within)


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


def test_groups_that_are_told_apart_perfectly_score_one():
    groups = np.repeat(np.arange(4), 10)
    pairs = draw_pairs(np.random.default_rng(0), groups, 50, 50)
    found = score(np.eye(4)[groups], *pairs, groups, unit="image", resamples=200)
    assert (found.stamp, found.exact_stamp, found.low, found.high) == pytest.approx((1, 1, 1, 1))
    assert found.eta2 == pytest.approx(1)
    assert found.saturated and not found.degenerate


def test_outputs_that_ignore_the_group_score_about_zero_and_may_be_negative():
    rng = np.random.default_rng(5)
    groups = np.repeat(np.arange(100), 10)
    values = []
    for _ in range(30):
        p = rng.random((1000, 3))
        values.append(score(p, *draw_pairs(rng, groups, 100, 100), groups, resamples=2).stamp)
    assert abs(np.mean(values)) < 4 * np.std(values) / np.sqrt(30)
    assert min(values) < 0


@settings(max_examples=25, deadline=None)
@given(seeds, st.floats(0.1, 10))
def test_rotation_shift_and_scale_of_the_outputs_change_nothing(seed, scale):
    rng = np.random.default_rng(seed)
    p, groups = grouped(rng)
    pairs = draw_pairs(rng, groups, 20, 20)
    turn = stats.ortho_group.rvs(4, random_state=rng)
    before = score(p, *pairs, groups, resamples=20)
    after = score(scale * p @ turn + rng.normal(size=4), *pairs, groups, resamples=20)
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
    before = score(p, (a, b), (c, d), groups, resamples=50, design=design)
    moved = (place[b[rows]], place[a[rows]]), (place[c], place[d])
    after = score(p[order], *moved, groups[order], resamples=50, design=design)
    for name in ("stamp", "eta2", "exact_stamp", "exact_eta2", "low", "high", "se_analytic"):
        assert getattr(after, name) == pytest.approx(getattr(before, name), rel=1e-9)
    np.testing.assert_allclose(after.draws, before.draws)


def test_independent_draws_need_no_correction_and_other_groups_do():
    rng = np.random.default_rng(8)
    p, groups = grouped(rng)
    pairs = draw_pairs(rng, groups, 30, 30)
    iid = score(p, *pairs, groups, resamples=5, design="iid")
    assert iid.eta2 == iid.stamp and iid.exact_stamp == iid.exact_eta2
    other = score(p, *pairs, groups, resamples=5)
    assert other.groups_effective == pytest.approx(8)
    assert other.eta2 == pytest.approx(other.stamp / (other.stamp + 8 / 7 * (1 - other.stamp)))
    assert other.exact_total > iid.exact_total
    given_two = score(p, *pairs, groups, resamples=5, n_groups_effective=2)
    assert given_two.eta2 < other.eta2


@pytest.mark.parametrize("units", [3, 40, 5000])
def test_each_resample_draws_as_many_units_as_there_are(units):
    blocks = list(subject._resampled_units(units, 30, seed=1))
    weights = np.concatenate([block for _, block in blocks], axis=1)
    assert weights.shape == (units, 30)
    assert [i for c, _ in blocks for i in range(c.start, c.stop)] == list(range(30))
    np.testing.assert_array_equal(weights.sum(axis=0), units)
    # The multinomial variance of a count is 1 - 1/U.
    if units == 5000:
        assert weights.var() == pytest.approx(1 - 1 / units, rel=0.02)


def test_bootstrap_draws_equal_literal_resampling_of_units(monkeypatch):
    monkeypatch.setattr(subject, "_BLOCK", 100)
    rng = np.random.default_rng(4)
    units, resamples = 9, 23
    a, b, c, d = rng.integers(0, units, size=(4, 15))
    b[:6] = a[:6]
    d_s, d_r = rng.random((2, 15))
    found = bootstrap_stamp(d_s, (a, b), d_r, (c, d), units, resamples, seed=11)
    blocks = subject._resampled_units(units, resamples, 11)
    weights = np.concatenate([block for _, block in blocks], axis=1)
    for r in range(resamples):
        drawn = np.repeat(np.arange(units), weights[:, r]).tolist()
        means = []
        for distances, first, second in ((d_s, a, b), (d_r, c, d)):
            bag = []
            for value, u, v in zip(distances, first, second, strict=True):
                copies = drawn.count(u) if u == v else drawn.count(u) * drawn.count(v)
                bag += [value] * copies
            means.append(np.mean(bag))
        assert found.within[r] == pytest.approx(means[0])
        assert found.total[r] == pytest.approx(means[1])
        assert found.stamp[r] == pytest.approx(stamp(*means))


def test_fewer_resamples_are_the_first_of_more_and_seeds_differ():
    rng = np.random.default_rng(6)
    ends = tuple(rng.integers(0, 50, size=(2, 80)))
    d_s, d_r = rng.random((2, 80))
    many = bootstrap_stamp(d_s, ends, d_r, ends, 50, 6000, seed=0).stamp
    np.testing.assert_array_equal(
        bootstrap_stamp(d_s, ends, d_r, ends, 50, 700, seed=0).stamp, many[:700]
    )
    assert (bootstrap_stamp(d_s, ends, d_r, ends, 50, 700, seed=1).stamp != many[:700]).any()


def test_a_resample_without_any_pair_is_unknown_and_the_interval_does_without_it():
    groups = np.array([0, 0, 1, 1])
    p = np.array([[0.0, 0.1], [0.2, 0.0], [1.0, 0.8], [0.7, 1.0]])
    found = score(p, ([0], [1]), ([0, 1], [2, 3]), groups, resamples=200)
    assert np.isnan(found.draws).any()
    assert np.isfinite([found.low, found.high]).all()


def test_the_analytic_error_is_that_of_independent_pairs():
    rng = np.random.default_rng(9)
    values, errors = [], []
    for _ in range(600):
        d_s, d_r = rng.gamma(2, 0.2, 150), rng.gamma(3, 0.4, 120)
        values.append(stamp(d_s.mean(), d_r.mean()))
        errors.append(analytic_se(d_s, d_r))
    assert np.mean(errors) == pytest.approx(np.std(values), rel=0.08)


def test_the_unit_error_sums_influences_over_pairs_that_share_a_unit():
    rng = np.random.default_rng(10)
    a, b = np.array([0, 1, 2, 2, 3]), np.array([0, 4, 5, 2, 1])
    c, d = np.array([0, 6, 3, 7]), np.array([1, 2, 4, 5])
    d_s, d_r = rng.random(5), 1 + rng.random(4)
    within, total = d_s.mean(), d_r.mean()
    influence = [*(-(d_s - within) / 5 / total), *(within * (d_r - total) / 4 / total**2)]
    members = [{u, v} for u, v in zip([*a, *c], [*b, *d], strict=True)]
    variance = sum(
        influence[i] * influence[j] for i in range(9) for j in range(9) if members[i] & members[j]
    )
    assert variance > 0
    assert unit_se(d_s, (a, b), d_r, (c, d), 8) == pytest.approx(np.sqrt(variance))


def test_without_shared_units_the_unit_error_is_the_analytic_one():
    rng = np.random.default_rng(12)
    d_s, d_r = rng.random(300), 1 + rng.random(200)
    units = np.arange(1000)
    found = unit_se(d_s, (units[:300], units[300:600]), d_r, (units[600:800], units[800:]), 1000)
    assert found == pytest.approx(analytic_se(d_s, d_r), rel=0.01)


def repeated_class_scores(contract, repeats=150):
    """Scores of fresh images of fixed classes, random pairs reusing the images of the others."""
    centres = np.random.default_rng(0).normal(scale=1.5, size=(40, 1, 6))
    for repeat in range(repeats):
        rng = np.random.default_rng([13, repeat])
        p = probabilities((centres + rng.normal(size=(40, 12, 6))).reshape(-1, 6), "multiclass")
        groups = np.repeat(np.arange(40), 12)
        (a, b), _ = draw_pairs(rng, groups, 250, 1)
        ends = np.concatenate([a, b])
        c, d = rng.choice(ends, size=(2, 600))
        other = np.flatnonzero(groups[c] != groups[d])[:250]
        random = c[other], d[other]
        yield score(p, (a, b), random, groups, "image", 300, seed=repeat, contract=contract)


def test_intervals_cover_as_often_as_they_say_and_plain_bootstrap_ones_too_often():
    shares, widths = {}, {}
    for contract in (True, False):
        found = list(repeated_class_scores(contract))
        truth = np.mean([s.stamp for s in found])
        shares[contract] = np.mean([s.low <= truth <= s.high for s in found])
        widths[contract] = np.mean([s.high - s.low for s in found])
        spread = np.std([s.stamp for s in found])
    assert 0.9 <= shares[True] <= 0.99
    assert shares[False] >= shares[True]
    assert widths[False] > 1.2 * widths[True]
    assert np.mean([s.se_units for s in found]) == pytest.approx(spread, rel=0.2)
    assert np.mean([s.se_bootstrap for s in found]) > 1.2 * spread


def test_few_units_keep_the_wider_interval():
    rng = np.random.default_rng(14)
    p, groups = grouped(rng, groups=12)
    pairs = draw_pairs(rng, groups, 40, 40)
    plain = score(p, *pairs, groups, resamples=100, contract=False)
    assert score(p, *pairs, groups, resamples=100).contraction == 1
    np.testing.assert_array_equal(score(p, *pairs, groups, resamples=100).draws, plain.draws)


def test_programming_mistakes_raise():
    p, groups = np.random.default_rng(0).random((4, 2)), np.array([0, 0, 1, 1])
    pairs = ([0], [1]), ([0], [2])
    with pytest.raises(ValueError, match="not finite"):
        score(np.full((4, 2), np.nan), *pairs, groups)
    with pytest.raises(ValueError, match="at least one"):
        score(p, ([], []), pairs[1], groups)
    for wrong in ({"unit": "patient"}, {"design": "other"}):
        with pytest.raises(ValueError, match="not '"):
            score(p, *pairs, groups, **wrong)
