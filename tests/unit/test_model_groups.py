"""Objectives, regimes, backbones, parts of the score and kinds of pairs, on the paper's 44 models.

The scores are those that the paper prints, so that its groups can be computed again; what the
models reach on the targets is made up.
"""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import yaml
from scipy import stats
from test_analyses import axes_of, lines, one, replaced
from test_figures import _check_texts as check_texts

from stamp import outcomes
from stamp.analyses import Data, ablation, backbones, grouping, kinds, objectives, regimes
from stamp.analyses.common_set import common
from stamp.metrics.registry import COLUMNS as METRIC_COLUMNS
from stamp.scoring import COUNTS

ROOT = Path(__file__).parents[2]
ZOO = yaml.safe_load((ROOT / "config" / "zoo" / "medical.yaml").read_text())
# Table tab:stamp_main, in its order, which is that of the zoo.
PRINTED = """
.7764 .7818 .7802 .7760 .7728 .7832 .7786 .7878 .7723 .7540 .7914 .7888 .8042 .8054 .7807 .7935
.7763 .7734 .7870 .7925 .8030 .7997 .7960 .7965 .7994 .7922 .7876 .7942 .7897 .7880 .7755
.7127 .7172 .6658 .7354 .7535 .6258 .7006 .6964 .5997 .7307 .4932 .7510 .7751
"""
SCORES = dict(zip(ZOO, map(float, PRINTED.split()), strict=True))
SETTINGS = {"permutations": 500, "resamples": 300, "level": 0.9}
TARGETS = {"vindr": "VinDr-CXR", "chexpert": "CheXpert", "mimic": "MIMIC-CXR", "rsna": "RSNA"}
TEXTS = {
    "title": "Chest X-rays",
    "notice": "Made up.",
    "task": "multilabel",
    "level": 0.9,
    "targets": TARGETS,
    "outcomes": {},
    "matched": [],
    "relabelled": [],
}


def study(
    keys: list[str] | None = None,
    targets: tuple[str, ...] = tuple(TARGETS),
    degenerate: tuple[str, ...] = (),
    excluded: tuple[str, ...] = (),
    also: tuple[str, ...] = ("labeled", "changed"),
    synthetic: bool = True,
    label: str = "{}",
    settings: dict[str, Any] = SETTINGS,
    **texts: Any,
) -> Data:
    """The chest X-ray study of some models, all of them unless told."""
    rng = np.random.default_rng(11)
    keys = sorted(ZOO if keys is None else keys)
    raw = np.array([SCORES[key] for key in keys])
    count = len(keys)
    shown = [None if key in degenerate else SCORES[key] for key in keys]
    total = rng.uniform(0.005, 0.027, count)
    board: dict[str, Any] = {
        "model": keys,
        "kind": ["temporal"] * count,
        "stamp": pl.Series(shown, dtype=pl.Float64),
        "raw": raw,
        "within": (1 - raw) * (total + 1e-8),
        "total": total,
        "degenerate": [key in degenerate for key in keys],
        "exposed": pl.Series([None] * count, dtype=pl.String),
    }
    for at, kind in enumerate(also):
        other = raw + (0.05, -0.04)[at] + rng.normal(0, 0.01, count)
        board[f"stamp_{kind}"] = other
        board[f"within_{kind}"] = (1 - other) * (total + 1e-8)
    why = pl.Series(["near chance" if key in excluded else None for key in keys], dtype=pl.String)
    rows = [
        {"model": key, "view": view, "domain": "all", "class": "macro", "metric": "auroc", "n": 100}
        | {"value": 0.55 + 0.35 * score + noise * rng.normal(), "se": 0.01}
        for key, score in zip(keys, raw, strict=True)
        for view, noise in zip(("source", *targets), (0.01, 0.01, 0.02, 0.02, 0.05), strict=False)
    ]
    metrics = [
        {"model": key, "metric": "aug_composite", "value": 0.9 + 0.1 * rng.random(), "n": 10}
        for key in keys
        if synthetic
    ]
    evaluations = pl.DataFrame(rows)
    said = ("label", "family", "objective", "regime", "backbone")
    return Data(
        scores=pl.DataFrame(board).with_columns(
            excluded=why, excluded_chance=why, excluded_temperature=why
        ),
        outcomes=outcomes.outcomes(evaluations, {}),
        evaluations=evaluations,
        counts=pl.DataFrame(schema=COUNTS),
        calibrations={},
        metrics=pl.DataFrame(metrics, schema={"model": pl.String, **METRIC_COLUMNS}),
        models={
            key: {part: ZOO[key][part] for part in said if part in ZOO[key]}
            | {"label": label.format(ZOO[key]["label"])}
            for key in keys
        },
        texts={**TEXTS, **texts},
        settings=settings,
        seed=3,
    )
