"""Probabilities as logits: what is done with models whose last layer is a softmax or a sigmoid.

STAMP needs logits, since a temperature divides them. Of a softmax the logits are log p up to a
number that all classes share, which no softmax notices at any temperature; of a sigmoid they are
log(p / (1 - p)). A probability that was rounded to 0 or 1 has lost its logit: p is clipped to at
least ``LEAST_SOFTMAX``, or to ``[LEAST_SIGMOID, 1 - LEAST_SIGMOID]``, the last step below 1 that
float32 has being 6e-8.
"""

from __future__ import annotations

import numpy as np

from stamp.core.errors import UserError

LEAST_SOFTMAX = 1e-30
LEAST_SIGMOID = 1e-7
PERCENT = "divide by 100"
SUM = 0.01  # how far a row of rounded probabilities may be from a sum of 1


def to_logits(p: np.ndarray, kind: str) -> np.ndarray:
    """The logits of probabilities [n, C] of a ``softmax`` or of ``sigmoid``s, in float64."""
    p = np.asarray(p, np.float64)
    if kind == "softmax":
        return np.log(np.clip(p, LEAST_SOFTMAX, None))
    p = np.clip(p, LEAST_SIGMOID, 1 - LEAST_SIGMOID)
    return np.log(p) - np.log1p(-p)


def looks_like(values: np.ndarray, kind: str) -> bool:
    """Whether numbers [n, C] could be probabilities of the kind: none outside [0, 1], sums of 1."""
    inside = bool(((values >= 0) & (values <= 1)).all())
    return inside and (kind == "sigmoid" or bool((abs(values.sum(axis=1) - 1) <= SUM).all()))


def in_percent(values: np.ndarray, kind: str) -> bool:
    """Whether numbers [n, C] look like probabilities in percent: some above 1, none above 100."""
    return bool((values > 1).any()) and looks_like(np.asarray(values, np.float64) / 100, kind)


def check(values: np.ndarray, kind: str, where: str, all_classes: bool = True) -> None:
    """Refuse what can't be probabilities; of some of the classes the sum may be below 1."""
    if in_percent(values, kind):
        raise UserError(
            f"{where}: {float(values.max()):g} is no probability but percent: {PERCENT}"
        )
    if ((values < 0) | (values > 1)).any():
        worst = float(values.flat[int(np.argmax(np.abs(values - 0.5)))])
        raise UserError(f"{where}: {worst:g} is no probability: are these logits?")
    sums = values.sum(axis=1)
    wrong = (sums > 1 + SUM) | ((sums < 1 - SUM) if all_classes else False)
    if kind == "softmax" and wrong.any():
        found = float(sums[int(np.argmax(wrong))])
        raise UserError(f"{where}: the probabilities of an image sum to {found:.3g}, not to 1")
