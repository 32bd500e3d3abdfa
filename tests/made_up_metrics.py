"""A made-up study whose models have other predictors."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from stamp.metrics.value import COLUMNS
from stamp.report import outcomes
from stamp.report.analysis import AnalysisData

MODELS = [f"m{number:02d}" for number in range(12)]

HOW = {"far": "whole", "near": "whole"}


def study(**changes: Any) -> AnalysisData:
    rng = np.random.default_rng(4)
    quality = np.arange(12) / 12
    evaluations, metrics = [], []
    common = {"class": "macro", "metric": "auroc", "domain": "all", "se": 0.01, "n": 50}
    for number, model in enumerate(MODELS):
        for view, value in (
            ("source", quality[number] + rng.normal(0, 0.2)),
            ("far", quality[number]),
            ("near", quality[number] + rng.normal(0, 0.1)),
        ):
            share = float(np.clip(value, 0, 1))
            evaluations.append({"model": model, "view": view, "value": share, **common})
        blank = {"view": None, "domain": None, "n": 9, "reason": None}
        metrics.append(
            {"model": model, "metric": "entropy", "value": -(quality[number] ** 3), **blank}
        )
        metrics.append(
            {"model": model, "metric": "ece", "value": None, **blank, "reason": "no labels"}
        )
        gap = None if number == 3 else quality[number] + rng.normal(0, 0.3)
        for view in ("far", "near"):
            own = {"view": view, "domain": "all", "n": 9, "reason": None}
            metrics.append({"model": model, "metric": "doc", "value": gap, **own})
    scores = pl.DataFrame(
        {
            "model": MODELS,
            "stamp": quality + rng.normal(0, 0.2, 12),
            "raw": quality + rng.normal(0, 0.2, 12),
            "degenerate": [False] * 12,
            "excluded": pl.Series([None] * 11 + ["near chance"], dtype=pl.String),
            "excluded_temperature": pl.Series([None] * 12, dtype=pl.String),
            "excluded_chance": pl.Series([None] * 12, dtype=pl.String),
            "contaminated": pl.Series([None] * 12, dtype=pl.String),
        }
    )
    texts = {"label": "x", "family": "f", "objective": "o", "regime": "r"}
    parts: dict[str, Any] = {
        "scores": scores,
        "outcomes": outcomes.outcomes(pl.DataFrame(evaluations), HOW, ["near"]),
        "evaluations": pl.DataFrame(),
        "n_pairs": pl.DataFrame(),
        "calibrations": {},
        "metrics": pl.DataFrame(metrics, schema={"model": pl.String, **COLUMNS}),
        "models": dict.fromkeys(MODELS, texts),
        "texts": {
            "targets": {"far": "Far", "near": "Near"},
            "relabelled": ["near"],
            "outcomes": HOW,
        },
        "settings": {"permutations": 100, "resamples": 300, "level": 0.95},
        "seed": 1,
    }
    return AnalysisData(**{**parts, **changes})
