"""The source metric of a model beside what an answer that ignores the image would reach."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import polars as pl

from stamp.report.comparison.source_metric import AGGREGATES

CHANCE_AUROC = 0.5


def source_metric(evaluation: pl.DataFrame, level: float) -> dict[str, Any]:
    """The columns of a model's row from its evaluation on the source.

    ``source_low`` and ``source_high`` are ``value ± z se`` within [0, 1]. ``source_no_skill`` is
    the majority-class rate of the labeled images for accuracy, 0.5 for an AUROC.
    """
    whole = evaluation.filter(pl.col("domain") == "all")
    row = whole.filter(pl.col("class").is_in(AGGREGATES)).row(0, named=True)
    value, se = row["value"], row["se"]
    known = value is not None and se is not None
    half = NormalDist().inv_cdf(0.5 + level / 2) * se if known else 0.0
    return {
        "metric": row["metric"],
        "source_metric": value,
        "source_se": se,
        "source_low": max(0.0, value - half) if known else None,
        "source_high": min(1.0, value + half) if known else None,
        "source_n": row["n"],
        "source_reason": row["reason"],
        "source_no_skill": None if value is None else no_skill(whole, row["metric"]),
    }


def no_skill(evaluation: pl.DataFrame, metric: str) -> float | None:
    """What always answering the most frequent class, or a random order, reaches; None if unknown.

    ``evaluation`` has one row per class with its labeled images (``positives``).
    """
    if metric == "auroc":
        return CHANCE_AUROC
    sizes = evaluation.filter(pl.col("metric") == "recall")["positives"].drop_nulls()
    return int(sizes.max()) / int(sizes.sum()) if sizes.sum() else None  # type: ignore[arg-type]
