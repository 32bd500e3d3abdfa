"""Partial correlation given a noisy control: against simulation, closed forms and symmetries."""

import numpy as np
import pytest
from scipy import stats

from stamp.stats.correlations import noisy_control
from stamp.stats.correlations.noisy_control import (
    SimulationSettings,
    error_of_differences,
    partial_given_noisy_control,
    rank_reliability,
)
from stamp.stats.correlations.partial_correlation import partial_spearman

SE = 0.25  # of a control whose true values have a standard deviation of 1: 6 % of the variance


def zoo(seed, n=44, effect=0.0, se=SE, outcome_noise=0.5, score_noise=0.45):
    """A score, an outcome, a measured control and its standard errors, made from a true control."""
    rng = np.random.default_rng([seed, 77])
    true, own, other, error = rng.normal(size=(4, n))
    rest = effect * own + np.sqrt(1 - effect**2) * other
    score, outcome = true + score_noise * own, true + outcome_noise * rest
    return score, outcome, true + se * error, np.full(n, se)


def many(count, resamples=199, **how):
    return [
        partial_given_noisy_control(*zoo(k, **how), SimulationSettings(resamples, k))
        for k in range(count)
    ]


def mean(found, name):
    return np.nanmean([getattr(one, name) for one in found])


@pytest.fixture(scope="module")
def no_effect():
    return many(300)


def test_without_an_effect_the_plain_value_is_biased_and_the_corrected_one_is_not(no_effect):
    assert mean(no_effect, "rho") > 0.15
    assert abs(mean(no_effect, "corrected")) < 0.08


def test_without_an_effect_about_one_test_in_twenty_rejects(no_effect):
    plain = [partial_spearman(*zoo(k)[:3], permutations=1).p_asymptotic for k in range(300)]
    assert np.mean(np.array(plain) <= 0.05) > 0.15
    assert np.mean([one.p <= 0.05 for one in no_effect]) < 0.10
    assert np.mean([one.low <= 0 <= one.high for one in no_effect if not one.reason]) > 0.88


def test_the_noise_of_the_outcome_does_not_make_effects():
    for noise in (0.25, 2.0):
        found = many(150, outcome_noise=noise)
        assert np.mean([one.p <= 0.05 for one in found]) < 0.12


def test_an_effect_is_estimated_covered_and_found():
    found = many(150, effect=0.6)
    true = np.mean([partial_spearman(*zoo(k, effect=0.6, se=0)[:3]).rho for k in range(150)])
    assert mean(found, "corrected") == pytest.approx(true, abs=0.10)
    assert np.mean([one.low <= 0.6 <= one.high for one in found if not one.reason]) > 0.88
    assert np.mean([one.p <= 0.05 for one in found]) > 0.4


@pytest.mark.parametrize("n", [6, 12, 44])
def test_without_measurement_error_the_corrected_value_is_the_plain_one(n):
    data = zoo(3, n=n, effect=0.5, se=0)
    found = partial_given_noisy_control(*data)
    assert found.reliability == 1
    plain = partial_spearman(*data[:3]).rho
    assert (found.rho, found.corrected) == pytest.approx((plain, plain), abs=1e-12)
    assert found.low <= found.corrected <= found.high


def test_the_corrected_value_is_kendalls_formula_with_attenuated_correlations_repaired():
    score, outcome, control, se = zoo(4, effect=0.5)
    found = partial_given_noisy_control(score, outcome, control, se)
    xw = stats.spearmanr(score, control).statistic / np.sqrt(found.reliability)
    yw = stats.spearmanr(outcome, control).statistic / np.sqrt(found.reliability)
    xy = stats.spearmanr(score, outcome).statistic
    expected = (xy - xw * yw) / np.sqrt((1 - xw**2) * (1 - yw**2))
    assert found.corrected == pytest.approx(expected)


def test_the_order_of_the_models_changes_nothing():
    data = np.stack(zoo(5, effect=0.4))
    data[3] = np.linspace(0.1, 0.3, data.shape[1])
    shuffled = data[:, np.random.default_rng(0).permutation(data.shape[1])]
    assert partial_given_noisy_control(*data) == partial_given_noisy_control(*shuffled)


def test_only_the_order_of_scores_and_outcomes_counts():
    score, outcome, control, se = zoo(6, effect=0.4)
    expected = partial_given_noisy_control(score, outcome, control, se)
    found = partial_given_noisy_control(np.exp(score), outcome**3, 5 * control + 2, 5 * se)
    assert found.corrected == pytest.approx(expected.corrected, abs=1e-9)
    assert (found.low, found.high, found.p) == pytest.approx(
        (expected.low, expected.high, expected.p), abs=0.02
    )


def test_turning_the_score_around_turns_the_estimate_around():
    score, outcome, control, se = zoo(7, effect=0.4)
    found = partial_given_noisy_control(score, outcome, control, se)
    turned = partial_given_noisy_control(-score, outcome, control, se)
    # models are drawn in another order, so that the reliability differs by simulation noise
    assert turned.corrected == pytest.approx(-found.corrected, abs=0.05)
    assert turned.low == pytest.approx(-found.high, abs=0.1)


def test_the_interval_leaves_out_zero_where_the_test_rejects():
    for found in many(40, resamples=999, effect=0.5, n=30):
        if not found.reason and not 0.045 < found.p < 0.055:
            assert (found.p <= 0.05) == (found.low > 0 or found.high < 0)


def test_models_with_a_missing_value_are_dropped():
    data = np.stack(zoo(8, n=20))
    holes = data.copy()
    holes[range(4), [0, 5, 9, 13]] = np.nan
    whole = np.delete(data, [0, 5, 9, 13], axis=1)
    found = partial_given_noisy_control(*holes)
    assert found.n == 16
    assert found == partial_given_noisy_control(*whole)


def test_the_same_seed_gives_the_same_and_another_one_another():
    data = zoo(9, effect=0.4)
    first, again, other = (
        partial_given_noisy_control(*data, SimulationSettings(seed=seed)) for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


# errors that models share


def shared_zoo(seed, n=24, share=0.8, se=0.6):
    """As ``zoo``, where most of the error of the control is the same for all models."""
    score, outcome, control, _ = zoo(seed, n=n, se=0)
    common, *own = np.random.default_rng([seed, 5]).normal(size=n + 1)
    control = control + se * (np.sqrt(share) * common + np.sqrt(1 - share) * np.array(own))
    covariance = se**2 * (share + (1 - share) * np.eye(n))
    return score, outcome, control, covariance


def test_standard_errors_are_the_covariance_of_independent_errors():
    score, outcome, control, se = zoo(15)
    found = partial_given_noisy_control(score, outcome, control, np.diag(se**2))
    assert found.reliability == pytest.approx(
        partial_given_noisy_control(score, outcome, control, se).reliability
    )
    assert found.error == pytest.approx(SE)


def test_an_error_that_all_models_share_corrects_nothing():
    score, outcome, control, _ = zoo(16)
    found = partial_given_noisy_control(score, outcome, control, np.full((44, 44), 4.0))
    assert found.reliability == pytest.approx(1)
    assert found.corrected == pytest.approx(found.rho)
    assert found.error == pytest.approx(0, abs=1e-6)


def test_the_typical_error_is_that_of_two_models_difference():
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(12, 12))
    covariance = draws @ draws.T
    differences = [
        covariance[i, i] + covariance[j, j] - 2 * covariance[i, j]
        for i in range(12)
        for j in range(12)
        if i != j
    ]
    assert error_of_differences(covariance) == pytest.approx(np.sqrt(np.mean(differences) / 2))


def test_with_shared_errors_the_covariance_keeps_the_size_and_plain_errors_overcorrect():
    settings = [SimulationSettings(199, k, interval=False) for k in range(300)]
    data = [shared_zoo(k) for k in range(300)]
    plain = [
        partial_given_noisy_control(*one[:3], np.sqrt(np.diag(one[3])), how)
        for one, how in zip(data, settings, strict=True)
    ]
    ours = [partial_given_noisy_control(*one, how) for one, how in zip(data, settings, strict=True)]
    assert np.mean([bool(one.reason) for one in plain]) > 0.5  # taken for pure error
    assert np.mean([bool(one.reason) for one in ours]) < 0.15
    assert np.mean([one.p <= 0.05 for one in ours]) < 0.10
    assert abs(mean(ours, "corrected")) < 0.1


# reliability


def test_reliability_is_one_minus_the_error_share_of_a_large_normal_sample():
    rng = np.random.default_rng(0)
    values = rng.normal(size=2000) + 0.5 * rng.normal(size=2000)
    found = rank_reliability(values, np.full(2000, 0.5), resamples=20)
    assert found == pytest.approx(1 / 1.25, abs=0.02)


def test_a_few_weak_models_do_not_make_the_others_reliable():
    rng = np.random.default_rng(1)
    close = rng.normal(0, 0.1, size=36) + rng.normal(0, 0.1, size=36)
    values = np.concatenate([close, rng.normal(-20, 1, size=4)])
    share_of_variance = 1 - 0.1**2 / values.var()
    assert share_of_variance > 0.999
    assert rank_reliability(values, np.full(40, 0.1)) < 0.85


# degenerate inputs


def nothing(found):
    return np.isnan([found.corrected, found.low, found.high, found.p]).all()


def test_a_control_that_is_mostly_error_gives_a_reason():
    score, outcome, control, _ = zoo(10)
    found = partial_given_noisy_control(score, outcome, control, np.full(44, 3.0))
    assert "reliability" in found.reason
    assert "0.5" in found.reason
    assert nothing(found)
    assert not np.isnan(found.rho)


@pytest.mark.parametrize(("place", "name"), [(0, "score"), (1, "outcome")])
def test_a_side_that_follows_the_measured_control_too_closely_gives_a_reason(place, name):
    data = list(zoo(11, se=0.4))
    data[place] = data[2] + 0.05 * np.random.default_rng(0).normal(size=44)
    found = partial_given_noisy_control(*data)
    assert name in found.reason
    assert nothing(found)


def test_a_corrected_value_that_is_no_correlation_gives_a_reason():
    found = [one for one in many(200, n=12, se=0.4) if "outside -1 to 1" in one.reason]
    assert found
    assert all(nothing(one) for one in found)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_constant_values_give_a_reason(place):
    data = list(zoo(12, n=10))
    data[place] = np.ones(10)
    found = partial_given_noisy_control(*data)
    assert "10 models" in found.reason
    assert np.isnan(found.rho)
    assert nothing(found)


def test_too_few_models_give_a_reason():
    found = partial_given_noisy_control(*zoo(13, n=3))
    assert found.n == 3
    assert "3 models" in found.reason


@pytest.mark.parametrize("error", [-0.1, np.inf])
def test_an_impossible_standard_error_is_refused(error):
    score, outcome, control, se = zoo(14)
    se[3] = error
    with pytest.raises(ValueError, match="standard error"):
        partial_given_noisy_control(score, outcome, control, se)


def test_what_is_kept_between_calls_is_what_a_first_call_gives() -> None:
    """Scores of one study share the control's reliability and the simulated normals."""
    rng = np.random.default_rng(5)
    x, y, w, z = rng.normal(size=(4, 40))
    error = np.full(40, 0.3)
    first = noisy_control.partial_given_noisy_control(x, y, w, error)
    noisy_control.partial_given_noisy_control(z, y, w, error)
    noisy_control.partial_given_noisy_control(z, y, w, 2 * error)
    noisy_control.partial_given_noisy_control(z[:30], y[:30], w[:30], error[:30])
    assert noisy_control.partial_given_noisy_control(x, y, w, error) == first
    noisy_control._RELIABILITIES.clear()
    noisy_control._normals.cache_clear()
    assert noisy_control.partial_given_noisy_control(x, y, w, error) == first
    other = noisy_control.partial_given_noisy_control(x, y, w, 2 * error)
    assert other.reliability < first.reliability
