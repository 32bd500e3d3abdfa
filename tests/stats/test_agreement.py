"""Agreement of many models in decisions and in order, against loops and scipy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau

from stamp.stats import agreement
from stamp.stats.agreement import PackedDecisions


def concordances(scores: np.ndarray, pairs: int = agreement.PAIRS) -> np.ndarray:
    """Of scores [M, n, C]."""
    drawn = agreement.random_pairs(scores.shape[1], pairs)
    return agreement.concordances([agreement.packed_order(one, drawn) for one in scores])


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(2, 1100), st.booleans())
def test_agreement_is_counted_over_the_decisions_that_both_have_taken(
    seed: int, kinds: int, gaps: bool
) -> None:
    rng = np.random.default_rng(seed)
    classes = rng.integers(kinds, size=(5, int(rng.integers(1, 200))))
    classes[1] = np.where(rng.random(classes.shape[1]) < 0.7, classes[0], classes[1])
    if gaps:
        classes = np.where(rng.random(classes.shape) < 0.2, -1, classes)
    found = agreement.agreements([PackedDecisions.of(one, kinds) for one in classes])
    for i in range(5):
        for j in range(5):
            both = (classes[i] >= 0) & (classes[j] >= 0)
            same = (classes[i] == classes[j])[both]
            expected = same.mean() if both.any() else np.nan
            assert found[i, j] == pytest.approx(expected, nan_ok=True)


def test_hamming_agreement_is_over_images_and_classes() -> None:
    decisions = np.random.default_rng(17).integers(2, size=(4, 30, 5)).astype(np.int8)
    decisions[0, :, 2:] = -1
    found = agreement.agreements([PackedDecisions.of(one) for one in decisions])
    assert found[0, 1] == pytest.approx(np.mean(decisions[0, :, :2] == decisions[1, :, :2]))
    assert found[2, 3] == pytest.approx(np.mean(decisions[2] == decisions[3]))


@pytest.mark.parametrize("ties", [False, True])
def test_concordance_is_kendall_s_tau_b_of_scipy(ties: bool) -> None:
    rng = np.random.default_rng(11)
    scores = rng.normal(size=(3, 60, 2)) + rng.normal(size=(1, 60, 2))
    if ties:
        scores = np.round(scores)
    found = concordances(scores, 400_000)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        taus = [kendalltau(scores[i, :, c], scores[j, :, c]).statistic for c in range(2)]
        assert found[i, j] == pytest.approx((np.mean(taus) + 1) / 2, abs=0.01)
    np.testing.assert_allclose(np.diag(found), 1, atol=1e-6)


def test_concordance_leaves_out_the_classes_that_a_model_lacks() -> None:
    scores = np.random.default_rng(12).normal(size=(3, 50, 2))
    scores[2, :, 1] = np.nan
    found, alone = concordances(scores), concordances(scores[:, :, :1])
    assert found[0, 2] == pytest.approx(alone[0, 2])
    assert found[0, 1] != pytest.approx(alone[0, 1])
    scores[2] = np.nan
    assert np.isnan(concordances(scores)[0, 2])
