"""Corrections of p for several tests."""

from __future__ import annotations

import numpy as np

from stamp.stats.multiple_testing import holm, max_t


def test_holm_is_the_published_example_and_keeps_order() -> None:
    p = np.array([0.01, 0.04, 0.03, 0.005, np.nan])
    np.testing.assert_allclose(holm(p), [0.03, 0.06, 0.06, 0.02, np.nan])
    assert holm(np.array([0.6, 0.9])).tolist() == [1.0, 1.0]


def joint_draws(seed: int = 0, count: int = 400, tests: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Differences, two of them real, and draws around them that go together."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(count, 1))
    spread = np.array([0.1, 1.0, 0.3, 2.0, 0.5])[:tests]
    observed = np.array([0.6, 4.5, 0.1, -1.0, 0.05])[:tests]
    return observed, observed + spread * (0.8 * shared + 0.6 * rng.normal(size=(count, tests)))


def test_max_t_is_the_step_down_procedure_written_as_loops() -> None:
    observed, draws = joint_draws()
    scale = draws.std(axis=0)
    t = np.abs(observed) / scale
    left, expected, least = list(np.argsort(-t)), np.empty(5), 0.0
    while left:
        beyond = sum(
            max(abs(row[j] - observed[j]) / scale[j] for j in left) >= t[left[0]] for row in draws
        )
        least = max(least, (1 + beyond) / (len(draws) + 1))
        expected[left.pop(0)] = least
    np.testing.assert_allclose(max_t(observed, draws), expected)


def test_the_least_p_of_max_t_does_not_grow_with_the_number_of_tests() -> None:
    rng = np.random.default_rng(1)
    observed = np.r_[9.0, np.zeros(499)]
    found = max_t(observed, observed + rng.normal(size=(199, 500)))
    assert found[0] == 1 / 200 and (found[1:] > 0.5).all()
    assert holm(np.r_[2 / 200, np.full(499, 0.5)])[0] == 1


def test_equal_tests_cost_no_more_than_one() -> None:
    observed, draws = joint_draws(tests=1)
    many = max_t(np.repeat(observed, 50), np.repeat(draws, 50, axis=1))
    np.testing.assert_allclose(many, max_t(observed, draws)[0])


def test_max_t_rejects_a_true_null_hypothesis_in_one_family_of_twenty_at_most() -> None:
    rng = np.random.default_rng(2)
    wrong = 0
    for _ in range(300):
        data = rng.normal(size=(40, 8)) + rng.normal(size=(40, 1))
        counts = rng.multinomial(40, np.full(40, 1 / 40), size=199)
        wrong += (max_t(data.mean(axis=0), counts @ data / 40) <= 0.05).any()
    assert 0.02 < wrong / 300 < 0.10


def test_tests_without_draws_or_spread_do_not_disturb_the_others() -> None:
    observed, draws = joint_draws()
    odd = np.c_[draws, np.full(len(draws), np.nan), np.zeros(len(draws))]
    found = max_t(np.r_[observed, 0.3, 0.0], odd)
    np.testing.assert_allclose(found[:5], max_t(observed, draws))
    assert np.isnan(found[5]) and found[6] == 1
    assert np.isnan(max_t(np.array([np.nan]), np.full((9, 1), np.nan))).all()
