"""Embeddings on the source's principal axes: a rotation, or the largest part of wide ones."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from sklearn.decomposition import PCA

from stamp.metrics.of_embeddings.domain_distance import SourceKernel, mmd
from stamp.metrics.of_embeddings.principal_axes import WIDEST, PrincipalAxes
from stamp.metrics.of_embeddings.transferability import h_score, logme


def test_embeddings_that_are_not_wide_are_only_turned() -> None:
    rng = np.random.default_rng(0)
    h, y = rng.normal(size=(80, 6)) @ rng.normal(size=(6, 6)) + 3, rng.integers(0, 3, 80) * 1.0
    turned = PrincipalAxes.of(h).on(h)
    assert pdist(turned) == pytest.approx(pdist(h))
    for measure in (logme, h_score):
        found = measure(turned, y, "multiclass").value
        assert found == pytest.approx(measure(h, y, "multiclass").value)


@pytest.mark.parametrize("width", [40, WIDEST + 60])
def test_axes_are_those_of_a_principal_component_analysis(width: int) -> None:
    rng = np.random.default_rng(1)
    h = rng.normal(size=(200, width)) * np.linspace(3, 0.1, width)
    expected = PCA(n_components=min(30, width)).fit(h).components_
    found = PrincipalAxes.of(h).axes.T[:30]
    assert np.abs((found * expected).sum(axis=1)) == pytest.approx(1, abs=1e-6)
    assert PrincipalAxes.of(h).axes.shape == (width, min(width, 199))


def test_few_images_are_seen_on_half_as_many_axes() -> None:
    rng = np.random.default_rng(2)
    axes = PrincipalAxes.of(rng.normal(size=(900, 20)))
    there = rng.normal(size=(24, 20))
    assert (axes.on_leading(there) == there @ axes.axes[:, :12]).all()
    labels = np.repeat([0.0, 1.0], 12)
    assert np.isfinite(h_score(axes.on_leading(there), labels, "multiclass").value)


def test_distances_to_few_images_are_over_all_axes_of_both_sides() -> None:
    rng = np.random.default_rng(3)
    source, target = rng.normal(size=(24, 20)), rng.normal(size=(7, 20)) + 1
    axes = PrincipalAxes.of(source)
    found = mmd(SourceKernel.of(axes.on(source)), axes.on(target)).value
    assert found == pytest.approx(mmd(SourceKernel.of(source), target).value)
