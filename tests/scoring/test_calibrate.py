"""Temperature scaling against closed forms and a grid; the exclusion rules."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from stamp.core.errors import UserError
from stamp.inference.outputs import Outputs
from stamp.scoring.calibrate import (
    HIGHEST,
    LOWEST,
    ExclusionThresholds,
    Performance,
    calibrate,
    exclusion,
    fit_temperature,
    majority_rate,
)


def multiclass(seed, n=400, classes=5, scale=1.5):
    """Logits and labels drawn from their own softmax: calibrated at T = 1."""
    rng = np.random.default_rng(seed)
    z = rng.normal(scale=scale, size=(n, classes))
    return z, (z + rng.gumbel(size=z.shape)).argmax(axis=1)


def multilabel(seed, n=400, classes=3):
    rng = np.random.default_rng(seed)
    z = rng.normal(scale=2, size=(n, classes))
    return z, (rng.random(z.shape) < special.expit(z)).astype(float)


@pytest.mark.parametrize(("task", "make"), [("multiclass", multiclass), ("multilabel", multilabel)])
@pytest.mark.parametrize("true", [0.3, 1.0, 4.0])
def test_a_known_temperature_is_recovered(task, make, true):
    z, y = make(0, n=20_000)
    found = fit_temperature(z * true, y, task)
    assert found.value == pytest.approx(true, rel=0.03)
    assert found.bound is None
    assert found.nll_after <= found.nll_before


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32), st.floats(0.5, 3))
def test_scaling_the_logits_scales_the_temperature(seed, factor):
    z, y = multiclass(seed)
    one, scaled = fit_temperature(z, y, "multiclass"), fit_temperature(z * factor, y, "multiclass")
    assert scaled.value == pytest.approx(one.value * factor, rel=1e-4)
    assert scaled.nll_after == pytest.approx(one.nll_after, abs=1e-9)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32))
def test_at_the_optimum_the_true_class_has_the_logit_that_the_model_expects(seed):
    z, y = multiclass(seed)
    t = fit_temperature(z, y, "multiclass").value
    expected = (special.softmax(z / t, axis=1) * z).sum(axis=1).mean()
    assert z[np.arange(len(y)), y].mean() == pytest.approx(expected, abs=1e-4)


def test_the_likelihoods_are_those_of_scipy_and_no_grid_point_is_better():
    z, y = multiclass(1)
    y_many, z_many = multilabel(1)[::-1]
    grid = np.exp(np.linspace(np.log(LOWEST), np.log(HIGHEST), 400))

    def one(t):
        return -special.log_softmax(z / t, axis=1)[np.arange(len(y)), y].mean()

    def many(t):
        return -special.log_expit(np.where(y_many == 1, z_many, -z_many) / t).mean()

    for logits, labels, task, nll in (
        (z, y, "multiclass", one),
        (z_many, y_many, "multilabel", many),
    ):
        found = fit_temperature(logits, labels, task)
        assert found.nll_before == pytest.approx(nll(1.0))
        assert found.nll_after == pytest.approx(nll(found.value))
        assert found.nll_after <= min(map(nll, grid)) + 1e-12


def test_unknown_labels_do_not_count():
    z, y = multilabel(2)
    hidden = y.copy()
    hidden[::3, 1] = np.nan
    hidden[:, 2] = np.nan
    known = ~np.isnan(hidden)
    found = fit_temperature(z, hidden, "multilabel")
    expected = fit_temperature(z[known][:, None], y[known][:, None], "multilabel")
    assert found == expected
    assert found.n == known.sum()


def test_a_fit_at_either_bound_says_so():
    y = np.arange(30) % 3
    right = np.eye(3)[y] * 4
    for strength in (0.1, 1, 100):
        found = fit_temperature(strength * right, y, "multiclass")
        assert (found.bound, found.value) == ("lower", pytest.approx(LOWEST, rel=0.01))
        found = fit_temperature(-strength * right, y, "multiclass")
        assert (found.bound, found.value) == ("upper", pytest.approx(HIGHEST, rel=0.01))
    labels = np.eye(3)[y]
    assert fit_temperature(right - 2, labels, "multilabel").bound == "lower"


def test_a_constant_model_has_no_temperature_and_gets_one():
    found = fit_temperature(np.full((20, 4), 2.5), np.arange(20) % 4, "multiclass")
    assert (found.value, found.bound) == (1.0, "flat")
    assert found.nll_before == found.nll_after == pytest.approx(np.log(4))


def test_extreme_logits_do_not_overflow():
    z = np.array([[60000.0, -60000.0], [-60000.0, 60000.0]], dtype=np.float16)
    with np.errstate(over="raise", invalid="raise"):
        found = fit_temperature(z, np.array([0, 0]), "multiclass")
    assert np.isfinite([found.value, found.nll_before, found.nll_after]).all()


def test_labels_that_cannot_be_are_refused():
    z = np.zeros((3, 2))
    with pytest.raises(UserError, match="from 0 to 1, found 0 to 2"):
        fit_temperature(z, np.array([0, 1, 2]), "multiclass")
    with pytest.raises(UserError, match="0, 1 or missing"):
        fit_temperature(z, np.full((3, 2), -1.0), "multilabel")
    with pytest.raises(UserError, match="no calibration image"):
        fit_temperature(z, np.full((3, 2), np.nan), "multilabel")
    with pytest.raises(UserError, match="no calibration image"):
        fit_temperature(z[:0], np.array([], dtype=int), "multiclass")
    with pytest.raises(ValueError, match="not finite"):
        fit_temperature(z + np.nan, np.array([0, 1, 1]), "multiclass")
    with pytest.raises(ValueError, match="2 labels for 3"):
        fit_temperature(z, np.array([0, 1]), "multiclass")


@pytest.mark.parametrize(
    ("rule", "temperature", "performance", "task", "classes", "out"),
    [
        ("temperature", 3.01, 0.9, "multiclass", 10, True),
        ("temperature", 3.0, 0.0, "multiclass", 10, False),
        ("temperature", 0.05, 0.0, "multiclass", 10, False),
        ("chance", 20.0, 0.50, "multiclass", 10, False),
        ("chance", 1.0, 0.499, "multiclass", 10, True),
        ("chance", 1.0, 0.004, "multiclass", 1000, True),
        ("chance", 1.0, 0.006, "multiclass", 1000, False),
        # Five times chance is impossible for two classes: half way from chance to 1 is asked.
        ("chance", 1.0, 0.76, "multiclass", 2, False),
        ("chance", 1.0, 0.74, "multiclass", 2, True),
        ("chance", 1.0, 0.56, "multilabel", 8, False),
        ("chance", 1.0, 0.54, "multilabel", 8, True),
        ("chance", 1.0, float("nan"), "multilabel", 8, True),
        ("none", 20.0, 0.0, "multiclass", 10, False),
    ],
)
def test_each_rule_sets_apart_what_it_says(rule, temperature, performance, task, classes, out):
    assert (
        exclusion(rule, temperature, Performance(performance, task, classes)) is not None
    ) == out


def test_a_reason_names_the_number_and_the_threshold():
    assert (
        exclusion("temperature", 4.25, Performance(0.9, "multiclass", 10))
        == "temperature 4.25 is above 3"
    )
    assert (
        exclusion(
            "temperature",
            4.25,
            Performance(0.9, "multiclass", 10),
            ExclusionThresholds(temperature_above=5),
        )
        is None
    )
    why = exclusion(
        "chance", 1.0, Performance(0.3, "multiclass", 10), ExclusionThresholds(chance_factor=4)
    )
    assert why == "calibration accuracy 0.300 is below 0.400, near chance"
    why = exclusion(
        "chance", 1.0, Performance(0.58, "multilabel", 10), ExclusionThresholds(chance_auroc=0.6)
    )
    assert why == "calibration macro-AUROC 0.580 is below 0.600, near chance"
    with pytest.raises(UserError, match="did you mean 'chance'"):
        exclusion("chanse", 1.0, Performance(0.5, "multiclass", 10))


@pytest.mark.parametrize(("right", "out"), [(90, True), (91, False), (80, True)])
def test_the_chance_rule_asks_for_more_than_always_the_most_frequent_class(right, out):
    """Of two classes 75 % is asked; a constant has 90 % where 90 of 100 images are of one."""
    labels = np.repeat([0.0, 1.0, np.nan], [90, 10, 5])
    assert majority_rate(labels, "multiclass") == 0.9
    reached = Performance(right / 100, "multiclass", 2, majority_rate(labels, "multiclass"))
    why = exclusion("chance", 1.0, reached)
    assert (why is not None) == out
    assert not out or "majority-class rate 0.900" in why
    constant = np.zeros((len(labels), 2))
    constant[:, 0] = 1.0
    rows = pl.DataFrame({"label": labels, "image": [str(k) for k in range(len(labels))]})
    rows = rows.with_columns(pl.col("label").fill_nan(None), domain=pl.lit("home"))
    found = calibrate(
        Outputs(rows, constant, None), "multiclass", ["a", "b"], ExclusionThresholds(), 10, "x"
    )
    assert found["performance"] == 0.9 and "majority-class" in found["excluded"]["chance"]
