import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from stamp.stats.ranks import Sorted, centred_ranks, mid_ranks, resampled_spearman, spearman

few_values = arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 12)),
                    elements=st.integers(-3, 3).map(float))  # fmt: skip
pairs = arrays(np.float64, st.tuples(st.just(2), st.integers(3, 15)),
               elements=st.integers(-5, 5).map(float))  # fmt: skip


@given(few_values)
@settings(max_examples=50, deadline=None)
def test_mid_ranks_with_ties_are_those_of_scipy(values):
    np.testing.assert_array_equal(mid_ranks(values), stats.rankdata(values, axis=-1))


def test_mid_ranks_without_ties_are_those_of_scipy_in_any_number_of_dimensions():
    values = np.random.default_rng(0).normal(size=(3, 4, 9))
    np.testing.assert_array_equal(mid_ranks(values), stats.rankdata(values, axis=-1))
    np.testing.assert_array_equal(mid_ranks(values[0, 0]), stats.rankdata(values[0, 0]))


def test_one_row_with_ties_leaves_the_ranks_of_the_others_alone():
    values = np.array([[3.0, 1.0, 2.0], [5.0, 5.0, 1.0]])
    np.testing.assert_array_equal(mid_ranks(values), [[3, 1, 2], [2.5, 2.5, 1]])


def test_infinities_rank_as_the_extremes_and_tie_with_themselves():
    values = [np.inf, -np.inf, 0.0, np.inf]
    np.testing.assert_array_equal(mid_ranks(values), [3.5, 1, 2, 3.5])
    np.testing.assert_array_equal(
        next(Sorted.of(values).centred(np.ones((1, len(values)), np.int32)))[0],
        centred_ranks(values),
    )


@pytest.mark.parametrize("rank", [mid_ranks, Sorted.of])
def test_nan_is_refused_rather_than_ranked(rank):
    with pytest.raises(ValueError, match="NaN"):
        rank([1.0, np.nan, 2.0])


@given(few_values)
@settings(max_examples=50, deadline=None)
def test_centred_ranks_are_whole_numbers_that_sum_to_zero(values):
    centred = centred_ranks(values)
    assert (centred == np.round(centred)).all()
    assert (centred.sum(axis=-1) == 0).all()


@given(pairs)
@settings(max_examples=50, deadline=None)
def test_spearman_is_that_of_scipy_or_nan_where_a_side_is_constant(rows):
    if (rows.min(axis=1) == rows.max(axis=1)).any():
        assert np.isnan(spearman(*rows))
    else:
        expected = stats.spearmanr(*rows).statistic
        np.testing.assert_allclose(spearman(*rows), expected, rtol=0, atol=1e-12)


@given(pairs)
@settings(max_examples=50, deadline=None)
def test_rho_is_symmetric_and_turns_its_sign_with_the_score(rows):
    x, y = rows
    np.testing.assert_array_equal(spearman(x, y), spearman(y, x))
    np.testing.assert_array_equal(spearman(-x, y), -spearman(x, y))


@given(pairs, st.randoms(use_true_random=False))
@settings(max_examples=50, deadline=None)
def test_rho_ignores_monotone_transforms_and_the_order_of_the_models(rows, random):
    x, y = rows
    rho = spearman(x, y)
    np.testing.assert_array_equal(spearman(np.exp(x), y**3), rho)
    order = list(range(x.size))
    random.shuffle(order)
    np.testing.assert_array_equal(spearman(x[order], y[order]), rho)


def test_spearman_broadcasts_metrics_against_targets():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(3, 8)), rng.normal(size=(2, 8))
    table = spearman(x[:, None], y[None])
    for i, j in itertools.product(range(3), range(2)):
        assert table[i, j] == pytest.approx(stats.spearmanr(x[i], y[j]).statistic)


def test_perfect_agreement_is_exactly_one():
    x = np.random.default_rng(2).normal(size=301)
    assert spearman(x, np.exp(x)) == 1
    assert spearman(x, -x) == -1


def test_sides_of_different_length_are_refused():
    with pytest.raises(ValueError, match="cannot be paired"):
        spearman([1.0, 2.0, 3.0], [1.0])


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=50, deadline=None)
def test_a_resample_given_by_counts_equals_ranking_the_repeated_models(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 6, size=(2, 9)), rng.normal(size=(3, 9))
    counts = rng.integers(0, 4, size=(5, 9))
    rho = resampled_spearman(Sorted.of(x), Sorted.of(y), counts)
    assert rho.shape == (5, 2, 3)
    for r, i, j in np.ndindex(rho.shape):
        rows = np.repeat(x[i], counts[r]), np.repeat(y[j], counts[r])
        if any(len(set(row)) < 2 for row in rows):
            assert np.isnan(rho[r, i, j])
        else:
            assert rho[r, i, j] == pytest.approx(stats.spearmanr(*rows).statistic, abs=1e-12)
