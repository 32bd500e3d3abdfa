"""How well the score predicts each kind of corruption, then the mean, least and most of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from stamp.report import analysis
from stamp.report.analysis import AnalysisData
from stamp.report.main_table import target_title
from stamp.report.outcomes import by_model
from stamp.report.wording import RHO, number

TABLE = {
    "models": pl.String,
    "target": pl.String,
    "title": pl.String,
    "corruption": pl.String,
    "severities": pl.Int64,
    "value": pl.Float64,
    **analysis.AGREEMENT,
    "which": pl.String,
    "reason": pl.String,
}
MODELS = {
    **analysis.DESCRIBED,
    "target": pl.String,
    "corruption": pl.String,
    "severities": pl.Int64,
    "metric": pl.String,
    "value": pl.Float64,
    "reason": pl.String,
}
NOTHING = "no target has two or more kinds of corruption: domains named kind-severity, as blur-3"
MEANS = ("value", "rho", "partial", "partial_corrected", "source_metric_rho")


def kinds(data: AnalysisData) -> pl.DataFrame:
    """Every model's mean over the severities of each kind, of the targets with several kinds."""
    rows = analysis.numbered(data)
    several = rows.group_by("target").agg(pl.col("kind").n_unique()).filter(pl.col("kind") > 1)
    rows = rows.filter(pl.col("target").is_in(several["target"].implode()))
    return rows.group_by("model", "target", "kind", maintain_order=True).agg(
        analysis.whole_mean(), pl.col("metric").first(), severities=pl.len().cast(pl.Int64)
    )


def models(data: AnalysisData) -> pl.DataFrame:
    """Every model's value on each kind."""
    found = kinds(data).rename({"kind": "corruption"})
    if found.is_empty():
        return analysis.nothing(MODELS, NOTHING)
    joined = analysis.describe(data).join(found, on="model", maintain_order="left_right")
    return analysis.frame(joined.rows(named=True), MODELS)


def table(data: AnalysisData) -> pl.DataFrame:
    """Rho of score and accuracy over models for each kind, then over the kinds.

    A kind's accuracy is the mean over its severities, ``value`` its mean over the row's models. The
    rows ``min`` and ``max`` repeat those of the kinds with the least and largest rho, which
    ``which`` names; ``mean`` is the mean over the kinds that have a rho.
    """
    found, rows = kinds(data), []
    if found.is_empty():
        return analysis.nothing(TABLE, NOTHING)
    for which in analysis.filters(data):
        for (target,), part in found.group_by("target", maintain_order=True):
            own = [
                _row(data, which, str(target), str(kind), each)
                for (kind,), each in part.group_by("kind", maintain_order=True)
            ]
            rows += own + _summary(own)
    return analysis.frame(rows, TABLE)


def _row(
    data: AnalysisData, which: str, target: str, kind: str, values: pl.DataFrame
) -> dict[str, Any]:
    board = analysis.kept(data, which, target)
    keys, truth = board["model"].to_list(), by_model(values, board["model"])
    score = board["score"].to_numpy()
    return {
        "models": which,
        "target": target,
        "title": target_title(target, data.texts),
        "corruption": kind,
        "severities": values["severities"][0],
        "value": analysis.mean_known(np.where(np.isnan(score), np.nan, truth)),
        **analysis.agreement(data, target, keys, score, truth),
    }


def _summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows ``mean``, ``min`` and ``max`` over the kinds."""
    common = {name: rows[0][name] for name in ("models", "target", "title")}
    known = [row for row in rows if row["reason"] is None]
    if not known:
        reason = f"no kind has a {RHO}"
        return [{**common, "corruption": name, "reason": reason} for name in ("mean", "min", "max")]
    columns = analysis.frame(known, dict.fromkeys(MEANS, pl.Float64))
    mean: dict[str, Any] = {**common, "corruption": "mean"}
    mean |= {name: columns[name].mean() for name in MEANS}
    if len({row["n"] for row in known}) == 1:
        mean["n"] = known[0]["n"]
    partials = ("partial", "partial_corrected")
    having_each = {f"{name}_reason": int(columns[name].is_not_null().sum()) for name in partials}
    for name, having in {"reason": len(known), **having_each}.items():
        if having < len(rows):
            mean[name] = f"over the {having} of {len(rows)} kinds that have it"
    ends = []
    for name, end in (("min", min), ("max", max)):
        row = end(known, key=lambda one: one["rho"])
        ends.append({**row, "corruption": name, "which": row["corruption"]})
    return [mean, *ends]


def sentence(table: pl.DataFrame) -> str:
    """The mean over kinds with the least and the largest rho, for each target."""
    if reason := analysis.why(table):
        return f"No table of corruptions: {reason}."
    parts = []
    declared = table.filter(pl.col("models") == "declared")
    for (_,), rows in declared.group_by("target", maintain_order=True):
        ends = {row["corruption"]: row for row in rows.tail(3).iter_rows(named=True)}
        mean, least, most = (ends[name] for name in ("mean", "min", "max"))
        if mean["rho"] is None:
            parts.append(f"{mean['title']}: {mean['reason']}.")
            continue
        own = rows.head(len(rows) - 3)
        positive = int((own["rho"] > 0).sum())
        parts.append(
            f"{mean['title']}: {RHO} of STAMP with the models' results is {number(mean['rho'])} "
            f"in the mean over {len(own)} kinds of corruption, from {number(least['rho'])} "
            f"({least['which']}) to {number(most['rho'])} ({most['which']}), and above 0 for "
            f"{positive} of them; that of the source metric is "
            f"{number(mean['source_metric_rho'])} in the mean, and the partial {RHO} given it "
            f"{number(mean['partial'])}, corrected for that metric's error "
            f"{number(mean['partial_corrected'])}."
        )
    return " ".join(parts)
