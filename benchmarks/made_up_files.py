"""The files that the jobs of one model leave, made up: what aggregates gather from many models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from stamp.core.artifacts import write_json, write_table
from stamp.scoring.evaluate import INFLUENCE

CLASSES, CLUSTERS, IMAGES = 8, 500, 2_000
STUDY = "made-up"


def pair(distance: float, number: int) -> dict[str, Any]:
    """One pair of a record of `pair_examples`."""
    return {
        "images": [f"image-{number}-a", f"image-{number}-b"],
        "labels": [["cat"], None],
        "squared": distance,
        "share": distance / 10,
        "outputs": [{"class": "cat", "a": 0.9, "b": 0.1, "share": 0.8}],
    }


def pair_record(model: str) -> dict[str, Any]:
    """A record as the rule `pair_examples` writes it."""
    edges = [round(i / 24, 5) for i in range(25)]
    return {
        "model": model, "study": STUDY, "kind": "class", "pairs": 500, "top": 0.05,
        "top_share": 0.3,
        "largest": [pair(1.5 - i / 10, i) for i in range(6)],
        "typical": [pair(0.2, 10 + i) for i in range(3)],
        "distances": {"edges": edges, "semantic": [0.04167] * 24, "random": [0.04167] * 24},
        "made_with": {"torch": "2.0", "device": "cpu", "model": model},
    }  # fmt: skip


def write_model(folder: Path, model: str, targets: list[str], rng: np.random.Generator) -> None:
    """A model's scores, calibration and evaluations, as `collect` reads them."""
    for part in ("scores", "calibration", *(f"evaluations/{one}" for one in ("source", *targets))):
        (folder / part).mkdir(parents=True, exist_ok=True)
    about = {"model": model, "study": STUDY}
    quality = float(rng.uniform(0.3, 0.9))
    write_table(folder / "scores" / f"{model}.parquet", _scores(model, quality, rng), about)
    record = {
        **about, "value": 1.1, "bound": None, "performance": quality,
        "excluded": {"temperature": None, "chance": None, "none": None},
    }  # fmt: skip
    write_json(folder / "calibration" / f"{model}.json", record)
    for view in ("source", *targets):
        table = _evaluation(model, view, quality, rng)
        write_table(folder / "evaluations" / view / f"{model}.parquet", table, about)


def _scores(model: str, quality: float, rng: np.random.Generator) -> pl.DataFrame:
    numbers = ("stamp", "raw", "low", "high", "se_bootstrap", "se_units", "se_analytic", "eta2")
    numbers += ("within", "total", "spread", "hard", "sampled_stamp", "sampled_eta2")
    counts = ("n_semantic", "n_random", "n_units", "parameters", "groups", "images")
    row = {
        "model": model,
        "kind": "class",
        "estimator": "exact",
        "missing": None,
        **dict.fromkeys(numbers, quality),
        **dict.fromkeys(counts, 500),
        **dict.fromkeys(("degenerate", "saturated", "leakage"), False),
        "fingerprint": rng.normal(size=8).tolist(),
    }
    return pl.DataFrame([{**row, "scaled": False}, {**row, "scaled": True}], infer_schema_length=2)


def _evaluation(model: str, view: str, quality: float, rng: np.random.Generator) -> pl.DataFrame:
    """One row per class and one for their mean; the source's say what each cluster adds."""
    names = [*(f"class-{number}" for number in range(CLASSES)), "macro"]
    rows = []
    for name in names:
        row = {
            "model": model, "view": view, "domain": "all", "class": name, "metric": "auroc",
            "value": float(np.clip(quality + 0.05 * rng.normal(), 0, 1)), "se": 0.01,
            "n": IMAGES, "positives": 200, "negatives": 1_800, "reason": None,
        }  # fmt: skip
        if view == "source":
            whole = name == "macro"
            row["influence"] = rng.normal(0, 1e-3, CLUSTERS).tolist() if whole else None
            row["clusters"] = None
        rows.append(row)
    kinds = {"reason": pl.String, **(INFLUENCE if view == "source" else {})}
    return pl.DataFrame(rows, schema_overrides=kinds)
