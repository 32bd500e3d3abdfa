"""Tests between groups of models against scipy, brute force and the paper's printed scores."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from stamp.stats.group_tests import (
    LARGEST,
    kruskal_permutation_p,
    mann_whitney,
    mann_whitney_log10_p,
)

VALUES = st.lists(st.integers(0, 6), min_size=1, max_size=6)


@pytest.mark.parametrize("sizes", [(31, 5), (5, 31), (3, 4), (1, 1), (22, 22), (18, 10)])
def test_mann_whitney_without_ties_is_scipys_exact_test_on_every_side(
    sizes: tuple[int, int],
) -> None:
    rng = np.random.default_rng(sizes[0])
    for shift in (0.0, 0.7, -3.0):
        x, y = rng.normal(shift, 1, sizes[0]), rng.normal(0, 1, sizes[1])
        found = mann_whitney(x, y)
        for side, p in (
            ("two-sided", found.p_two_sided),
            ("greater", found.p_greater),
            ("less", found.p_less),
        ):
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
    assert found.p_less == pytest.approx(less)
    assert found.p_two_sided == pytest.approx(min(1, 2 * min(greater, less)))


@pytest.mark.parametrize("decimals", [1, 8])
def test_large_groups_take_the_normal_approximation_with_its_corrections(decimals: int) -> None:
    rng = np.random.default_rng(3)
    x, y = rng.normal(0.3, 1, 60).round(decimals), rng.normal(0, 1, 55).round(decimals)
    assert len(x) * len(y) > LARGEST
    found = mann_whitney(x, y)
    for side, p in (
        ("two-sided", found.p_two_sided),
        ("greater", found.p_greater),
        ("less", found.p_less),
    ):
        known = stats.mannwhitneyu(x, y, alternative=side, method="asymptotic")
        assert p == pytest.approx(known.pvalue, rel=1e-9)
    assert found.method == "asymptotic"


def test_a_constant_gives_no_evidence() -> None:
    assert mann_whitney(np.ones(3), np.ones(4)).p_two_sided == 1
    assert math.isnan(kruskal_permutation_p([np.ones(4), np.ones(3)], 50))


@pytest.mark.parametrize("decimals", [1, 9])
def test_the_permutation_p_of_large_groups_nears_that_of_chi_squared(decimals: int) -> None:
    rng = np.random.default_rng(decimals)
    groups = [rng.normal(0.2 * i, 1, n).round(decimals) for i, n in enumerate((31, 15, 13, 14))]
    found, known = kruskal_permutation_p(groups, 4000, seed=1), stats.kruskal(*groups).pvalue
    assert found == pytest.approx(known, abs=0.03)
    assert found == kruskal_permutation_p(groups, 4000, seed=1)
    apart = [np.arange(10) + 20 * i for i in range(3)]
    assert kruskal_permutation_p(apart, 999) == 1 / 1000


def test_the_permutation_p_of_small_groups_nears_the_share_of_all_orders() -> None:
    groups = [[1.0, 2.0, 2.0], [2.0, 5.0], [4.0, 6.0]]
    both = np.concatenate(groups)
    observed = stats.kruskal(*groups).statistic
    every = [
        stats.kruskal(order[:3], order[3:5], order[5:]).statistic
        for order in (both[list(p)] for p in itertools.permutations(range(7)))
    ]
    share = np.mean(np.array(every) >= observed - 1e-9)
    found = kruskal_permutation_p(groups, 20_000, seed=2)
    assert found == pytest.approx(share, abs=4 * math.sqrt(share * (1 - share) / 20_000))


@pytest.mark.parametrize(("shift", "decimals"), [(0.0, 1), (0.2, 8), (1.5, 1), (3.0, 8)])
def test_log_p_of_large_groups_is_scipys_as_far_as_that_has_a_number(
    shift: float, decimals: int
) -> None:
    rng = np.random.default_rng(4)
    x, y = rng.normal(shift, 1, 300).round(decimals), rng.normal(0, 1, 200).round(decimals)
    known = stats.mannwhitneyu(x, y, method="asymptotic").pvalue
    assert mann_whitney_log10_p(x, y) == pytest.approx(math.log10(known), rel=1e-9)
    assert mann_whitney_log10_p(y, x) == pytest.approx(mann_whitney_log10_p(x, y))


def test_log_p_goes_on_where_p_is_no_number_any_more_and_is_nothing_for_equal_values() -> None:
    x, y = np.arange(5_000) + 5_000.0, np.arange(5_000.0)
    assert stats.mannwhitneyu(x, y, method="asymptotic").pvalue == 0
    z = (12_500_000 - 0.5) / math.sqrt(5_000**2 * 10_001 / 12)
    tail = -(z**2) / 2 - math.log(z * math.sqrt(2 * math.pi)) + math.log(2)  # Mills' ratio
    assert mann_whitney_log10_p(x, y) == pytest.approx(tail / math.log(10), rel=1e-6)
    assert mann_whitney_log10_p(np.ones(9), np.ones(7)) == 0
