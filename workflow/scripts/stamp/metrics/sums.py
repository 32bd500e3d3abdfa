"""Sums of metrics that are on different scales, over all models of a study."""

from __future__ import annotations

import numpy as np
import polars as pl

from stamp.config.registries.metrics import METRICS, Metric

FEW = "fewer than 2 models have all its parts, or one part is the same for all"


def with_sums(metrics: pl.DataFrame) -> pl.DataFrame:
    """The metrics of all models, and after them the sums whose parts are there.

    A sum is the mean of its parts' z-scores (with the standard deviation over the models, ddof 0),
    each times its direction; over the models that have all parts, the others have none.
    """
    sums = [one for one in METRICS if one.sum_of and set(one.sum_of) <= set(metrics["metric"])]
    return pl.concat([metrics, *(_sum(metrics, one) for one in sums)])


def _sum(metrics: pl.DataFrame, wanted: Metric) -> pl.DataFrame:
    own = metrics.filter(pl.col("metric").is_in(wanted.sum_of))
    direction = {one.name: one.direction for one in METRICS}
    models = own["model"].unique(maintain_order=True)
    parts = []
    for name in wanted.sum_of:
        known = dict(own.filter(pl.col("metric") == name).select("model", "value").iter_rows())
        values = [np.nan if known.get(model) is None else known[model] for model in models]
        parts.append(direction[name] * np.array(values))
    table = np.stack(parts)
    there = ~np.isnan(table).any(axis=0)
    spread = table[:, there].std(axis=1) if there.sum() > 1 else np.zeros(len(table))
    total = np.full(len(models), np.nan)
    if (spread > 0).all():
        z = (table[:, there] - table[:, there].mean(axis=1, keepdims=True)) / spread[:, None]
        total[there] = z.mean(axis=0)
    counts = dict(own.group_by("model").agg(pl.col("n").max()).iter_rows())
    why = own.filter(pl.col("value").is_null()).select("model", "reason").iter_rows()
    reasons = dict.fromkeys(models, FEW) | dict(why)
    rows = [
        {
            "model": model,
            "metric": wanted.name,
            "view": None,
            "domain": None,
            "value": None if np.isnan(value) else float(value),
            "n": counts[model],
            "reason": reasons[model] if np.isnan(value) else None,
        }
        for model, value in zip(models, total, strict=True)
    ]
    return pl.DataFrame(rows, schema=metrics.schema)
