"""Metrics of outputs alone: against hand-computed cases, loops, closed forms and properties."""

from __future__ import annotations

from itertools import combinations
from math import ceil, isnan, log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from stamp.metrics.from_outputs import (
    ece,
    energy,
    entropy,
    mano,
    margin,
    mde,
    mean_confidence,
    mean_confidence_two_sided,
    nuclear_norm,
    prediction_std,
)

TASKS = ("multiclass", "multilabel")
seeds = st.integers(0, 2**32)


def outputs(seed, task, n=40, classes=5):
    """Random logits and their probabilities, by scipy."""
    z = np.random.default_rng(seed).normal(scale=3, size=(n, classes))
    return z, special.softmax(z, axis=1) if task == "multiclass" else special.expit(z)


def random_labels(seed, task, n=40, classes=5, unknown=0.0):
    rng = np.random.default_rng([seed, 1])
    high, size = (classes, n) if task == "multiclass" else (2, (n, classes))
    y = rng.integers(high, size=size).astype(float)
    y[rng.random(y.shape) < unknown] = np.nan
    return y


def looped_ece(confidence, right, bins=15):
    """Guo's sum over bins, image by image."""
    cells = {}
    for c, r in zip(confidence, right, strict=True):
        cells.setdefault(max(ceil(c * bins), 1), []).append((c, r))
    n = len(confidence)
    return sum(
        len(cell) / n * abs(np.mean([r for _, r in cell]) - np.mean([c for c, _ in cell]))
        for cell in cells.values()
    )


def all_metrics(z, p, y, task):
    found = {
        "entropy": entropy(p, task),
        "mean_confidence": mean_confidence(p, task),
        "two_sided": mean_confidence_two_sided(p),
        "margin": margin(p, task),
        "ece": ece(p, y, task, minimum=1),
        "prediction_std": prediction_std(p),
        "nuclear_norm": nuclear_norm(p, task),
        "energy": energy(z, task),
        "mde": mde(z, task, count=len(z)),
        "mano": mano(z, task),
    }
    return {name: result.value for name, result in found.items()}


def test_entropy_of_a_uniform_softmax_is_log_c_and_of_a_certain_one_0():
    assert entropy(np.full((3, 8), 1 / 8), "multiclass").value == pytest.approx(log(8))
    assert entropy(np.eye(8), "multiclass").value == pytest.approx(0, abs=1e-11)


def test_entropy_of_a_coin_toss_is_1_and_of_a_certain_label_0():
    assert entropy(np.full((3, 4), 0.5), "multilabel").value == pytest.approx(1)
    assert entropy(np.eye(4), "multilabel").value == pytest.approx(0, abs=1e-11)


@given(seeds)
@settings(max_examples=20)
def test_entropy_is_that_of_scipy(seed):
    _, p = outputs(seed, "multiclass")
    assert entropy(p, "multiclass").value == pytest.approx(stats.entropy(p, axis=1).mean())
    _, p = outputs(seed, "multilabel")
    bits = stats.entropy(np.stack([p, 1 - p]), base=2, axis=0)
    assert entropy(p, "multilabel").value == pytest.approx(bits.mean())


def test_confidence_and_margin_by_hand():
    p = [[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]
    assert mean_confidence(p, "multiclass").value == pytest.approx(0.65)
    assert margin(p, "multiclass").value == pytest.approx((0.5 + 0.3) / 2)
    p = [[0.9, 0.2], [0.1, 0.4]]
    assert mean_confidence(p, "multilabel").value == pytest.approx((0.9 + 0.4) / 2)
    assert mean_confidence_two_sided(p).value == pytest.approx((0.9 + 0.8 + 0.9 + 0.6) / 4)
    assert margin(p, "multilabel").value == pytest.approx((0.8 + 0.6 + 0.8 + 0.2) / 4)


def test_top_label_ece_by_hand():
    # Two bins: 0.6 right and 0.8 wrong share the upper one, 0.4 right is alone in the lower.
    p = [[0.6, 0.2, 0.2], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]]
    expected = 2 / 3 * abs(1 / 2 - 0.7) + 1 / 3 * abs(1 - 0.4)
    assert ece(p, [0, 2, 2], "multiclass", bins=2).value == pytest.approx(expected)


def test_multilabel_ece_by_hand():
    # First class: {0.1, 0.3} with one positive, {0.9, 0.7} with two; second: all in one bin.
    p = np.array([[0.1, 0.6], [0.3, 0.8], [0.9, 0.7], [0.7, 0.9]])
    y = [[0, 1], [1, 0], [1, 1], [1, 0]]
    first = 1 / 2 * abs(1 / 2 - 0.2) + 1 / 2 * abs(1 - 0.8)
    second = abs(1 / 2 - 0.75)
    found = ece(p, y, "multilabel", bins=2, minimum=1)
    assert found.value == pytest.approx((first + second) / 2)
    assert found.reason == ""


def test_a_bin_of_ece_holds_its_upper_edge():
    p, y = np.array([[0.5], [0.4], [0.6]]), np.array([[1], [0], [1]])
    expected = 2 / 3 * abs(1 / 2 - 0.45) + 1 / 3 * abs(1 - 0.6)
    assert ece(p, y, "multilabel", bins=2, minimum=1).value == pytest.approx(expected)


@given(seeds, st.integers(1, 20))
@settings(max_examples=40)
def test_ece_is_the_loop_over_bins_without_unknown_labels(seed, bins):
    _, p = outputs(seed, "multiclass")
    y = random_labels(seed, "multiclass", unknown=0.2)
    known = ~np.isnan(y)
    right = (p.argmax(axis=1) == y)[known]
    expected = looped_ece(p.max(axis=1)[known], right, bins)
    assert ece(p, y, "multiclass", bins).value == pytest.approx(expected, abs=1e-12)

    _, p = outputs(seed, "multilabel")
    y = random_labels(seed, "multilabel", unknown=0.2)
    known = ~np.isnan(y)
    single = [looped_ece(p[k, c], y[k, c], bins) for c, k in enumerate(known.T)]
    found = ece(p, y, "multilabel", bins, minimum=1)
    assert found.value == pytest.approx(np.mean(single), abs=1e-12)


def test_multilabel_ece_skips_classes_of_fewer_than_10_positives_and_says_so():
    _, p = outputs(0, "multilabel", n=30, classes=3)
    y = np.zeros((30, 3))
    y[:10, 0], y[:9, 1], y[:20, 2] = 1, 1, 1
    found = ece(p, y, "multilabel")
    assert found.value == pytest.approx(np.mean([looped_ece(p[:, c], y[:, c]) for c in (0, 2)]))
    assert "2 of 3 classes" in found.reason
    none = ece(p, y, "multilabel", minimum=21)
    assert isnan(none.value) and "fewer than 21 positives" in none.reason


@pytest.mark.parametrize("task", TASKS)
def test_ece_without_labels_is_not_available(task):
    _, p = outputs(0, task)
    y = random_labels(0, task, unknown=1.0)
    for labels in (None, y):
        found = ece(p, labels, task)
        assert isnan(found.value) and "label" in found.reason


@given(seeds)
@settings(max_examples=20)
def test_the_variances_of_prediction_std_are_half_of_the_total_over_all_pairs(seed):
    _, p = outputs(seed, "multiclass", n=12, classes=3)
    total = np.mean([((a - b) ** 2).sum() for a, b in combinations(p, 2)])
    columns = [prediction_std(p[:, [c]]).value for c in range(3)]
    assert sum(std**2 for std in columns) == pytest.approx(total / 2)
    assert prediction_std(p).value == pytest.approx(np.mean(columns))


def test_nuclear_norm_of_certain_and_balanced_predictions_is_1():
    p = np.tile(np.eye(4), (5, 1))
    assert nuclear_norm(p, "multiclass").value == pytest.approx(1)
    assert nuclear_norm(p, "multilabel").value == pytest.approx(1)


def test_nuclear_norm_of_certain_predictions_is_the_sum_of_roots_of_class_counts():
    p = np.repeat(np.eye(3), [9, 4, 1], axis=0)
    assert nuclear_norm(p, "multiclass").value == pytest.approx((3 + 2 + 1) / sqrt(3 * 14))
    assert nuclear_norm(p, "multilabel").value == pytest.approx((3 + 2 + 1) / (sqrt(3) * sqrt(14)))


def test_nuclear_norm_of_a_constant_model_is_that_of_rank_1():
    row = np.array([0.5, 0.3, 0.2])
    for n in (2, 50):
        p, least = np.tile(row, (n, 1)), sqrt(min(n, 3))
        assert nuclear_norm(p, "multiclass").value == pytest.approx(np.linalg.norm(row) / least)
        assert nuclear_norm(p, "multilabel").value == pytest.approx(1 / least)


def test_nuclear_norm_of_multilabel_outputs_does_not_depend_on_their_scale():
    _, p = outputs(3, "multilabel")
    assert nuclear_norm(p / 7, "multilabel").value == pytest.approx(
        nuclear_norm(p, "multilabel").value
    )
    none = nuclear_norm(np.zeros((4, 3)), "multilabel")
    assert isnan(none.value) and "0" in none.reason


@given(seeds, st.sampled_from([1.0, 300.0]))
@settings(max_examples=20)
def test_energy_and_mde_are_the_loops_over_images(seed, scale):
    for task in TASKS:
        z = scale * outputs(seed, task)[0]
        if task == "multiclass":
            e = [-special.logsumexp(row) for row in z]
        else:
            e = [-sum(special.logsumexp([0, logit]) for logit in row) for row in z]
        assert energy(z, task).value == pytest.approx(-np.mean(e))
        for count in (10, 40):
            some = e[:count]
            expected = log(-np.mean([one - special.logsumexp(some) for one in some]))
            assert mde(z, task, count).value == pytest.approx(expected)


def test_mde_takes_the_first_images_and_says_where_they_are_too_few():
    z, _ = outputs(1, "multiclass")
    assert mde(z, "multiclass", 10) == mde(z[:10], "multiclass", 10)
    assert mde(z, "multiclass", 40).reason == ""
    short = mde(z, "multiclass")
    assert short.value == mde(z, "multiclass", 40).value
    assert "40 images" in short.reason and "2000" in short.reason


@given(seeds)
@settings(max_examples=20)
def test_mano_is_the_mean_fourth_power_of_what_the_gate_chooses(seed):
    z, p = outputs(seed, "multiclass")
    raised = [[1 + x + x**2 / 2 for x in row] for row in z]
    sigma = [[(x - min(row)) / sum(y - min(row) for y in row) for x in row] for row in raised]
    below, above = mano(z, "multiclass", gate=1e9), mano(z, "multiclass", gate=0)
    assert below.value == pytest.approx(np.mean(np.array(sigma) ** 4) ** 0.25)
    assert above.value == pytest.approx(np.mean(special.softmax(z, axis=1) ** 4) ** 0.25)
    assert below.reason != above.reason
    z, p = outputs(seed, "multilabel")
    assert mano(z, "multilabel").value == pytest.approx(np.mean([p**4, (1 - p) ** 4]) ** 0.25)


def test_mano_of_certain_outputs_is_largest_and_of_equal_ones_least():
    certain, equal = 1e3 * np.tile(np.eye(4), (3, 1)), np.ones((12, 4))
    assert mano(certain, "multiclass").value == pytest.approx((1 / 4) ** 0.25)
    assert mano(equal, "multiclass").value == pytest.approx(1 / 4)
    assert mano(equal, "multiclass", gate=0).value == pytest.approx(1 / 4)
    assert mano(np.zeros((5, 3)), "multilabel").value == pytest.approx(1 / 2)
    assert mano(certain - 500, "multilabel").value == pytest.approx((1 / 2) ** 0.25)


@pytest.mark.parametrize("task", TASKS)
def test_a_constant_model_has_every_metric_and_no_spread(task):
    z, p = (np.tile(x[0], (30, 1)) for x in outputs(5, task))
    found = all_metrics(z, p, random_labels(5, task, n=30), task)
    assert np.isfinite(list(found.values())).all()
    assert found["prediction_std"] == pytest.approx(0, abs=1e-15)
    assert found["mde"] == pytest.approx(log(log(30)))


@given(seeds, st.sampled_from(TASKS))
@settings(max_examples=40)
def test_the_order_of_the_images_changes_nothing(seed, task):
    z, p = outputs(seed, task)
    y = random_labels(seed, task, unknown=0.1)
    order = np.random.default_rng([seed, 2]).permutation(len(z))
    moved = all_metrics(z[order], p[order], y[order], task)
    assert moved == pytest.approx(all_metrics(z, p, y, task), rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("task", TASKS)
def test_no_images_and_no_classes_are_reasons(task):
    for empty, word in ((np.empty((0, 3)), "images"), (np.empty((3, 0)), "classes")):
        found = [
            *(metric(empty, task) for metric in (entropy, mean_confidence, margin, nuclear_norm)),
            *(metric(empty, task) for metric in (energy, mde)),
            ece(empty, None, task),
            prediction_std(empty),
            mean_confidence_two_sided(empty),
        ]
        assert all(isnan(one.value) and word in one.reason for one in found)


def test_one_image_has_no_spread_and_one_class_no_margin():
    one = np.array([[0.2, 0.8]])
    for found in (prediction_std(one), mde(one, "multiclass")):
        assert isnan(found.value) and "2 images" in found.reason
    found = margin(np.ones((4, 1)), "multiclass")
    assert isnan(found.value) and "2 classes" in found.reason


def test_what_is_no_output_is_refused():
    with pytest.raises(ValueError, match="probabilities lie in"):
        entropy([[2.0, -1.0]], "multiclass")
    with pytest.raises(ValueError, match="probabilities lie in"):
        nuclear_norm([[np.nan, 1.0]], "multilabel")
    with pytest.raises(ValueError, match="not finite"):
        energy([[np.nan, 1.0]], "multiclass")
    with pytest.raises(ValueError, match="task is"):
        margin([[0.5, 0.5]], "softmax")
    with pytest.raises(ValueError, match="below 2"):
        ece([[0.5, 0.5]], [2], "multiclass")
    with pytest.raises(ValueError, match="do not match"):
        ece([[0.5, 0.5]], [0], "multilabel")
