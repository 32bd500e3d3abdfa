"""What float16 logits would change: scores and accuracies of made-up models of 1,000 classes.

Logits of a good classifier have a spread of several units over the classes and a largest value of
ten to thirty, where float16 has steps of 1/128 to 1/64.
"""

from __future__ import annotations

import numpy as np

from benchmarks.row import Row
from stamp.scoring.calibrate import fit_temperature
from stamp.scoring.stamp import probabilities, squared_distances

IMAGES, CLASSES, LABELED, MODELS = 1_000, 1_000, 100, 6


def made_up_logits(rng: np.random.Generator, strength: float) -> tuple[np.ndarray, np.ndarray]:
    """float32 logits with the scale of ImageNet classifiers, and their labels."""
    labels = rng.integers(LABELED, size=IMAGES)
    logits = rng.normal(0, 1.5, (IMAGES, CLASSES))
    logits[np.arange(IMAGES), labels] += strength + 3 * rng.normal(size=IMAGES)
    return logits.astype(np.float32), labels


def stamp_of(logits: np.ndarray, pairs: np.ndarray, temperature: float) -> float:
    """1 - SV / AV over drawn pairs, the first half of them semantic."""
    p = probabilities(logits.astype(np.float64), "multiclass", temperature)
    near, far = (squared_distances(p, *half) for half in np.split(pairs, 2, axis=1))
    return 1 - near.mean() / far.mean()


def main() -> list[Row]:
    """The largest changes over the models, with temperatures fitted to each kind of logits."""
    rng = np.random.default_rng(0)
    scores, temperatures, decisions, ranks = [], [], 0, []
    for strength in np.linspace(4, 14, MODELS):
        logits, labels = made_up_logits(rng, float(strength))
        half = logits.astype(np.float16).astype(np.float32)
        order = np.argsort(labels, kind="stable")
        semantic = np.stack([order[:-1], order[1:]])
        semantic = semantic[:, labels[semantic[0]] == labels[semantic[1]]]
        far = rng.integers(IMAGES, size=semantic.shape)
        pairs = np.concatenate([semantic, far], axis=1)
        both = [fit_temperature(one, labels, "multiclass").value for one in (logits, half)]
        values = [stamp_of(one, pairs, t) for one, t in zip((logits, half), both, strict=True)]
        scores.append(abs(values[0] - values[1]))
        temperatures.append(abs(both[0] - both[1]))
        decisions += int((logits.argmax(axis=1) != half.argmax(axis=1)).sum())
        ranks.append(values)
    same = bool((np.argsort([a for a, _ in ranks]) == np.argsort([b for _, b in ranks])).all())
    of = f"{MODELS} models, {IMAGES:,} images, {CLASSES:,} classes"
    return [
        Row("float16 logits: largest change of STAMP-TS", max(scores), "", "", of),
        Row("float16 logits: largest change of T", max(temperatures)),
        Row("float16 logits: decisions changed", decisions, f"of {MODELS * IMAGES:,}"),
        Row("float16 logits: order of the models kept", float(same), "", "", "1 is yes"),
    ]
