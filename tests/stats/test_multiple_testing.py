"""Corrections of p for several tests."""

from __future__ import annotations

import numpy as np

from stamp.stats.multiple_testing import holm


def test_holm_is_the_published_example_and_keeps_order() -> None:
    p = np.array([0.01, 0.04, 0.03, 0.005, np.nan])
    np.testing.assert_allclose(holm(p), [0.03, 0.06, 0.06, 0.02, np.nan])
    assert holm(np.array([0.6, 0.9])).tolist() == [1.0, 1.0]
