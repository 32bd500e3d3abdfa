"""What each predictor costs, as measured: images forwarded and seconds, per model and in total.

A predictor is counted as if it were the only one: the forward passes on the source that it shares
with STAMP are in its cost too, and ``extra_images`` and ``extra_cpu_seconds`` are what it takes
beyond STAMP's. Each job measured itself: a forward pass its loop over images, others their work.
CPU seconds are what that took. Seconds on the clock also have what a job waited for others, and
what it took to start its process stands apart. Estimates for targets are for all targets together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from stamp.config.registries.metrics import METRICS
from stamp.config.view_names import SOURCE
from stamp.report import analysis
from stamp.report.analysis import AnalysisData

STAMP, SOURCE_METRIC = "STAMP", "Source metric"
FORWARD, ID = "logits", "id"  # the stage, and the view of further labeled source images
TABLE = {
    "predictor": pl.String,
    "members": pl.String,
    "models": pl.Int64,
    "images_per_model": pl.Float64,
    "cpu_seconds_per_model": pl.Float64,
    "seconds_per_model": pl.Float64,
    "images": pl.Int64,
    "cpu_seconds": pl.Float64,
    "seconds": pl.Float64,
    "start_cpu_seconds": pl.Float64,
    "extra_images": pl.Int64,
    "extra_cpu_seconds": pl.Float64,
    "times_stamp": pl.Float64,
    "labels": pl.Boolean,
    "target_images": pl.Boolean,
    "other_models": pl.Boolean,
    "reason": pl.String,
}
MODELS = {
    "model": pl.String,
    "label": pl.String,
    "stage": pl.String,
    "part": pl.String,
    "images": pl.Int64,
    "cpu_seconds": pl.Float64,
    "seconds": pl.Float64,
    "start_cpu_seconds": pl.Float64,
}


@dataclass(frozen=True, slots=True)
class Cost:
    """What some jobs took together."""

    images: int
    cpu: float
    seconds: float
    start: float


def models(data: AnalysisData) -> pl.DataFrame:
    """Every measured job of every model; a job of all models together has no model."""
    said = analysis.describe(data).select("model", "label")
    found = data.costs.join(said, on="model", how="left", maintain_order="left")
    return analysis.frame(found.rows(named=True), MODELS)


def table(data: AnalysisData) -> pl.DataFrame:
    """One row per group of predictors that take the same passes."""
    if data.costs.is_empty():
        return analysis.nothing(TABLE, "no job of the study has been measured")
    costs, count = data.costs, data.scores.height
    source = _part(costs, FORWARD, [SOURCE])
    own = _sum(source, _part(costs, "calibrate"), _part(costs, "score"))
    rows = [_row(STAMP, STAMP, own, own, count, ())]
    labeled = _part(costs, FORWARD, [SOURCE, ID])
    rows.append(_row(SOURCE_METRIC, SOURCE_METRIC, _sum(labeled), own, count, ("labels",)))
    for name, members in groups(data).items():
        needs = tuple({need for one in members for need in one.needs})
        parts = [
            source,
            _part(
                costs, "extra_outputs", sorted({k for one in members for k in one.extra_outputs})
            ),
        ]
        if any(one.of_stress_tests for one in members):
            parts.append(_part(costs, "stress_tests"))
        if any(one.of_target and "probabilities" in one.needs for one in members):
            theirs = (pl.col("stage") == FORWARD) & ~pl.col("part").is_in([SOURCE, ID])
            parts.append(costs.filter(theirs))
        parts.append(_part(costs, members[0].rule))
        titles = ", ".join(one.title for one in members)
        rows.append(_row(name, titles, _sum(*parts), own, count, needs))
    return analysis.frame(rows, TABLE)


def groups(data: AnalysisData) -> dict[str, list[Any]]:
    """The metrics that the study has measured, by what they are made from."""
    tried = set(data.metrics["metric"].unique())
    found: dict[str, list[Any]] = {}
    for one in METRICS:
        if one.name in tried and not one.unavailable:
            found.setdefault(one.group, []).append(one)
    return found


def _part(costs: pl.DataFrame, stage: str, parts: Sequence[str] | None = None) -> pl.DataFrame:
    rows = costs.filter(pl.col("stage") == stage)
    return rows if parts is None else rows.filter(pl.col("part").is_in(list(parts)))


def _sum(*parts: pl.DataFrame) -> Cost:
    """What all these jobs took."""
    every = pl.concat(parts)
    names = ("cpu_seconds", "seconds", "start_cpu_seconds")
    return Cost(int(every["images"].sum()), *(float(every[name].sum()) for name in names))


def _row(
    name: str, members: str, whole: Cost, stamp: Cost, count: int, needs: Sequence[str]
) -> dict[str, Any]:
    return {
        "predictor": name,
        "members": members,
        "models": count,
        "images_per_model": whole.images / count,
        "cpu_seconds_per_model": whole.cpu / count,
        "seconds_per_model": whole.seconds / count,
        "images": whole.images,
        "cpu_seconds": whole.cpu,
        "seconds": whole.seconds,
        "start_cpu_seconds": whole.start,
        "extra_images": max(0, whole.images - stamp.images),
        "extra_cpu_seconds": max(0.0, whole.cpu - stamp.cpu),
        "times_stamp": whole.cpu / stamp.cpu if stamp.cpu > 0 else None,
        "labels": "labels" in needs,
        "target_images": "target images" in needs,
        "other_models": "other models" in needs,
    }


def sentence(table: pl.DataFrame) -> str:
    """What STAMP takes per model, and the group that takes the longest beside it."""
    if reason := analysis.why(table):
        return f"No cost: {reason}."
    own = table.row(0, named=True)
    said = (
        f"STAMP took {own['cpu_seconds_per_model']:.2f} CPU seconds and "
        f"{own['images_per_model']:,.0f} forwarded images per model ({own['models']} models; "
        f"{own['cpu_seconds']:,.0f} CPU seconds in total, and {own['start_cpu_seconds']:,.0f} to "
        "start the jobs)"
    )
    others = table.filter(~pl.col("predictor").is_in([STAMP, SOURCE_METRIC]))
    others = others.drop_nulls("times_stamp").sort("times_stamp")
    if others.is_empty():
        return f"{said}."
    last = others.row(len(others) - 1, named=True)
    return f"{said}; {last['predictor']} took {last['times_stamp']:.1f} times as much."
