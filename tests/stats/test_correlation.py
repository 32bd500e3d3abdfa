import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from related_values import related
from scipy import stats

from stamp.stats import permutations
from stamp.stats.correlations import correlation
from stamp.stats.correlations.correlation import (
    asymptotic_p,
    bonett_wright_interval,
    fisher_interval,
    leave_one_out,
    metric_difference,
    paired_bootstrap,
    percentile_interval,
    permutation_p,
    quantiles,
)
from stamp.stats.correlations.partial_correlation import partial_spearman

seeds = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("levels", [3, 1000])
@pytest.mark.parametrize("n", [4, 5, 6])
def test_small_samples_get_the_exact_p_of_scipy(n, levels):
    rng = np.random.default_rng([n, levels])
    x, y = rng.integers(0, levels, size=(2, n)) + np.eye(1, n)
    reference = stats.permutation_test(
        (x,), lambda row: abs(stats.spearmanr(row, y).statistic), permutation_type="pairings",
        n_resamples=np.inf, alternative="greater",
    )  # fmt: skip
    result = permutation_p(x, y, permutations=10_000)
    assert result.method == "exact"
    assert result.permutations == math.factorial(n)
    assert result.p == pytest.approx(reference.pvalue)


@given(seeds)
@settings(max_examples=25, deadline=None)
def test_exact_p_equals_counting_all_orders_with_exact_arithmetic(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 4, size=(2, 5))
    a, b = [[round(2 * rank) - 6 for rank in stats.rankdata(row)] for row in (x, y)]
    sums = [abs(sum(i * j for i, j in zip(order, b, strict=True)))
            for order in itertools.permutations(a)]  # fmt: skip
    result = permutation_p(x, y, permutations=120)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert np.isnan(result.p)
    else:
        assert result.p == sum(value >= sums[0] for value in sums) / 120


def test_the_perfect_order_of_six_models_has_p_two_in_720():
    result = permutation_p(np.arange(6), np.arange(6) ** 3)
    assert (result.method, float(result.p)) == ("exact", 2 / 720)


def test_monte_carlo_p_never_falls_below_its_floor():
    x = np.arange(44.0)
    result = permutation_p(x, x, permutations=999)
    assert (result.method, float(result.p)) == ("monte-carlo", 1 / 1000)


@pytest.mark.parametrize("distinct", [3, 44])
def test_monte_carlo_p_agrees_with_that_of_scipy(distinct):
    x, y = related(3, n=44, strength=0.25)
    x = np.floor(stats.rankdata(x) / 45 * distinct)
    ranks = stats.rankdata(x), stats.rankdata(y) - 22.5
    reference = stats.permutation_test(
        (ranks[0],), lambda row, axis: np.abs(row @ ranks[1]), permutation_type="pairings",
        n_resamples=40_000, alternative="greater", rng=np.random.default_rng(0),
    )  # fmt: skip
    result = permutation_p(x, y, permutations=40_000, seed=1)
    assert result.method == "monte-carlo"
    assert 0.01 < result.p < 0.9
    assert float(result.p) == pytest.approx(reference.pvalue, abs=0.012)


def test_sampled_and_enumerated_p_of_the_same_data_agree():
    x, y = related(8, n=7, strength=0.5)
    exact = permutation_p(x, y, permutations=5040)
    sampled = permutation_p(x, y, permutations=5039)
    assert (exact.method, sampled.method) == ("exact", "monte-carlo")
    assert float(sampled.p) == pytest.approx(float(exact.p), abs=0.03)


def test_many_models_use_wider_words_and_stay_uniform():
    x, y = related(5, n=700, strength=0.04)
    result = permutation_p(x, y, permutations=4000)
    assert float(result.p) == pytest.approx(float(asymptotic_p(result.rho, 700)), abs=0.03)


def test_every_order_of_four_codes_is_drawn_equally_often():
    blocks = permutations.shuffles(np.array([0, 1, 2, 9]), 23, seed=0)
    assert sum(len(block) for block in blocks) == 23
    seen: dict = {}
    for seed in range(1200):
        for block in permutations.shuffles(np.array([0, 1, 2, 9]), 20, seed=seed):
            for row in block.tolist():
                seen[tuple(row)] = seen.get(tuple(row), 0) + 1
    assert set(seen) == set(itertools.permutations([0, 1, 2, 9]))
    assert stats.chisquare(list(seen.values())).pvalue > 1e-3


def test_targets_tested_together_get_the_p_they_get_alone():
    x, *ys = related(6, n=20, rows=4)
    together = permutation_p(x, np.column_stack(ys), permutations=2000, seed=4)
    assert together.p.shape == (3,)
    for column, y in enumerate(ys):
        alone = permutation_p(x, y, permutations=2000, seed=4)
        assert together.p[column] == alone.p
        assert together.rho[column] == alone.rho


def test_p_depends_on_the_seed_but_not_on_how_the_work_is_cut(monkeypatch):
    x, y, z = related(7, n=21, strength=0.3, rows=3)

    def everything(seed):
        p = permutation_p(x, y, 3000, seed).p, partial_spearman(x, y, z, 3000, seed).p_permutation
        return [*p, *paired_bootstrap(x, y, 3000, seed).draws.ravel()]

    whole = everything(1)
    assert everything(1) == whole
    assert everything(2) != whole
    for module in (correlation, permutations):
        monkeypatch.setattr(module, "CHUNK", 1 << 20)
    assert everything(1) == whole


def test_a_constant_target_has_no_p_and_leaves_the_others_theirs():
    x, y = related(9, n=12)
    result = permutation_p(x, np.column_stack([np.ones(12), y]), permutations=500)
    assert np.isnan(result.p[0])
    assert result.p[1] == permutation_p(x, y, permutations=500).p
    assert np.isnan(permutation_p(np.ones(12), y, permutations=500).p)


def test_p_is_uniform_under_the_null_so_that_five_percent_are_below_five_percent():
    rng = np.random.default_rng(10)
    x, ys = rng.normal(size=15), rng.normal(size=(15, 2000))
    share = (permutation_p(x, ys, permutations=1999).p <= 0.05).mean()
    assert share == pytest.approx(0.05, abs=3 * math.sqrt(0.05 * 0.95 / 2000))


def test_asking_for_no_permutations_is_refused():
    with pytest.raises(ValueError, match="at least 1"):
        permutation_p(np.arange(9), np.arange(9), permutations=0)


@given(seeds, st.integers(4, 60))
@settings(max_examples=50, deadline=None)
def test_asymptotic_p_is_that_of_scipy(seed, n):
    reference = stats.spearmanr(*related(seed, n=n))
    assert float(asymptotic_p(reference.statistic, n)) == pytest.approx(
        reference.pvalue, rel=1e-6, abs=1e-300
    )


def test_asymptotic_p_loses_a_degree_of_freedom_for_each_control():
    t = 0.5 * math.sqrt(17 / 0.75)
    assert float(asymptotic_p(0.5, 22, controls=3)) == pytest.approx(2 * stats.t.sf(t, 17))
    assert np.isnan(asymptotic_p(0.5, 5, controls=3))


def test_intervals_of_published_correlations_are_reproduced():
    fisher = fisher_interval(0.855, 44)
    assert (round(float(fisher.low), 3), round(float(fisher.high), 3)) == (0.748, 0.919)
    assert float(asymptotic_p(0.855, 44)) == pytest.approx(1.5e-13, rel=0.05)


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_fisher_interval_is_that_of_scipys_pearson_correlation(level):
    x, y = stats.rankdata(related(11), axis=1)
    reference = stats.pearsonr(x, y)
    interval = fisher_interval(reference.statistic, x.size, level)
    expected = reference.confidence_interval(level)
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high))


def test_bonett_wright_is_wider_than_fisher_by_the_factor_on_the_z_scale():
    rho = np.array([-0.9, 0.0, 0.3, 0.8])
    fisher, wide = fisher_interval(rho, 25), bonett_wright_interval(rho, 25)
    factor = (np.arctanh(wide.high) - np.arctanh(rho)) / (np.arctanh(fisher.high) - np.arctanh(rho))
    np.testing.assert_allclose(factor, np.sqrt(1 + rho**2 / 2))
    np.testing.assert_allclose(
        np.arctanh(wide.high) + np.arctanh(wide.low), 2 * np.arctanh(rho), atol=1e-12
    )


@pytest.mark.parametrize("method", [fisher_interval, bonett_wright_interval])
def test_intervals_are_nan_without_data_and_a_point_at_perfect_correlation(method):
    assert np.isnan([method(0.5, 3).low, method(0.5, 3).high]).all()
    assert np.isnan(method(np.nan, 10).low)
    for rho in (-1.0, 1.0):
        assert (method(rho, 10).low, method(rho, 10).high) == (rho, rho)
    with pytest.raises(ValueError, match="level"):
        method(0.5, 10, level=95)


def test_bonett_wright_covers_where_fisher_is_too_short():
    rng = np.random.default_rng(12)
    r = 0.9
    truth = 6 / math.pi * math.asin(r / 2)
    x = rng.normal(size=(4000, 30))
    y = r * x + math.sqrt(1 - r * r) * rng.normal(size=x.shape)
    rho = correlation.spearman(x, y)

    def coverage(interval):
        return ((interval.low <= truth) & (truth <= interval.high)).mean()

    assert coverage(bonett_wright_interval(rho, 30)) == pytest.approx(0.95, abs=0.015)
    assert coverage(fisher_interval(rho, 30)) < 0.93


def test_bootstrap_draws_equal_a_loop_over_scipy_with_the_same_models():
    x, y = related(13, n=15, rows=3)[:2], related(14, n=15, rows=3)
    y[2] = np.round(y[2])
    result = paired_bootstrap(x, y, resamples=40, seed=5)
    assert result.draws.shape == (40, 2, 3)
    chosen = np.random.default_rng([5, correlation.RESAMPLE]).integers(15, size=(40, 15))
    for r, i, j in np.ndindex(result.draws.shape):
        expected = stats.spearmanr(x[i, chosen[r]], y[j, chosen[r]]).statistic
        assert result.draws[r, i, j] == pytest.approx(expected, abs=1e-12)
    for i, j in np.ndindex(result.rho.shape):
        assert result.rho[i, j] == pytest.approx(stats.spearmanr(x[i], y[j]).statistic)


def test_resamples_that_leave_a_side_constant_are_nan_and_counted():
    x = np.array([0.0, 0, 0, 0, 1])
    result = paired_bootstrap(x, np.arange(5), resamples=5000, seed=0)
    lost = np.isnan(result.draws).mean()
    assert lost == pytest.approx(0.8**5 + 0.2**5, abs=0.03)
    assert result.valid[0, 0] == 5000 - np.isnan(result.draws).sum()


def test_bootstrap_spread_is_that_of_the_asymptotic_theory():
    x, y = related(15, n=400)
    result = paired_bootstrap(x, y, resamples=1500)
    rho = float(result.rho[0, 0])
    wide = bonett_wright_interval(rho, 400)
    boot = percentile_interval(result.draws[:, 0, 0])
    assert (boot.low, boot.high) == pytest.approx((wide.low, wide.high), abs=0.02)


@given(seeds, st.integers(0, 30))
@settings(max_examples=50, deadline=None)
def test_quantiles_leave_nan_out_as_numpy_does(seed, holes):
    rng = np.random.default_rng(seed)
    draws = rng.normal(size=(30, 3))
    draws[rng.permutation(30)[: min(holes, 29)], 1] = np.nan
    np.testing.assert_allclose(
        quantiles(draws, (0.025, 0.5, 0.9)), np.nanquantile(draws, (0.025, 0.5, 0.9), axis=0)
    )


def test_an_interval_of_no_valid_draw_is_nan():
    interval = percentile_interval(np.full((10, 2), np.nan))
    assert np.isnan([interval.low, interval.high]).all()


def test_difference_of_metrics_comes_from_the_shared_draws():
    rng = np.random.default_rng(16)
    y = rng.normal(size=40)
    good, poor = y + 0.3 * rng.normal(size=40), y + 3 * rng.normal(size=40)
    bootstrap = paired_bootstrap([good, poor], [y, -y], resamples=2000)
    found = metric_difference(bootstrap, 0, 1)
    gaps = bootstrap.draws[:, 0] - bootstrap.draws[:, 1]
    np.testing.assert_allclose([found.low, found.high], np.quantile(gaps, [0.025, 0.975], axis=0))
    assert found.difference[0] == pytest.approx(
        stats.spearmanr(good, y).statistic - stats.spearmanr(poor, y).statistic
    )
    assert found.low[0] > 0 > found.high[1]
    assert found.p == pytest.approx([2 / 2001, 2 / 2001])
    turned = metric_difference(bootstrap, 1, 0)
    np.testing.assert_allclose(turned.low, -found.high)
    np.testing.assert_array_equal(turned.p, found.p)


def test_a_metric_does_not_differ_from_itself():
    x, y = related(17)
    bootstrap = paired_bootstrap([x, x], y, resamples=200)
    same = metric_difference(bootstrap, 0, 1)
    assert (same.difference[0], same.low[0], same.high[0], same.p[0]) == (0, 0, 0, 1)


@given(seeds)
@settings(max_examples=25, deadline=None)
def test_leaving_one_out_equals_deleting_each_model(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 8, size=(2, 10)) + 100 * np.eye(2, 10)[:, ::-1]
    result = leave_one_out(x, y)
    expected = [correlation.spearman(np.delete(x, i), np.delete(y, i)) for i in range(10)]
    np.testing.assert_allclose(result.rho, expected, atol=1e-12)
    assert (result.low, result.high) == (np.nanmin(result.rho), np.nanmax(result.rho))


def test_leaving_the_only_different_model_out_is_nan_and_not_in_the_range():
    result = leave_one_out([0.0, 0, 0, 1], [0.0, 1, 2, 3])
    assert np.isnan(result.rho[3])
    assert np.isfinite([result.low, result.high]).all()
    assert leave_one_out([1.0, 2.0], [1.0, 2.0]).most_influential is None
