"""Power of the rank-correlation test: against scipy on the same design, sizes, enumeration."""

import itertools

import numpy as np
import pytest
from scipy import stats

from stamp.stats.power import critical_value, pearson_of, spearman_power


def test_the_gaussian_draws_have_the_rank_correlation_asked_for():
    r = float(pearson_of(0.7))
    x, y = np.random.default_rng(0).multivariate_normal([0, 0], [[1, r], [r, 1]], 200_000).T
    assert stats.spearmanr(x, y).statistic == pytest.approx(0.7, abs=0.005)


def test_power_is_the_share_of_samples_that_scipy_rejects():
    rng = np.random.default_rng(5)
    r = float(pearson_of(0.5))
    samples = rng.multivariate_normal([0, 0], [[1, r], [r, 1]], (2000, 27))
    reference = np.mean([stats.spearmanr(sample).pvalue <= 0.05 for sample in samples])
    found = spearman_power(27, 0.5, draws=10_000, seed=1)
    assert found.power == pytest.approx(reference, abs=5 * np.sqrt(0.25 / 2000))
    assert found.standard_error == pytest.approx(
        np.sqrt(found.power * (1 - found.power) / 10_000), abs=1e-12
    )


@pytest.mark.parametrize("test", ["t", "permutation"])
def test_without_a_correlation_power_is_the_size_of_the_test(test):
    found = spearman_power(27, 0.0, draws=20_000, test=test)
    assert found.power == pytest.approx(0.05, abs=0.008)


@pytest.mark.parametrize("test", ["t", "permutation"])
def test_power_grows_with_the_correlation_and_with_the_models(test):
    small, large = (spearman_power(n, [0.3, 0.5, 0.7], 2000, test=test).power for n in (15, 40))
    assert (np.diff(small) > 0).all()
    assert (large > small).all()
    assert spearman_power(15, -0.5, 2000).power == pytest.approx(small[1], abs=0.04)


@pytest.mark.parametrize("n", [5, 6, 7])
def test_the_critical_value_is_that_of_all_orders(n):
    ranks = np.arange(n)
    found = [stats.pearsonr(ranks, order)[0] for order in itertools.permutations(ranks)]
    found = np.round(np.abs(found), 10)
    expected = min(value for value in found if (found >= value).mean() <= 0.05)
    assert critical_value(n) == pytest.approx(expected)


def test_four_models_can_reject_nothing():
    assert critical_value(4) == float("inf")
    assert spearman_power(4, 0.99, 500, test="permutation").power == 0


def test_the_same_seed_gives_the_same_power_and_another_one_another():
    first, again, other = (spearman_power(20, [0.4, 0.6], 1000, seed=s).power for s in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()


def test_what_is_no_test_or_no_sample_is_refused():
    with pytest.raises(ValueError, match="unknown test 'exact'"):
        spearman_power(20, 0.5, test="exact")
    with pytest.raises(ValueError, match="too few"):
        spearman_power(3, 0.5)
