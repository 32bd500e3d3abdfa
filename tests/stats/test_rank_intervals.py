import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from stamp.stats.rank_intervals import outranks, rank_intervals

scores = arrays(np.float64, st.tuples(st.integers(1, 5), st.integers(1, 8)),
                elements=st.one_of(st.integers(0, 4).map(float), st.just(np.nan)))  # fmt: skip


def test_separated_models_keep_their_rank_and_the_highest_score_is_first():
    draws = np.array([[0.1], [0.9], [0.5]]) + np.random.default_rng(0).normal(size=(3, 500)) * 0.01
    ranks = rank_intervals(draws)
    for column in (ranks.median, ranks.low, ranks.high):
        np.testing.assert_array_equal(column, [3, 1, 2])


def test_rank_intervals_equal_quantiles_of_ranks_counted_one_by_one():
    draws = np.random.default_rng(1).integers(0, 5, size=(6, 400)).astype(float)
    by_hand = np.empty_like(draws)
    for model, resample in np.ndindex(draws.shape):
        mine, all_scores = draws[model, resample], draws[:, resample]
        by_hand[model, resample] = (
            1 + (all_scores > mine).sum() + ((all_scores == mine).sum() - 1) / 2
        )
    ranks = rank_intervals(draws, level=0.9)
    expected = np.quantile(by_hand, [0.05, 0.5, 0.95], axis=1)
    np.testing.assert_allclose([ranks.low, ranks.median, ranks.high], expected)
    assert ranks.resamples == 400


def test_a_model_without_scores_takes_no_place():
    draws = np.array([[np.nan] * 4, [1.0, 2, 3, 4], [0.0, 0, 0, 0]])
    ranks = rank_intervals(draws)
    np.testing.assert_array_equal(ranks.median, [np.nan, 1, 2])
    np.testing.assert_array_equal(ranks.high, [np.nan, 1, 2])


def test_a_resample_that_misses_a_model_is_left_out_of_the_ranks():
    draws = np.array([[3.0, 0.0, 3.0], [2.0, 2.0, np.nan], [1.0, 1.0, 9.0]])
    ranks = rank_intervals(draws)
    assert ranks.resamples == 2
    np.testing.assert_array_equal(ranks.median, [2, 1.5, 2.5])


def test_without_any_score_there_is_no_rank():
    ranks = rank_intervals(np.full((2, 3), np.nan))
    assert np.isnan([ranks.median, ranks.low, ranks.high]).all()
    assert ranks.resamples == 0


@given(scores)
@settings(max_examples=50, deadline=None)
def test_outranking_equals_counting_and_both_directions_make_one(draws):
    share = outranks(draws)
    for i, j in np.ndindex(share.shape):
        both = [(a, b) for a, b in zip(draws[i], draws[j], strict=True) if a == a and b == b]
        wins = [1.0 if a > b else 0.5 if a == b else 0.0 for a, b in both]
        assert share[i, j] == pytest.approx(np.mean(wins) if wins else np.nan, nan_ok=True)
    np.testing.assert_allclose(share + share.T, np.where(np.isnan(share), np.nan, 1))


def test_a_shift_of_one_standard_error_outranks_as_the_normal_law_says():
    rng = np.random.default_rng(2)
    draws = np.stack([rng.normal(1, 1, 20_000), rng.normal(0, 1, 20_000)])
    assert outranks(draws)[0, 1] == pytest.approx(0.7602, abs=0.01)
