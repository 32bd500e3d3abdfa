"""A made-up study of any size, as the analyses read one: scores, outcomes and metrics of models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from scipy.special import ndtr

from stamp.config.registries.metrics import METRICS, Metric
from stamp.metrics.value import COLUMNS
from stamp.report.analysis import AnalysisData
from stamp.report.outcomes import outcomes
from stamp.scoring.score import N_PAIRS

FAMILIES = ("ResNet", "DenseNet", "ConvNeXt", "ViT", "Swin", "MLP-Mixer", "EfficientNet", "RegNet")
OBJECTIVES = ("supervised", "self-supervised", "contrastive", "from scratch")
REGIMES = ("fine-tuned", "probe", "zero-shot")
KINDS = ("blur", "noise", "contrast")
NUMBERS = (500, 1000, 2000, 5000)


def study(
    models: int = 44,
    targets: int = 5,
    permutations: int = 10_000,
    resamples: int = 10_000,
    seed: int = 0,
    metrics: Sequence[Metric] = METRICS,
) -> AnalysisData:
    """A study of models whose quality shows in the score, the source metric and every target.

    Values are AUROCs on the probit scale of a common quality plus noise of their own. A degenerate
    model, one near chance and one that was trained on the first target are among them.
    """
    rng = np.random.default_rng([seed, models, targets])
    keys = [f"model_{number:02d}" for number in range(models)]
    quality = rng.normal(0.9, 0.3, models)
    raw = np.clip(0.35 + 0.25 * quality + rng.normal(0, 0.06, models), 0.02, 0.98)
    names = [f"target_{number + 1}" for number in range(targets)]
    evaluations = [
        row
        for at, key in enumerate(keys)
        for row in _evaluated(key, float(quality[at]), names, rng)
    ]
    how = dict.fromkeys(names, "whole")
    table = pl.DataFrame(evaluations, infer_schema_length=None)
    return AnalysisData(
        scores=_scores(keys, raw, rng),
        outcomes=outcomes(table, how),
        evaluations=table,
        n_pairs=_counts(keys, raw, rng),
        calibrations={
            key: {"model": key, "value": 1 + at / 20, "bound": None, "performance": 0.7}
            for at, key in enumerate(keys)
        },
        metrics=_metrics(metrics, keys, quality, names, rng),
        models={
            key: {
                "label": f"{FAMILIES[at % len(FAMILIES)]} {at:02d}",
                "family": FAMILIES[at % len(FAMILIES)],
                "objective": OBJECTIVES[at % 3 if at % 5 else 3],
                "regime": REGIMES[at % 3],
            }
            for at, key in enumerate(keys)
        },
        texts={
            "title": "A made-up study",
            "notice": "Made-up numbers.",
            "task": "multilabel",
            "level": 0.95,
            "targets": {name: f"Hospital {name[-1]}" for name in names},
            "outcomes": how,
            "matched": [],
            "relabelled": [],
        },
        settings={"permutations": permutations, "resamples": resamples, "level": 0.95},
        seed=seed,
    )


def _evaluated(
    key: str, quality: float, names: list[str], rng: np.random.Generator
) -> list[dict[str, Any]]:
    """A model's AUROCs: source, targets, strata of the first target, kinds of the last."""
    common = {"model": key, "class": "macro", "metric": "auroc", "se": 0.01, "n": 2000}
    rows = [{**common, "view": "source", "domain": "all", "value": _auroc(quality, 0.08, rng)}]
    for number, name in enumerate(names):
        shifted = quality - 0.1 * (number + 1)
        spread = 0.1 + 0.03 * number
        rows.append(
            {**common, "view": name, "domain": "all", "value": _auroc(shifted, spread, rng)}
        )
    rows += [
        {**common, "view": names[0], "domain": f"age-{band}", "value": _auroc(quality, 0.15, rng)}
        for band in range(1, 5)
    ]
    rows += [
        {**common, "view": names[-1], "domain": f"{kind}-{level}", "value": _auroc(at, 0.15, rng)}
        for kind in KINDS
        for level in range(1, 4)
        for at in [quality - 0.1 * level]
    ]
    return rows


def _auroc(quality: float, spread: float, rng: np.random.Generator) -> float:
    return float(ndtr(quality + rng.normal(0, spread)))


def _scores(keys: list[str], raw: np.ndarray, rng: np.random.Generator) -> pl.DataFrame:
    count = len(keys)
    near_chance = [None if at != 4 else "AUROC 0.52 is below 0.55" for at in range(count)]
    total = rng.uniform(0.05, 0.3, count)
    return pl.DataFrame(
        {
            "model": keys,
            "stamp": pl.Series([None if at == 2 else float(raw[at]) for at in range(count)]),
            "raw": raw,
            "low": raw - 0.02,
            "high": raw + 0.02,
            "se_bootstrap": [0.01] * count,
            "estimator": ["exact"] * count,
            "sampled_stamp": raw + rng.normal(0, 0.01, count),
            "within": total * (1 - raw),
            "total": total,
            "spread": rng.uniform(0.01, 0.2, count),
            "parameters": rng.integers(2_000_000, 300_000_000, count),
            "temperature": rng.uniform(0.8, 2.5, count),
            "degenerate": [at == 2 for at in range(count)],
            "saturated": [at % 9 == 7 for at in range(count)],
            "leakage": [False] * count,
            "missing": pl.Series([None] * count, dtype=pl.String),
            "temperature_bound": pl.Series([None] * count, dtype=pl.String),
            "excluded": pl.Series(near_chance, dtype=pl.String),
            "excluded_chance": pl.Series(near_chance, dtype=pl.String),
            "excluded_temperature": pl.Series([None] * count, dtype=pl.String),
            "contaminated": pl.Series(
                ["target_1" if at == 6 else None for at in range(count)], dtype=pl.String
            ),
        }
    )


def _counts(keys: list[str], raw: np.ndarray, rng: np.random.Generator) -> pl.DataFrame:
    rows = [
        {
            "model": key,
            "number": number,
            "stamp": float(score),
            "raw": float(score),
            "low": float(score - 2 / number**0.5),
            "high": float(score + 2 / number**0.5),
            "within": 0.1,
            "total": 0.5,
        }
        for key, own in zip(keys, raw, strict=True)
        for number in NUMBERS
        for score in [own + rng.normal(0, 1 / number)]
    ]
    return pl.DataFrame(rows, schema=N_PAIRS)


def metrics(count: int) -> list[Metric]:
    """The registry's metrics, made-up ones added where those are fewer than ``count``."""
    more = range(len(METRICS), count)
    return [*METRICS, *(Metric(f"made_up_{at}", f"Made up {at}", (), 1, "none") for at in more)]


def _metrics(
    of: Sequence[Metric],
    keys: list[str],
    quality: np.ndarray,
    names: list[str],
    rng: np.random.Generator,
) -> pl.DataFrame:
    """Every metric of the registry, of the source or of each target, better or worse at it."""
    rows = []
    for one in of:
        noise = rng.uniform(0.1, 1.5)
        for view in names if one.of_target else [None]:
            found = one.direction * (quality + rng.normal(0, noise, len(keys)))
            where = {"view": view, "domain": "all" if view else None, "n": 2000, "reason": None}
            rows += [
                {"model": key, "metric": one.name, "value": float(value), **where}
                for key, value in zip(keys, found, strict=True)
            ]
    return pl.DataFrame(rows, schema={"model": pl.String, **COLUMNS})
