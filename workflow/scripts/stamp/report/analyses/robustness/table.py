"""What breaks each model: its metric and its stability under the changes of the stress tests.

The fall is the metric on the images as they are minus that on the changed ones, so that more is
worse. It is over the same images for all changes and models.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from stamp.report import analysis
from stamp.report.analyses.robustness.profile import CLEAN, MEAN
from stamp.report.analysis import AnalysisData
from stamp.report.plot.figure_data import task_metric
from stamp.report.profiles import associations
from stamp.report.wording import number

ALL = "all"  # the classes of the study
WORST = 3  # changes that a model's card names
SPOKEN = {
    "brighter": "in brighter images",
    "darker": "in darker images",
    "posterise": "in posterised images",
    "jpeg": "under JPEG compression",
    "exposure": "under another exposure",
    "window": "under another window",
}
TABLE = {
    "change": pl.String,
    "metric": pl.String,
    "models": pl.Int64,
    "images": pl.Int64,
    "clean": pl.Float64,
    "value": pl.Float64,
    "fall": pl.Float64,
    "least_fall": pl.Float64,
    "least_model": pl.String,
    "largest_fall": pl.Float64,
    "largest_model": pl.String,
    "stability": pl.Float64,
    "reason": pl.String,
}
MODELS: dict[str, Any] = {
    **analysis.DESCRIBED,
    "classes": pl.String,
    "change": pl.String,
    "metric": pl.String,
    "images": pl.Int64,
    **{
        f"{name}{end}": pl.Float64
        for name in ("value", "fall", "stability")
        for end in ("", "_low", "_high")
    },
    "clean": pl.Float64,
    "reason": pl.String,
}


def models(data: AnalysisData) -> pl.DataFrame:
    """One row per model, set of classes and change, with ``clean`` and ``mean`` among the changes.

    ``classes`` are ``all`` of the study's, or those of a target's domain where these are fewer.
    """
    rows = data.profiles.filter(pl.col("quantity").str.starts_with("metric"))
    found = rows.select(
        "model",
        "reason",
        change="part",
        classes=pl.col("quantity").str.strip_prefix("metric").str.strip_prefix(":"),
        images="n",
        **{f"value{end}": pl.col(column) for end, column in _ends().items()},
    ).with_columns(classes=pl.col("classes").replace("", ALL))
    for name in ("fall", "stability"):
        own = data.profiles.filter(pl.col("quantity") == name).select(
            "model",
            change="part",
            classes=pl.lit(ALL),
            **{f"{name}{end}": pl.col(column) for end, column in _ends().items()},
        )
        keys = ["model", "classes", "change"]
        found = found.join(own, on=keys, how="left", maintain_order="left")
    clean = found.filter(pl.col("change") == CLEAN).select("model", "classes", clean="value")
    found = found.join(clean, on=["model", "classes"], how="left", maintain_order="left")
    found = found.with_columns(metric=pl.lit(task_metric(data.texts)))
    joined = analysis.describe(data).join(found, on="model", maintain_order="left_right")
    return analysis.frame(joined.rows(named=True), MODELS)


def _ends() -> dict[str, str]:
    """The endings of a quantity's columns, and the columns of profiles that they are from."""
    return {"": "value", "_low": "low", "_high": "high"}


def table(data: AnalysisData) -> pl.DataFrame:
    """One row per change over the counted models: means, and who loses least and most.

    The mean over all changes is first, then the changes by what they cost, the most first.
    """
    every = models(data).filter(pl.col("classes") == ALL)
    every = every.filter(pl.col("change") != CLEAN)
    if not every["counted"].any():
        why = "no model is counted" if len(every) else "no model was stress-tested"
        return analysis.nothing(TABLE, why)
    rows = []
    for (change,), part in every.group_by("change", maintain_order=True):
        known = part.filter("counted").drop_nulls("fall").sort("fall", "label")
        row = {"change": change, "metric": part["metric"][0], "models": len(known)}
        if known.is_empty():
            rows.append({**row, "reason": associations.first_reason(part)})
            continue
        means = {name: known[name].mean() for name in ("clean", "value", "fall", "stability")}
        ends = {
            f"{end}_{name}": known[column][at]
            for end, at in (("least", 0), ("largest", -1))
            for name, column in (("fall", "fall"), ("model", "label"))
        }
        rows.append({**row, **means, **ends, "images": known["images"].max()})
    found = analysis.frame(rows, TABLE)
    first = pl.col("change") != MEAN
    return found.sort(first, "fall", descending=[False, True], nulls_last=True)


def sentence(table: pl.DataFrame) -> str:
    """How much the metric falls in the mean of all changes, and under which the most."""
    if reason := analysis.why(table):
        return f"No robustness profile: {reason}."
    single = table.filter((pl.col("change") != MEAN) & pl.col("fall").is_not_null())
    if single.is_empty():
        return f"No robustness profile: {associations.first_reason(table)}."
    first = single.row(0, named=True)
    words = (
        f"Under {len(single)} changes of {first['images']:,} labeled source images, "
        f"{first['metric']} falls the most {spoken(first['change'])}: by {number(first['fall'])}, "
        f"from {number(first['clean'])}, in the mean of {first['models']} models."
    )
    means = table.filter((pl.col("change") == MEAN) & pl.col("fall").is_not_null())
    if len(means):
        one = means.row(0, named=True)
        words += (
            f" In the mean of all changes it falls by {number(one['fall'])}: least for "
            f"{one['least_model']} ({number(one['least_fall'])}), most for "
            f"{one['largest_model']} ({number(one['largest_fall'])})."
        )
    return f"{words} The changes say nothing of a shift that resembles none of them."


def spoken(change: str) -> str:
    """A change within a sentence: ``under blur``, ``in darker images``."""
    return SPOKEN.get(change, f"under {change.replace('_', ' ')}")


def worst_changes(models: pl.DataFrame, model: str, level: float) -> list[str]:
    """The changes that cost a model the most, in words: ``AUROC falls from 0.86 to 0.71 ...``."""
    own = models.filter(
        pl.col("model") == model,
        pl.col("classes") == ALL,
        ~pl.col("change").is_in([CLEAN, MEAN]),
        pl.col("fall").is_not_null(),
    ).sort("fall", "change", descending=[True, False])
    return [_words(row, level) for row in own.head(WORST).iter_rows(named=True)]


def _words(row: dict[str, Any], level: float) -> str:
    verb = "falls" if row["fall"] >= 0 else "rises"
    name = row["metric"][0].upper() + row["metric"][1:]
    words = f"{name} {verb} from {row['clean']:.2f} to {row['value']:.2f} {spoken(row['change'])}"
    if row["fall_low"] is None:
        return f"{words}."
    ends = f"{number(row['fall_low'])} to {number(row['fall_high'])}"
    return f"{words} (fall {number(row['fall'])}, {100 * level:g} % interval {ends})."
