"""Regret against the enumeration of all subsets, and choices between close models."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest

from stamp.stats.regret import Resampling, close_pairs, first_of_subset, regret, times_drawn

RNG = np.random.default_rng(0)


def enumerated(score: np.ndarray, outcome: np.ndarray, k: int) -> tuple[float, float]:
    """The mean outcome of the pick, and of the best, over all subsets; ties share."""
    picks, best = [], []
    for subset in combinations(range(len(score)), k):
        rows = list(subset)
        top = score[rows] == score[rows].max()
        picks.append(outcome[rows][top].mean())
        best.append(outcome[rows].max())
    return float(np.mean(picks)), float(np.mean(best))


@pytest.mark.parametrize("k", [1, 2, 5, 8])
@pytest.mark.parametrize("ties", [False, True])
def test_regret_is_that_of_all_subsets(k: int, ties: bool) -> None:
    score, outcome = RNG.normal(size=(2, 8))
    if ties:
        score, outcome = score.round(0), outcome.round(1)
    pick, best = enumerated(score, outcome, k)
    found = regret(score, outcome, k, Resampling(10))
    assert found.regret[0, 0] == pytest.approx(best - pick)
    assert found.random[0] == pytest.approx(best - outcome.mean())


def test_several_predictors_and_outcomes_are_each_their_own() -> None:
    scores, outcomes = RNG.normal(size=(3, 9)), RNG.normal(size=(2, 9))
    found = regret(scores, outcomes, 4, Resampling(50))
    for at, score in enumerate(scores):
        for other, outcome in enumerate(outcomes):
            alone = regret(score, outcome, 4, Resampling(50))
            assert found.regret[at, other] == pytest.approx(alone.regret[0, 0])
            np.testing.assert_allclose(found.draws[:, at, other], alone.draws[:, 0, 0])


def test_the_outcome_itself_has_no_regret_and_its_reverse_the_most() -> None:
    outcome = RNG.normal(size=12)
    others = RNG.normal(size=(20, 12))
    found = regret(np.vstack([outcome, -outcome, others]), outcome, 5)
    assert found.regret[0, 0] == pytest.approx(0)
    assert found.regret[1, 0] == found.regret.max()
    assert (found.low <= found.regret + 1e-12).mean() > 0.9


def test_models_of_one_family_are_drawn_together() -> None:
    families = np.repeat(["a", "b", "c", "d"], 6).tolist()
    outcome = np.repeat(RNG.normal(size=4), 6) + 0.01 * RNG.normal(size=24)
    score = outcome + np.repeat(RNG.normal(size=4), 6)
    alone = regret(score, outcome, 5, Resampling(400))
    together = regret(score, outcome, 5, Resampling(400, families))
    assert together.draws.std() > 1.3 * alone.draws.std()


def test_close_pairs_are_those_of_a_loop() -> None:
    control, score, outcome, error = RNG.normal(size=(4, 15)).round(1)
    error = np.abs(error)
    for margin in (0.5, error):
        right, count = 0.0, 0
        for i, j in combinations(range(15), 2):
            limit = margin if isinstance(margin, float) else np.hypot(error[i], error[j])
            if abs(control[i] - control[j]) <= limit and outcome[i] != outcome[j]:
                better, other = (i, j) if outcome[i] > outcome[j] else (j, i)
                count += 1
                right += 1.0 if score[better] > score[other] else 0.0
                right += 0.5 if score[better] == score[other] else 0.0
        found = close_pairs(control, [score, -score], outcome, margin)
        assert found.pairs == count
        assert found.right == pytest.approx([right / count, 1 - right / count])
        assert (found.low <= found.right).all() and (found.right <= found.high).all()
    assert np.isnan(close_pairs([0.0, 9.0], [1.0, 2.0], [1.0, 2.0], 0.1).right).all()


def test_the_interval_of_close_pairs_is_that_of_drawing_the_models_again() -> None:
    control, score, outcome = RNG.normal(size=(3, 20))
    families = np.repeat(["a", "b", "c", "d", "e"], 4).tolist()
    for named in (None, families):
        draws = []
        for times in times_drawn(20, Resampling(200, named)):
            rows = np.repeat(np.arange(20), times)
            drawn = [one[rows] for one in (control, score, outcome)]
            first, second = np.triu_indices(len(rows), 1)
            apart = rows[first] != rows[second]  # a model is no rival of itself
            near = apart & (np.abs(drawn[0][first] - drawn[0][second]) <= 0.4)
            gaps = [(one[first] - one[second])[near] for one in drawn[1:]]
            if near.any():
                draws.append(np.mean(gaps[0] * gaps[1] > 0))
        found = close_pairs(control, score, outcome, 0.4, Resampling(200, named))
        ends = np.quantile(draws, [0.025, 0.975])
        assert [found.low[0], found.high[0]] == pytest.approx(ends)


def test_probabilities_of_places_are_the_binomials() -> None:
    for n, k in ((1, 1), (12, 5), (44, 12), (300, 5)):
        expected = [comb(n - 1 - r, k - 1) / comb(n, k) for r in range(n)]
        np.testing.assert_allclose(first_of_subset(n, k), expected, rtol=1e-12)
    with pytest.raises(ValueError, match="5 of 4"):
        first_of_subset(4, 5)
