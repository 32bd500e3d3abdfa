"""Distances of source and target against loops, and on clouds whose distance is known."""

from __future__ import annotations

from math import exp, sqrt

import numpy as np
import pytest

from stamp.metrics.of_embeddings.domain_distance import IMAGES, SourceKernel, mmd, proxy_a_distance
from stamp.metrics.of_embeddings.principal_axes import spaced


def clouds(n: int, m: int, gap: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 4)), rng.normal(size=(m, 4)) + gap


def test_mmd_is_the_double_loop_over_both_samples() -> None:
    s, t = clouds(23, 17, 0.7)
    distances = [
        sqrt(((s[i] - s[j]) ** 2).sum()) for i in range(len(s)) for j in range(i + 1, len(s))
    ]
    width = float(np.median(distances))

    def mean(a: np.ndarray, b: np.ndarray) -> float:
        each = [exp(-((x - y) ** 2).sum() / (2 * width**2)) for x in a for y in b]
        return sum(each) / len(each)

    expected = sqrt(mean(s, s) + mean(t, t) - 2 * mean(s, t))
    assert mmd(SourceKernel.of(s), t).value == pytest.approx(expected)


def test_mmd_of_equal_samples_is_0_and_of_distant_ones_the_largest() -> None:
    s, _ = clouds(40, 40)
    kernel = SourceKernel.of(s)
    assert mmd(kernel, s[::-1]).value == pytest.approx(0, abs=1e-7)
    # nothing is shared: what is left is how alike the images of each side are
    assert mmd(kernel, s + 1e3).value == pytest.approx(sqrt(2 * kernel.own))
    assert mmd(kernel, np.full((40, 4), 1e3)).value == pytest.approx(sqrt(kernel.own + 1))


def test_mmd_does_not_depend_on_the_scale_of_embeddings() -> None:
    s, t = clouds(60, 50, 0.5)
    found = mmd(SourceKernel.of(s), t).value
    assert mmd(SourceKernel.of(100 * s), 100 * t).value == pytest.approx(found)


def test_the_proxy_distance_is_2_for_separable_clouds_and_about_0_for_the_same() -> None:
    s, t = clouds(400, 300, 20.0)
    assert proxy_a_distance(s, t).value == 2
    same = np.random.default_rng(1).normal(size=(800, 4))
    assert proxy_a_distance(same[:400], same[400:]).value < 0.25
    assert proxy_a_distance(s, s).value == pytest.approx(0, abs=0.05)


def test_the_proxy_distance_is_that_of_the_best_linear_rule_for_two_gaussians() -> None:
    """Two normal clouds whose means are 2 apart: the best error is Phi(-1) = .1587."""
    rng = np.random.default_rng(2)
    s, t = rng.normal(size=(IMAGES, 3)), rng.normal(size=(IMAGES, 3))
    t[:, 0] += 2
    assert proxy_a_distance(s, t).value == pytest.approx(2 * (1 - 2 * 0.1587), abs=0.12)


def test_too_few_images_are_a_reason() -> None:
    s, t = clouds(30, 3)
    assert "3 images" in proxy_a_distance(s, t).reason
    assert mmd(SourceKernel.of(s), t[:1]).reason == "fewer than 2 images"
    assert "is 0" in mmd(SourceKernel.of(np.ones((9, 2))), np.ones((9, 2))).reason


def test_of_many_images_some_are_taken_evenly() -> None:
    h = np.arange(1201.0)[:, None]
    assert spaced(h, 5)[:, 0].tolist() == [0, 300, 600, 900, 1200]
    assert len(spaced(h, IMAGES)) == IMAGES and spaced(h[:9], IMAGES).shape == (9, 1)
