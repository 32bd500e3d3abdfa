"""The planning of an interval agrees with what scores of simulated outputs really do."""

from __future__ import annotations

import numpy as np
import pytest

from stamp.scoring.bootstrap import analytic_se
from stamp.stats.sample_size import half_width, outlook, pairs_needed, scaled


@pytest.mark.parametrize("stamp", [0.3, 0.5, 0.8])
def test_independent_pairs_of_normal_outputs_vary_as_planned(stamp: float) -> None:
    """5,000 scores of N pairs each: one normal output, whose squared differences have v = 2."""
    rng, pairs, repeats = np.random.default_rng(7), 400, 5000
    within = (1 - stamp) * rng.chisquare(1, size=(repeats, pairs)).mean(axis=1)
    total = rng.chisquare(1, size=(repeats, pairs)).mean(axis=1)
    spread = np.std(1 - within / total)
    assert 1.96 * spread == pytest.approx(half_width(pairs, stamp), rel=0.06)


def test_the_plan_is_the_analytic_error_of_a_score() -> None:
    rng = np.random.default_rng(3)
    semantic, random = 0.4 * rng.chisquare(1, 400_000), rng.chisquare(1, 400_000)
    planned = half_width(400_000, 0.6) / 1.959964
    assert analytic_se(semantic, random) == pytest.approx(planned, rel=0.02)


@pytest.mark.parametrize("wanted", [0.005, 0.02, 0.1])
@pytest.mark.parametrize("stamp", [0.0, 0.5, 0.9])
def test_the_needed_pairs_are_the_fewest_that_give_the_width(wanted: float, stamp: float) -> None:
    need = pairs_needed(wanted, stamp)
    assert half_width(need, stamp) <= wanted
    assert need == 1 or half_width(need - 1, stamp) > wanted


def test_pairs_of_few_units_promise_no_more_than_the_units() -> None:
    found = outlook(900, 100, 0.5)
    assert found.best == half_width(900, 0.5)
    assert found.worst == pytest.approx(3 * found.best)
    assert outlook(50, 100, 0.5).worst == outlook(50, 100, 0.5).best


def test_a_measured_width_halves_with_four_times_the_pairs() -> None:
    assert scaled(2000, 0.04, 0.02) == 8000
