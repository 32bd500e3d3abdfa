"""Comparisons of two dependent correlations: published examples, coverage, bounds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stamp.stats.correlations.correlation import bonett_wright_interval, fisher_interval
from stamp.stats.correlations.dependent_correlations import (
    difference_interval,
    possible,
    shared_range,
    steiger,
    tost,
    williams,
)

correlations = st.floats(-0.99, 0.99)


def test_williams_gives_the_published_example():
    """Silver, Hittner and May 2006, Applied Psychological Measurement 30:152-153."""
    found = williams(0.3, 0.4, 0.5, 100)
    assert round(found.statistic, 4) == -1.0767
    assert round(found.p, 4) == 0.2843
    assert found.df == 97


def test_steiger_gives_the_published_examples():
    """Silver, Hittner and May 2006, and case A of Steiger 1980 without its rounding."""
    found = steiger(0.3, 0.4, 0.5, 100)
    assert (round(found.statistic, 4), round(found.p, 4)) == (-1.0718, 0.2838)
    assert round(steiger(0.4, 0.5, 0.1, 103).statistic, 7) == -0.8887185


def test_the_interval_is_that_of_the_published_example():
    """Zou 2007, Psychological Methods 12:399-413: overlapping correlations of 66 people."""
    found = difference_interval(0.396, 0.179, 0.088, 66)
    assert (round(found.low, 3), round(found.high, 3)) == (-0.093, 0.517)
    assert found.difference == pytest.approx(0.217)


@pytest.fixture(scope="module")
def normal():
    """r1, r2, r12 of 4,000 samples of 40 with true correlations .6, .6, .5."""
    truth = np.array([[1, 0.6, 0.6], [0.6, 1, 0.5], [0.6, 0.5, 1]])
    draws = np.random.default_rng(1).standard_normal((4000, 40, 3)) @ np.linalg.cholesky(truth).T
    draws -= draws.mean(axis=1, keepdims=True)
    draws /= np.sqrt(np.square(draws).sum(axis=1, keepdims=True))
    found = np.einsum("rni,rnj->rij", draws, draws)
    return found[:, 0, 1], found[:, 0, 2], found[:, 1, 2]


@pytest.mark.parametrize("test", [williams, steiger])
def test_equal_correlations_are_told_apart_in_one_of_twenty_samples(normal, test):
    p = np.array([test(*three, 40).p for three in zip(*normal, strict=True)])
    assert (p < 0.05).mean() == pytest.approx(0.05, abs=0.014)


def test_the_interval_holds_the_true_difference_in_nineteen_of_twenty_samples(normal):
    found = [difference_interval(*three, 40) for three in zip(*normal, strict=True)]
    held = np.mean([each.low <= 0 <= each.high for each in found])
    assert held == pytest.approx(0.95, abs=0.014)


@given(correlations, correlations, st.floats(0, 1))
def test_swapping_the_scores_turns_the_sign_and_keeps_p(r1, r2, place):
    low, high = shared_range(r1, r2)
    r12 = low + place * (high - low)
    for test in (williams, steiger):
        one, other = test(r1, r2, r12, 30), test(r2, r1, r12, 30)
        assert one.statistic == pytest.approx(-other.statistic, nan_ok=True)
        assert one.p == pytest.approx(other.p, nan_ok=True)
    one, other = difference_interval(r1, r2, r12, 30), difference_interval(r2, r1, r12, 30)
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low))


@given(correlations, correlations, st.floats(-0.999, 0.999))
def test_what_is_possible_is_what_has_no_negative_eigenvalue(r1, r2, r12):
    least = np.linalg.eigvalsh([[1, r1, r2], [r1, 1, r12], [r2, r12, 1]])[0]
    low, high = shared_range(r1, r2)
    if abs(least) > 1e-6:
        assert possible(r1, r2, r12) == (least > 0) == (low < r12 < high)


def test_correlations_that_no_data_have_and_too_few_models_are_refused():
    with pytest.raises(ValueError, match="no data have"):
        steiger(0.9, 0.9, -0.5, 30)
    with pytest.raises(ValueError, match="too few"):
        williams(0.1, 0.2, 0.3, 3)


def test_a_wide_sample_shows_equivalence_and_a_small_one_does_not():
    assert tost(0.80, 0.81, 0.9, 2000, margin=0.05).equivalent
    small = tost(0.80, 0.81, 0.9, 20, margin=0.05)
    assert not small.equivalent
    assert small.p > 0.05
    assert steiger(0.80, 0.81, 0.9, 20).p > 0.05, "no difference found, and no equivalence either"


@given(st.floats(-0.9, 0.9), st.floats(-0.9, 0.9), st.floats(0.02, 0.5), st.integers(5, 400))
def test_equivalence_is_decided_by_the_interval_of_level_90(r1, r2, margin, n):
    r12 = r1 * r2
    found = tost(r1, r2, r12, n, margin)
    interval = difference_interval(r1, r2, r12, n, 0.9)
    assert (found.low, found.high) == (interval.low, interval.high)
    inside = min(margin - interval.high, interval.low + margin)
    if abs(inside) > 1e-9:
        assert found.equivalent == (inside > 0)
    assert 0 <= found.p <= 1


def test_intervals_for_ranks_are_wider():
    ranks, plain = (difference_interval(0.8, 0.6, 0.5, 40, ranks=on) for on in (True, False))
    assert ranks.low < plain.low < plain.high < ranks.high


@pytest.mark.parametrize(
    ("ranks", "interval"), [(False, fisher_interval), (True, bonett_wright_interval)]
)
def test_against_a_score_that_says_nothing_the_interval_is_built_on_that_of_each(ranks, interval):
    one, other = interval(0.8, 50), interval(0.0, 50)
    shared = 0.0  # r2 = r12 = 0: the two estimates are independent
    low = 0.8 - np.sqrt((0.8 - one.low) ** 2 + other.high**2 - 2 * shared)
    high = 0.8 + np.sqrt((one.high - 0.8) ** 2 + other.low**2 - 2 * shared)
    found = difference_interval(0.8, 0, 0, 50, ranks=ranks)
    assert (found.low, found.high) == pytest.approx((float(low), float(high)))
