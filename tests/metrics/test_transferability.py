"""LogME, LEEP and H-score against their published definitions, by brute force."""

from __future__ import annotations

from math import log, pi

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

from stamp.metrics.of_embeddings.transferability import MINIMUM, TOO_WIDE, h_score, leep, logme


def labeled(n: int = 60, width: int = 5, kinds: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, kinds, n).astype(float)
    return rng.normal(size=(n, width)) + rng.normal(size=(kinds, width))[y.astype(int)], y


def evidence(h: np.ndarray, y: np.ndarray) -> float:
    """The largest density of y ~ N(0, h h' / a + I / b), by Nelder and Mead from several starts."""
    n = len(y)

    def less(logs: np.ndarray) -> float:
        a, b = np.exp(np.clip(logs, -30, 30))
        spread = h @ h.T / a + np.eye(n) / b
        return -float(multivariate_normal(np.zeros(n), spread, allow_singular=True).logpdf(y))

    starts = [(-3, 0), (0, 0), (3, 3), (6, 2)]
    found = [minimize(less, x0, method="Nelder-Mead", options={"fatol": 1e-9}) for x0 in starts]
    return -min(one.fun for one in found) / n


@pytest.mark.parametrize("width", [1, 5, 80])
def test_logme_is_the_evidence_at_the_best_precisions(width: int) -> None:
    h, y = labeled(width=width)
    expected = np.mean([evidence(h, (y == one).astype(float)) for one in range(3)])
    assert logme(h, y, "multiclass").value == pytest.approx(expected, abs=1e-5)


def test_logme_of_embeddings_that_say_nothing_is_that_of_noise_alone() -> None:
    rng = np.random.default_rng(1)
    h, y = rng.normal(size=(4000, 2)), rng.integers(0, 2, 4000).astype(float)
    h -= h.mean(axis=0)
    for one in (0, 1):  # orthogonal to both targets, so that no weights help
        target = (y == one).astype(float)
        h -= np.outer(target, target @ h) / (target @ target)
    second = [float((y == one).mean()) for one in (0, 1)]
    expected = np.mean([-0.5 * (log(2 * pi * share) + 1) for share in second])
    assert logme(h, y, "multiclass").value == pytest.approx(expected, abs=1e-4)


def test_h_score_is_the_trace_of_its_covariances() -> None:
    h, y = labeled()
    means = np.stack([h[y == one].mean(axis=0) for one in y])
    expected = np.trace(np.linalg.inv(np.cov(h.T)) @ np.cov(means.T))
    assert h_score(h, y, "multiclass").value == pytest.approx(expected)
    # the pseudoinverse: a dead unit and a copy of another add nothing
    more = np.concatenate([h, np.zeros((len(h), 1)), h[:, :1]], axis=1)
    assert h_score(more, y, "multiclass").value == pytest.approx(expected)


def test_h_score_is_not_given_where_it_would_be_the_same_for_any_embeddings() -> None:
    h, y = labeled(n=40, width=39)
    centred = h - h.mean(axis=0)
    means = np.stack([centred[y == one].mean(axis=0) for one in y])
    always = np.trace(np.linalg.pinv(centred.T @ centred) @ means.T @ means)
    assert always == pytest.approx(2)  # three classes less one
    found = h_score(h, y, "multiclass")
    assert np.isnan(found.value) and found.reason == TOO_WIDE


def test_leep_is_the_log_of_the_expected_empirical_prediction() -> None:
    rng = np.random.default_rng(2)
    p, y = rng.dirichlet(np.ones(4), 50), rng.integers(0, 3, 50).astype(float)
    total = 0.0
    for i in range(50):
        likely = 0.0
        for z in range(4):
            joint = sum(p[j, z] for j in range(50) if y[j] == y[i]) / 50
            likely += joint / (sum(p[j, z] for j in range(50)) / 50) * p[i, z]
        total += log(likely)
    assert leep(p, y, "multiclass").value == pytest.approx(total / 50)


def test_leep_is_0_where_the_outputs_say_the_label_and_the_labels_entropy_where_nothing() -> None:
    y = np.repeat([0.0, 1.0, 2.0], 20)
    assert leep(np.eye(3)[y.astype(int)], y, "multiclass").value == pytest.approx(0)
    assert leep(np.full((60, 3), 1 / 3), y, "multiclass").value == pytest.approx(-log(3))


@pytest.mark.parametrize("measure", [logme, h_score, leep])
def test_of_several_labels_each_is_a_task_over_the_images_that_have_it(measure) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(3)
    y = (rng.random((90, 3)) < 0.4).astype(float)
    y[:10, 0] = np.nan
    y[:, 2] = 0
    y[: MINIMUM - 1, 2] = 1  # too few positives
    x = rng.random((90, 3))
    found = measure(x, y, "multilabel")
    alone = []
    for c in (0, 1):
        known = ~np.isnan(y[:, c])
        truth = y[known, c]
        if measure is leep:
            two = np.stack([1 - x[known, c], x[known, c]], axis=1)
            alone.append(leep(two, truth, "multiclass").value)
        elif measure is logme:
            alone.append(evidence(x[known], truth))
        else:
            alone.append(h_score(x[known], truth, "multiclass").value)
    assert found.value == pytest.approx(np.mean(alone), abs=1e-5)
    assert "over 2 of 3 classes" in found.reason


@pytest.mark.parametrize("measure", [logme, h_score, leep])
def test_without_two_labeled_classes_there_is_a_reason(measure) -> None:  # type: ignore[no-untyped-def]
    x = np.random.default_rng(4).random((30, 3))
    assert measure(x, np.full(30, np.nan), "multiclass").reason == "no image has a label"
    assert "2 classes" in measure(x, np.zeros(30), "multiclass").reason
    assert str(MINIMUM) in measure(x, np.zeros((30, 3)), "multilabel").reason
