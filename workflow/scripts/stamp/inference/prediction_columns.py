"""What is kept of a model's logits where they are too many: a record of four numbers an image."""

from __future__ import annotations

import numpy as np

COLUMNS = ("predicted", "predicted_of_all", "confidence", "entropy")


def predictions_of(logits: np.ndarray, among: np.ndarray) -> np.ndarray:
    """The records [n, 4] of logits [n, C], with the prediction among the classes ``among``."""
    z = logits[:, among].astype(np.float64)
    z -= z.max(axis=1, keepdims=True)
    p = np.exp(z)
    p /= p.sum(axis=1, keepdims=True)
    entropy = -np.sum(p * np.log(np.clip(p, 1e-12, None)), axis=1)
    chosen = among[z.argmax(axis=1)]
    return np.stack([chosen, logits.argmax(axis=1), p.max(axis=1), entropy], axis=1)
