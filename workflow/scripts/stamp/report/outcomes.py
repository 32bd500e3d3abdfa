"""What happened on the targets: from evaluations to one tidy table of outcomes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

import numpy as np
import polars as pl

from stamp.config.view_names import SOURCE
from stamp.report.comparison import source_metric

MEAN = "mean"
SCHEMA = {
    "model": pl.String,
    "outcome": pl.String,
    "metric": pl.String,
    "value": pl.Float64,
    "se": pl.Float64,
    "n": pl.Int64,
}
COVARIANCE = {"covariance": pl.List(pl.Float64)}  # of a source metric's error with all models'


def outcome_name(view: str, domain: str, how: str, several: bool) -> str | None:
    """The outcome that a row of an evaluation belongs to, or None where it is not one.

    ``whole`` takes the target as one, ``domain`` each domain, ``kind`` the domains that share the
    part of their name before the last hyphen (``blur-1`` to ``blur-5`` are ``blur``; a name without
    one is its own kind). A target of one domain is always taken as a whole.
    """
    if view == SOURCE or how == "whole" or not several:
        return view if domain == "all" else None
    if domain == "all":
        return None
    return f"{view}/{domain if how == 'domain' else domain.rpartition('-')[0] or domain}"


def outcomes(
    evaluations: pl.DataFrame,
    how: Mapping[str, str],
    relabelled: Collection[str] = (),
    class_mix: Mapping[str, Mapping[str, source_metric.Mix]] = MappingProxyType({}),
) -> pl.DataFrame:
    """Tidy outcomes of every model: ``source``, each outcome of the targets, and their ``mean``.

    Where an outcome is over other classes than ``source``, or over another mix of them,
    ``source:<outcome>`` is the source metric over the same; ``class_mix`` is what a study expects
    of its targets, by domain, instead of the mix of their labels.
    An outcome of several domains is their mean. The overall mean is over the outcomes that every
    model has a value for, so that it compares like with like, and leaves out the targets that are
    the source's own images under other labels, unless there are no others. Standard errors are
    those of sampling images, taken as independent between domains.
    """
    rows = evaluations.filter(pl.col("class").is_in(source_metric.AGGREGATES))
    named = with_outcomes(rows, how)
    tidy = _averaged(named, "outcome")
    complete = outcomes_of_mean(tidy, relabelled)
    whole = _averaged(tidy.filter(pl.col("outcome").is_in(complete))).with_columns(
        outcome=pl.lit(MEAN)
    )
    weights = source_metric.weights_of(
        named.filter(pl.col("view") != SOURCE), evaluations, class_mix
    )
    if complete and weights:
        weights[MEAN] = {
            model: source_metric.mean_weights([weights[name].get(model, {}) for name in complete])
            for model in tidy["model"].unique(maintain_order=True)
        }
    schema = SCHEMA | COVARIANCE
    beside = pl.DataFrame(source_metric.source_rows(evaluations, weights), schema=schema)
    first = beside.filter(pl.col("outcome") == SOURCE).select("model", "outcome", "covariance")
    tidy = tidy.join(first, on=["model", "outcome"], how="left", maintain_order="left")
    whole = whole.with_columns(covariance=pl.lit(None))
    parts = [
        part.select(pl.col(name).cast(kind) for name, kind in schema.items())
        for part in (tidy, beside.filter(pl.col("outcome") != SOURCE), whole)
    ]
    return pl.concat(parts)


def with_outcomes(rows: pl.DataFrame, how: Mapping[str, str], *apart: str) -> pl.DataFrame:
    """The rows that belong to an outcome, with its name.

    Whether a target has several domains is told by all its rows, or by those that share the
    columns ``apart``.
    """
    keys = rows.select(*apart, "view").rows()
    parts = zip(keys, rows["domain"], strict=True)
    several = {key for key, domain in parts if domain != "all"}
    names = [
        outcome_name(key[-1], domain, how.get(key[-1], "whole"), key in several)
        for key, domain in zip(keys, rows["domain"], strict=True)
    ]
    named = rows.with_columns(outcome=pl.Series(names, dtype=pl.String))
    return named.filter(pl.col("outcome").is_not_null())


def _averaged(rows: pl.DataFrame, *by: str) -> pl.DataFrame:
    """The mean of each model's values and its standard error; null where one of them is."""
    whole = pl.col("value").is_null().any()
    unknown = whole | pl.col("se").is_null().any()
    return rows.group_by("model", *by, maintain_order=True).agg(
        pl.col("metric").first(),
        pl.when(whole).then(None).otherwise(pl.col("value").mean()).alias("value"),
        pl.when(unknown)
        .then(None)
        .otherwise(pl.col("se").pow(2).sum().sqrt() / pl.len())
        .alias("se"),
        pl.col("n").sum(),
    )


def outcomes_of_mean(tidy: pl.DataFrame, relabelled: Collection[str]) -> list[str]:
    """The outcomes that the mean is over."""
    rows = tidy.filter(~_of_source() & (pl.col("outcome") != MEAN))
    elsewhere = ~pl.col("outcome").str.split("/").list.first().is_in(list(relabelled))
    others = rows.filter(elsewhere)
    gaps = (
        (rows if others.is_empty() else others)
        .group_by("outcome", maintain_order=True)
        .agg(pl.col("value").is_null().any().alias("gap"))
    )
    return gaps.filter(~pl.col("gap"))["outcome"].to_list()


def _of_source() -> pl.Expr:
    """Whether a row is the source's own, over all classes or over some."""
    return (pl.col("outcome") == SOURCE) | pl.col("outcome").str.starts_with(f"{SOURCE}:")


def outcome_names(tidy: pl.DataFrame) -> list[str]:
    """The outcomes of the targets in order of appearance, the mean last; the source is none."""
    return tidy.filter(~_of_source())["outcome"].unique(maintain_order=True).to_list()


def source_outcome(tidy: pl.DataFrame, outcome: str) -> str:
    """The source's outcome to set an outcome, or a part of one, beside: over the same classes.

    That is the class-matched source metric, or ``source`` where the classes are all, in its mix.
    """
    names = (f"{SOURCE}:{one}" for one in (outcome, outcome.partition("/")[0]))
    return next((name for name in names if (tidy["outcome"] == name).any()), SOURCE)


def source_covariance(tidy: pl.DataFrame, outcome: str, models: Iterable[str]) -> np.ndarray:
    """The covariance of the models' errors of the source metric that an outcome is set beside."""
    rows = tidy.filter(pl.col("outcome") == source_outcome(tidy, outcome))
    return source_metric.covariance(rows, models)


def shown_outcomes(tidy: pl.DataFrame) -> list[str]:
    """The targets' outcomes, then their mean where there are several."""
    names = outcome_names(tidy)
    others = [name for name in names if name != MEAN]
    return [*others, MEAN] if MEAN in names and len(others) > 1 else others


def by_model(rows: pl.DataFrame, models: Iterable[str], column: str = "value") -> np.ndarray:
    """A column in the order of the models, NaN where a model has no row or no value."""
    found = dict(rows.select("model", column).iter_rows())
    return np.array([np.nan if found.get(key) is None else found[key] for key in models], float)


def values(tidy: pl.DataFrame, outcome: str, models: Iterable[str]) -> np.ndarray:
    """One outcome of the given models, NaN where there is none."""
    return by_model(tidy.filter(pl.col("outcome") == outcome), models)
