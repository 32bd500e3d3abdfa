"""Effects between groups: loops, scipy, coverage."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from stamp.stats.effect_sizes import cliffs_delta, kruskal_wallis, mann_whitney, mean_difference

seeds = st.integers(0, 2**32 - 1)


@given(seeds)
@settings(max_examples=30, deadline=None)
def test_delta_counts_the_pairs_on_each_side_and_is_that_of_u(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 6, size=7), rng.integers(1, 8, size=5)
    found = cliffs_delta(a, b, resamples=50)
    counted = sum((x > y) - (x < y) for x in a.tolist() for y in b.tolist()) / 35
    assert found.value == pytest.approx(counted)
    u = stats.mannwhitneyu(a, b).statistic
    assert found.value == pytest.approx(2 * u / 35 - 1)
    assert found.low <= found.high
    assert found.sizes == (7, 5)


def test_groups_that_do_not_overlap_have_delta_one_and_a_point_for_an_interval():
    found = cliffs_delta([5, 6, 7], [1, 2])
    assert (found.value, found.low, found.high) == (1, 1, 1)
    assert cliffs_delta([1, 2], [5, 6, 7]).value == -1


@pytest.mark.parametrize(
    ("effect", "statistic"),
    [
        (cliffs_delta, lambda a, b: np.sign(a[:, None] - b).mean()),
        (mean_difference, lambda a, b: a.mean() - b.mean()),
    ],
)
def test_the_interval_is_that_of_literal_resampling(effect, statistic):
    rng = np.random.default_rng(3)
    a, b = rng.normal(0.7, size=20), rng.normal(size=14)
    draws = [statistic(rng.choice(a, 20), rng.choice(b, 14)) for _ in range(8000)]
    found = effect(a, b, resamples=8000)
    assert (found.low, found.high) == pytest.approx(
        np.quantile(draws, [0.025, 0.975]), abs=0.06
    )  # four errors
    assert found.value == pytest.approx(statistic(a, b))


def test_the_same_seed_gives_the_same_interval():
    a, b = np.random.default_rng(1).normal(size=(2, 12))
    assert cliffs_delta(a, b, 500, seed=4) == cliffs_delta(a, b, 500, seed=4)
    assert cliffs_delta(a, b, 500, seed=4) != cliffs_delta(a, b, 500, seed=5)


def test_untied_small_groups_get_the_exact_p_of_each_side():
    found = mann_whitney([4, 5, 6, 7], [1, 2, 3])
    assert found.method == "exact"
    assert found.u == 12
    # one of the 35 ways to choose four of seven ranks
    assert (found.p_greater, found.p_two_sided, found.p_less) == pytest.approx((1 / 35, 2 / 35, 1))


def test_tied_groups_get_the_approximation_and_say_so():
    a, b = [1, 2, 2, 3, 9], [2, 4, 5, 8]
    found = mann_whitney(a, b)
    assert found.method == "asymptotic"
    assert found.p_two_sided == pytest.approx(stats.mannwhitneyu(a, b, method="asymptotic").pvalue)


def test_kruskal_wallis_is_the_rank_formula():
    groups = [[1, 5, 7], [2, 3, 10, 11], [4, 6]]
    ranks = stats.rankdata(np.concatenate(groups))
    parts = np.split(ranks, [3, 7])
    h = 12 / (9 * 10) * sum(part.sum() ** 2 / part.size for part in parts) - 3 * 10
    found = kruskal_wallis(groups)
    assert (found.h, found.df) == (pytest.approx(h), 2)
    assert found.p == pytest.approx(stats.chi2.sf(h, 2))


def test_empty_groups_and_nan_are_refused():
    with pytest.raises(ValueError, match="groups of 0 and 2"):
        cliffs_delta([], [1, 2])
    with pytest.raises(ValueError, match="NaN"):
        mann_whitney([1, float("nan")], [2])
