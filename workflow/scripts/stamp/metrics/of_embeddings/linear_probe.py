"""A linear probe: how well embeddings tell kinds of images apart that it was not trained on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def held_out_accuracy(
    train: tuple[NDArray[np.float64], NDArray[np.int64]],
    test: tuple[NDArray[np.float64], NDArray[np.int64]],
    penalty: float = 1.0,
) -> float:
    """Accuracy on ``test`` of a ridge classifier on the standardised embeddings of ``train``.

    Both are embeddings [n, d] and the kind of each [n].
    """
    from sklearn.linear_model import RidgeClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    probe = make_pipeline(StandardScaler(), RidgeClassifier(alpha=penalty))
    return float(probe.fit(*train).score(*test))
