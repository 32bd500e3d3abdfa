import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from related_values import related, residual_partial
from scipy import stats

from stamp.stats.correlations.partial_correlation import partial_spearman
from stamp.stats.ranks import spearman

seeds = st.integers(0, 2**32 - 1)


@given(seeds)
@settings(max_examples=50, deadline=None)
def test_one_control_gives_kendalls_formula(seed):
    x, y, z = related(seed, n=12, rows=3)
    r_xy, r_xz, r_yz = (stats.spearmanr(*two).statistic for two in ((x, y), (x, z), (y, z)))
    expected = (r_xy - r_xz * r_yz) / math.sqrt((1 - r_xz**2) * (1 - r_yz**2))
    assert partial_spearman(x, y, z, permutations=10).rho == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_any_number_of_controls_gives_precision_matrix_and_regression_residuals(k):
    rows = related(18, n=25, rows=2 + k)
    rows[-1] = np.round(rows[-1])
    x, y, *controls = rows
    result = partial_spearman(x, y, controls, permutations=10)
    precision = np.linalg.inv(np.corrcoef(stats.rankdata(rows, axis=1)))
    expected = -precision[0, 1] / math.sqrt(precision[0, 0] * precision[1, 1])
    assert result.rho == pytest.approx(expected, abs=1e-9)
    assert result.rho == pytest.approx(residual_partial(x, y, controls), abs=1e-9)
    t = result.rho * math.sqrt((23 - k) / (1 - result.rho**2))
    assert (result.n, result.df) == (25, 23 - k)
    assert result.p_asymptotic == pytest.approx(2 * stats.t.sf(abs(t), 23 - k))


def test_freedman_lane_equals_refitting_every_permutation():
    x, y, *controls = related(20, n=6, strength=0.4, rows=4)
    x[1] = x[0]
    design = np.column_stack([np.ones(6), *(stats.rankdata(row) for row in controls)])
    hat = design @ np.linalg.pinv(design)
    x_ranks, y_ranks = stats.rankdata(x), stats.rankdata(y)
    fitted, left = hat @ y_ranks, y_ranks - hat @ y_ranks

    def refit(outcome):
        fit = np.linalg.lstsq(np.column_stack([design, x_ranks]), outcome, rcond=None)[0]
        error = outcome - np.column_stack([design, x_ranks]) @ fit
        return abs(fit[-1]) / math.sqrt(error @ error)

    observed = refit(y_ranks)
    t = [refit(fitted + left[list(order)]) for order in itertools.permutations(range(6))]
    result = partial_spearman(x, y, controls, permutations=720)
    assert result.permutation_method == "exact"
    expected = np.mean(np.array(t) >= observed * (1 - 1e-9))
    assert result.p_permutation == pytest.approx(expected, abs=1e-12)
    assert 0 < expected < 1


def test_permutation_and_t_p_of_a_partial_correlation_agree():
    x, y, z = related(21, n=60, strength=0.4, rows=3)
    result = partial_spearman(x, y, z, permutations=20_000)
    assert result.permutation_method == "monte-carlo"
    assert 0.001 < result.p_asymptotic < 0.9
    assert result.p_permutation == pytest.approx(result.p_asymptotic, abs=0.02)


def test_a_correlation_that_a_control_makes_is_gone_when_controlled_for():
    rng = np.random.default_rng(22)
    cause = rng.normal(size=300)
    x, y = cause + rng.normal(size=(2, 300))
    result = partial_spearman(x, y, cause, permutations=500)
    assert spearman(x, y) > 0.35
    assert abs(result.rho) < 0.12
    assert result.p_permutation > 0.03


def test_identical_score_and_target_have_partial_correlation_one():
    x, z = related(23)
    result = partial_spearman(x, np.exp(x), z, permutations=99)
    assert result.rho == pytest.approx(1)
    assert result.p_permutation == 0.01


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (lambda x, y, z: (x, y, [np.exp(x)]), "ranks of the score are determined by the controls"),
        (lambda x, y, z: (x, y, [z, -y]), "ranks of the target are determined by the controls"),
        (lambda x, y, z: (x, y, [z, z]), "controls determine each other"),
        (lambda x, y, z: (x, y, [np.ones_like(z)]), "a control is the same for all 30 models"),
        (lambda x, y, z: (np.ones_like(x), y, [z]), "the score is the same for all 30 models"),
        (lambda x, y, z: (x, np.ones_like(y), [z]), "the target is the same for all 30 models"),
        (lambda x, y, z: (x[:4], y[:4], [z[:4], x[3::-1]]), "at least 5 are needed"),
    ],
)
def test_an_undefined_partial_correlation_is_nan_and_says_why(rows, reason):
    result = partial_spearman(*rows(*related(24, rows=3)), permutations=99)
    assert np.isnan([result.rho, result.p_asymptotic, result.p_permutation]).all()
    assert reason in result.reason
