"""Made-up profiles of models, as the analyses of cached outputs read them."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from stamp.report.analyses.bounds import table as bounds
from stamp.report.analyses.layers import table as layers
from stamp.report.analyses.nuisance import table as nuisance
from stamp.report.analyses.ordering import table as ordering
from stamp.report.profiles.rows import as_table, entry

DRAWS = 7


def profile(name: str, quality: float, rng: np.random.Generator) -> list[dict[str, Any]]:
    """A made-up profile of a model that does better the higher its quality."""
    ends = {"low": 0.1, "high": 0.2, "n": 50}

    def near(centre: float, noise: float = 0.05) -> float:
        return float(centre + noise * rng.normal())

    if name == "gaps":
        rows = [entry("stamp", g, near(quality - 0.02 * g), **ends) for g in (1, 2, 10)]
        rows += [entry("within", g, near(0.3), n=50) for g in (1, 2, 10)]
        return rows + [entry("changed", g, (10 + g) / 50, n=50) for g in (1, 2, 10)]
    if name == "seeds":
        return [
            entry(kind, draw, near(quality, 0.02), n=50)
            for kind in ("semantic", "random", "both")
            for draw in range(DRAWS)
        ]
    if name == "layers":
        depth = zip(layers.LAYERS, (0.1, 0.2, 0.4, 0.8, 1.0), strict=True)
        return [
            entry(kind, layer, near(quality * share), **ends)
            for layer, share in list(depth)
            for kind in layers.KINDS
        ]
    if name == "nuisance":
        return [
            entry("ratio", kind, near(0.5 - 0.3 * quality, 0.03 * at), **ends)
            for at, kind in enumerate(nuisance.AUGMENTATIONS, 1)
        ]
    if name == "robustness":
        rows = [entry("metric", "clean", near(0.6 + 0.2 * quality), **ends)]
        for at, change in enumerate(("blur", "jpeg", "noise", "small_rotation", "mean"), 1):
            fall = near(0.03 * at)
            rows += [entry("metric", change, rows[0]["value"] - fall, **ends)]
            rows += [entry("fall", change, fall, low=fall - 0.02, high=fall + 0.02, n=50)]
            rows += [entry("stability", change, near(quality), **ends)]
        return [*rows, entry("metric:clinic/all", "clean", near(0.7), **ends)]
    if name == "ordering":
        means = np.array([0.1, 0.2, 0.22, 0.5]) + 0.03 * rng.normal(size=4)
        rows = [entry(key, None, float(m), n=40) for key, m in zip("BACD", means, strict=True)]
        rows += [entry("probability", part, near(0.7)) for part in (*ordering.STEPS, "all")]
        return [*rows, entry("order", None, float(np.all(np.diff(means) >= 0)))]
    if name == "cosines":
        delta = near(quality, 0.2)
        rows = [entry("cosine", part, near(0.5), n=50) for part in ("semantic", "random")]
        rows += [entry("difference", None, delta - 0.4, low=delta - 0.5, high=delta - 0.3)]
        rows += [entry("delta", None, delta, low=delta - 0.1, high=delta + 0.1)]
        return [*rows, entry("log10_p", None, -20 * delta, n=100)]
    if name == "identifiability":
        return [
            entry("centroid_gap", None, near(quality), n=8),
            entry("side_gap", None, near(quality, 0.2), n=8),
            entry("lipschitz", None, near(1 - quality, 0.3), n=100),
            entry("lipschitz_spectral", None, near(2 - quality, 0.2), n=20),
            entry("lipschitz_pairs", None, near(1 - quality, 0.1), n=50),
        ]
    return [entry(term, None, near(0.5 + quality), n=8) for term in bounds.TERMS]


def profiles(name: str, scores: pl.DataFrame) -> pl.DataFrame:
    """A made-up profile of every model."""
    rng = np.random.default_rng(11)
    rows = scores.select("model", "raw").iter_rows()
    return pl.concat(as_table(model, profile(name, raw, rng)) for model, raw in rows)
