"""Tests between groups of models against scipy, brute force and the paper's printed scores."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from stamp.groups import LARGEST, kruskal_wallis, mann_whitney, mean_differences

VALUES = st.lists(st.integers(0, 6), min_size=1, max_size=6)


@pytest.mark.parametrize("sizes", [(31, 5), (5, 31), (3, 4), (1, 1), (22, 22), (18, 10)])
def test_mann_whitney_without_ties_is_scipys_exact_test_on_every_side(
    sizes: tuple[int, int],
) -> None:
    rng = np.random.default_rng(sizes[0])
    for shift in (0.0, 0.7, -3.0):
        x, y = rng.normal(shift, 1, sizes[0]), rng.normal(0, 1, sizes[1])
        found = mann_whitney(x, y)
        for side, p in (("two-sided", found.p), ("greater", found.p_greater)):
            known = stats.mannwhitneyu(x, y, alternative=side, method="exact")
            assert (found.u, found.method) == (known.statistic, "exact")
            assert p == pytest.approx(known.pvalue, rel=1e-10)


@settings(max_examples=60, deadline=None)
@given(VALUES, VALUES)
def test_mann_whitney_with_ties_is_the_share_of_all_ways_to_choose_the_first_group(
    x: list[int], y: list[int]
) -> None:
    both, found = np.array(x + y, dtype=float), mann_whitney(x, y)
    wins = sum((a > b) + (a == b) / 2 for a in x for b in y)
    assert found.u == wins
    every = []
    for chosen in itertools.combinations(range(len(both)), len(x)):
        first, rest = both[list(chosen)], np.delete(both, chosen)
        every.append(((first[:, None] > rest) + (first[:, None] == rest) / 2).sum())
    greater, less = np.mean(np.array(every) >= wins), np.mean(np.array(every) <= wins)
    assert found.p_greater == pytest.approx(greater)
    assert found.p == pytest.approx(min(1, 2 * min(greater, less)))


@pytest.mark.parametrize("decimals", [1, 8])
def test_large_groups_take_the_normal_approximation_with_its_corrections(decimals: int) -> None:
    rng = np.random.default_rng(3)
    x, y = rng.normal(0.3, 1, 60).round(decimals), rng.normal(0, 1, 50).round(decimals)
    assert len(x) * len(y) > LARGEST
    found = mann_whitney(x, y)
    for side, p in (("two-sided", found.p), ("greater", found.p_greater)):
        known = stats.mannwhitneyu(x, y, alternative=side, method="asymptotic")
        assert p == pytest.approx(known.pvalue, rel=1e-9)
    assert found.method == "normal"


def test_a_constant_gives_no_evidence_at_any_size() -> None:
    for n in (3, 80):
        assert mann_whitney(np.ones(n), np.ones(n)).p == 1
    found = kruskal_wallis([np.ones(4), np.ones(3)], 50)
    assert math.isnan(found.h) and math.isnan(found.p_permutation)


@pytest.mark.parametrize("decimals", [1, 9])
def test_kruskal_wallis_is_scipys_with_and_without_ties(decimals: int) -> None:
    rng = np.random.default_rng(decimals)
    groups = [rng.normal(0.2 * i, 1, n).round(decimals) for i, n in enumerate((31, 5, 3, 4))]
    found, known = kruskal_wallis(groups, 2000, seed=1), stats.kruskal(*groups)
    assert found.h == pytest.approx(known.statistic)
    assert (found.p_asymptotic, found.df) == (pytest.approx(known.pvalue), 3)
    assert found.p_permutation == pytest.approx(known.pvalue, abs=0.05)
    assert found == kruskal_wallis(groups, 2000, seed=1)


def test_the_permutation_p_of_small_groups_nears_the_share_of_all_orders() -> None:
    groups = [[1.0, 2.0, 2.0], [2.0, 5.0], [4.0, 6.0]]
    both = np.concatenate(groups)
    observed = stats.kruskal(*groups).statistic
    every = [
        stats.kruskal(order[:3], order[3:5], order[5:]).statistic
        for order in (both[list(p)] for p in itertools.permutations(range(7)))
    ]
    share = np.mean(np.array(every) >= observed - 1e-9)
    found = kruskal_wallis(groups, 20_000, seed=2).p_permutation
    assert found == pytest.approx(share, abs=4 * math.sqrt(share * (1 - share) / 20_000))


def test_differences_of_means_have_the_interval_of_groups_resampled_apart() -> None:
    rng = np.random.default_rng(0)
    groups = [rng.normal(i, 1 + i, 40) for i in range(3)]
    found = mean_differences(groups, 4000, 0.9, seed=5)
    assert list(found) == [(0, 1), (0, 2), (1, 2)]
    for (i, j), one in found.items():
        assert one.difference == pytest.approx(groups[i].mean() - groups[j].mean())
        # the bootstrap of a mean is normal around it with the variance (1 / n) sum (x - mean)^2 / n
        se = math.sqrt(sum(groups[k].var() / 40 for k in (i, j)))
        reach = stats.norm.ppf(0.95) * se
        ends = [one.difference - reach, one.difference + reach]
        assert [one.low, one.high] == pytest.approx(ends, abs=0.12 * se)
    assert mean_differences(groups[:1], 10, 0.9) == {}


def test_groups_of_one_have_an_interval_of_one_point() -> None:
    found = mean_differences([[1.0], [0.25]], 20, 0.95)[0, 1]
    assert (found.difference, found.low, found.high) == (0.75, 0.75, 0.75)
