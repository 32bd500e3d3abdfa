"""Intervals of STAMP: the bootstrap against literal resampling, coverage by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from grouped_outputs import draw_pairs, grouped, scored

from stamp.scoring import bootstrap as subject
from stamp.scoring.bootstrap import PairDistances, analytic_se, bootstrap_stamp, unit_se
from stamp.scoring.stamp import probabilities, stamp


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
    found = bootstrap_stamp(
        PairDistances(d_s, a, b), PairDistances(d_r, c, d), units, resamples, seed=11
    )
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
    semantic, random = PairDistances(d_s, *ends), PairDistances(d_r, *ends)
    many = bootstrap_stamp(semantic, random, 50, 6000, seed=0).stamp
    few = bootstrap_stamp(semantic, random, 50, 700, seed=0).stamp
    np.testing.assert_array_equal(few, many[:700])
    assert (bootstrap_stamp(semantic, random, 50, 700, seed=1).stamp != few).any()


def test_a_resample_without_any_pair_is_unknown_and_the_interval_does_without_it():
    groups = np.array([0, 0, 1, 1])
    p = np.array([[0.0, 0.1], [0.2, 0.0], [1.0, 0.8], [0.7, 1.0]])
    found = scored(p, ([0], [1]), ([0, 1], [2, 3]), groups, resamples=200)
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
    found = unit_se(PairDistances(d_s, a, b), PairDistances(d_r, c, d), 8)
    assert found == pytest.approx(np.sqrt(variance))


def test_without_shared_units_the_unit_error_is_the_analytic_one():
    rng = np.random.default_rng(12)
    d_s, d_r = rng.random(300), 1 + rng.random(200)
    units = np.arange(1000)
    semantic = PairDistances(d_s, units[:300], units[300:600])
    random = PairDistances(d_r, units[600:800], units[800:])
    found = unit_se(semantic, random, 1000)
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
        yield scored(
            p, (a, b), random, groups, unit="image", resamples=300, seed=repeat, contract=contract
        )


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
    plain = scored(p, *pairs, groups, resamples=100, contract=False)
    assert scored(p, *pairs, groups, resamples=100).contraction == 1
    np.testing.assert_array_equal(scored(p, *pairs, groups, resamples=100).draws, plain.draws)
