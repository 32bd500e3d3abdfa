import math

import numpy as np
import pytest
from related_values import related, residual_partial
from scipy import stats

from stamp.stats.correlations.correlation import (
    bonett_wright_interval,
    fisher_interval,
    paired_bootstrap,
    permutation_p,
)
from stamp.stats.correlations.correlation_summary import CorrelationSettings, correlate
from stamp.stats.correlations.partial_correlation import partial_spearman


def test_models_without_a_control_are_dropped_from_that_partial_only():
    x, y, z = related(25, rows=3)
    z[[3, 7]] = np.nan
    kept = ~np.isnan(z)
    found = correlate(x, y, {"size": z}, CorrelationSettings(200, 50))
    assert (found.n, found.partials["size"].n) == (30, 28)
    assert found.partials["size"].rho == pytest.approx(
        residual_partial(x[kept], y[kept], [z[kept]])
    )


def test_the_most_influential_model_is_the_outlier_at_its_place_in_what_was_given():
    x = np.arange(12.0)
    y = x.copy()
    y[9] = -5
    x[[0, 4]], y[5] = np.nan, np.nan
    found = correlate(x, y, settings=CorrelationSettings(100, 100))
    assert found.n == 9
    assert found.loo_most_influential == 9
    assert found.loo_high == 1
    assert found.loo_low < found.rho < found.loo_high


def test_a_correlation_gathers_what_its_parts_say():
    x, y, z = related(26, n=18, rows=3)
    found = correlate(x, y, {"size": z, "both": [z, x + z]}, CorrelationSettings(500, 300, 0.9, 7))
    test = permutation_p(x, y, 500, seed=7)
    draws = paired_bootstrap(x, y, 300, seed=7).draws[:, 0, 0]
    assert found.rho == pytest.approx(stats.spearmanr(x, y).statistic)
    assert (found.p_permutation, found.permutation_method) == (test.p, "monte-carlo")
    assert found.p_asymptotic == pytest.approx(stats.spearmanr(x, y).pvalue)
    assert found.fisher_low == fisher_interval(found.rho, 18, 0.9).low
    assert found.bonett_wright_high == bonett_wright_interval(found.rho, 18, 0.9).high
    assert found.bootstrap_low == pytest.approx(np.quantile(draws, 0.05))
    assert found.bootstrap_high == pytest.approx(np.quantile(draws, 0.95))
    assert found.bootstrap_valid == 300
    assert found.partials["size"] == partial_spearman(x, y, z, 500, seed=7)
    assert found.partials["both"].df == 14
    assert found.reason == ""


@pytest.mark.parametrize(
    ("x", "y", "n", "reason"),
    [
        ([], [], 0, "0 models are too few"),
        ([1, 2, 3, np.nan], [1, 2, 3, 4], 3, "3 models are too few: at least 4"),
        ([5, 5, 5, 5], [1, 2, 3, 4], 4, "the score is the same for all 4 models"),
        ([1, 2, 3, 4, 9], [1, 1, 1, 1, np.nan], 4, "the target is the same"),
    ],
)
def test_an_undefined_correlation_is_nan_with_its_reason(x, y, n, reason):
    found = correlate(x, y, {"size": np.arange(len(x))}, CorrelationSettings(10, 10))
    assert np.isnan([found.rho, found.p_permutation, found.bootstrap_low, found.loo_low]).all()
    assert found.n == n
    assert reason in found.reason
    assert found.partials["size"].reason


@pytest.mark.parametrize("n", [4, 5])
def test_four_models_are_enough_for_everything(n):
    found = correlate(np.arange(n), np.arange(n)[::-1], settings=CorrelationSettings(1000, 200))
    assert (found.rho, found.permutation_method) == (-1, "exact")
    assert found.p_permutation == pytest.approx(2 / math.factorial(n))
    assert found.bootstrap_high == -1
    assert found.p_asymptotic == 0
