"""A made-up study with numbered domains, and how tests look into its tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from stamp.metrics.value import COLUMNS as METRIC_COLUMNS
from stamp.report import outcomes
from stamp.report.analysis import AnalysisData
from stamp.scoring.score import N_PAIRS

SETTINGS = {"permutations": 400, "resamples": 200, "level": 0.9}

KINDS = ("blur", "jpeg_compression", "snow")

NUMBERS = (20, 50, 80)

TITLES = {"c": "Corruptions", "street": "Dollar Street", "plain": "Photographs"}

TEXTS = {
    "title": "A study",
    "notice": "Made up.",
    "task": "multiclass",
    "level": 0.9,
    "targets": TITLES,
    "matched": [],
    "relabelled": [],
}

LONG = "A network with a very long name, pretrained elsewhere and fine-tuned here, seed {}"


def evaluated(model: str, view: str, values: dict[str, float | None]) -> list[dict[str, Any]]:
    common = {"model": model, "view": view, "metric": "top1", "se": 0.01, "n": 100}
    rows = [{**common, "domain": name, "class": "top1", "value": v} for name, v in values.items()]
    return [*rows, {**common, "domain": "all", "class": "n01440764", "value": 0.111}]


def study(
    count: int = 12,
    numbered: bool = True,
    targets: bool = True,
    excluded: dict[int, tuple[str, ...]] | None = None,
    degenerate: tuple[int, ...] = (),
    contaminated: dict[int, str] | None = None,
    label: str = "Model {}",
    **texts: Any,
) -> AnalysisData:
    """A made-up study: two targets with numbered domains, one without, and noise in everything."""
    rng = np.random.default_rng(7)
    keys = [f"m{i:02d}" for i in rng.permutation(count)]
    excluded = {1: ("temperature",), 4: ("temperature", "chance")} if excluded is None else excluded
    quality = rng.permutation(np.linspace(0.2, 0.9, count))
    rows: list[dict[str, Any]] = []
    for key, q in zip(keys, quality, strict=True):
        rows += evaluated(key, "source", {"all": q + 0.1 * rng.random()})
        if not targets:
            continue
        blurs = {f"{k}-{s}": q - 0.05 * s + rng.random() for k in KINDS for s in range(1, 4)}
        incomes = {f"income-{s}": q / 2 + 0.1 * s + 0.4 * rng.random() for s in range(1, 5)}
        if numbered:
            rows += evaluated(key, "c", {"all": q, **blurs, "uci": 0.5})
            rows += evaluated(key, "street", {"all": q, **incomes, "region-af": 0.4})
        rows += evaluated(key, "plain", {"all": q + 0.3 * rng.random()})
    evaluations = pl.DataFrame(rows, infer_schema_length=None)
    how = {"c": "kind", "street": "whole"}
    raw = quality + 0.6 * rng.random(count)
    told = [excluded.get(i, ()) for i in range(count)]
    sound = [None if i in degenerate else float(raw[i]) for i in range(count)]
    board = pl.DataFrame(
        {
            "model": keys,
            "stamp": pl.Series(sound, dtype=pl.Float64),
            "raw": raw,
            "estimator": ["exact"] * count,
            "sampled_stamp": raw,
            "parameters": rng.integers(10, 1000, count),
            "degenerate": [i in degenerate for i in range(count)],
            **{
                f"excluded_{rule}": pl.Series(
                    [f"by {rule}" if rule in one else None for one in told], dtype=pl.String
                )
                for rule in ("temperature", "chance")
            },
            "contaminated": pl.Series(
                [(contaminated or {}).get(i) for i in range(count)], dtype=pl.String
            ),
        }
    ).with_columns(excluded="excluded_temperature")
    scored = [
        {"model": key, "number": n, "stamp": s, "raw": r, "low": s - 1 / n, "high": s + 2 / n}
        for i, key in enumerate(keys)
        for n in NUMBERS
        for r in [float(raw[i] + (rng.normal(0, 0.1) if n < NUMBERS[-1] else 0))]
        for s in [r]
        if i not in degenerate
    ]
    return AnalysisData(
        scores=board,
        outcomes=outcomes.outcomes(evaluations, how),
        evaluations=evaluations,
        n_pairs=pl.DataFrame(
            [{**row, "within": 0.1, "total": 0.5} for row in scored], schema=N_PAIRS
        ),
        metrics=pl.DataFrame(schema={"model": pl.String, **METRIC_COLUMNS}),
        calibrations={
            key: {"model": key, "value": 1 + i / 4, "bound": None, "performance": i / 100}
            for i, key in enumerate(keys)
        },
        models={
            key: {
                "label": label.format(i),
                "family": f"family {i % 5}",
                "objective": ("supervised", "self-supervised")[i % 2],
                "regime": "plain",
            }
            for i, key in enumerate(keys)
        },
        texts={**TEXTS, **texts},
        settings=SETTINGS,
        seed=3,
    )


def one(table: pl.DataFrame, **where: Any) -> dict[str, Any]:
    rows = table.filter([pl.col(name) == wanted for name, wanted in where.items()])
    assert len(rows) == 1, rows
    return rows.row(0, named=True)


def declared(data: AnalysisData) -> list[str]:
    keep = pl.col("excluded_temperature").is_null() & ~pl.col("degenerate")
    return data.scores.filter(keep)["model"].to_list()


def replaced(data: AnalysisData, **changes: Any) -> AnalysisData:
    parts = {name: getattr(data, name) for name in AnalysisData.__dataclass_fields__}
    return AnalysisData(**{**parts, **changes})
