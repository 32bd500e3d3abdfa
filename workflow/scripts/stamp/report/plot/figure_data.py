"""What a figure is drawn from: the tables of a study, and the words around them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from stamp.config.view_names import SOURCE
from stamp.report import flags
from stamp.report.flags import METRICS
from stamp.report.outcomes import MEAN, outcome_names
from stamp.report.scoreboard import keeps
from stamp.report.wording import RHO, short_number

MOST_ROWS = 150  # models that a figure with a row for each shows: more of them nobody reads
# the predictors' names in the table of correlations
SOURCE_METRIC, SOURCE_MATCHED = "source_metric", "source_matched"
RANKS = {"model": pl.String, "rank": pl.Float64, "low": pl.Float64, "high": pl.Float64}
CORRELATIONS = {
    "filter": pl.String,
    "outcome": pl.String,
    "predictor": pl.String,
    "n": pl.Int64,
    "rho": pl.Float64,
    "p_permutation": pl.Float64,
    "reason": pl.String,
    "partial_source": pl.Float64,
    "partial_source_corrected": pl.Float64,
}


@dataclass(frozen=True, slots=True)
class FigureData:
    """The tables of a study's statistics, what is said of its models, and its texts."""

    scores: pl.DataFrame
    outcomes: pl.DataFrame
    correlations: pl.DataFrame
    ranks: pl.DataFrame
    outranks: pl.DataFrame
    models: Mapping[str, Mapping[str, str]]
    texts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Rho:
    """A rank correlation as it is printed: undefined where ``rho`` is None, then with a reason."""

    n: int
    rho: float | None
    p: float | None
    partial: float | None
    corrected: float | None
    reason: str


def board(data: FigureData) -> pl.DataFrame:
    """One row per model, in the order of the scores.

    ``score`` is the headline, or the raw formula where the model is degenerate; ``counted`` says
    whether the correlations under the study's own rule include the model; ``source`` is its metric
    on the source; ``rank``, ``rank_low`` and ``rank_high`` come from the bootstrap draws.
    """
    keys = data.scores["model"].to_list()
    described = pl.DataFrame([{"model": key, **data.models[key]} for key in keys])
    source = data.outcomes.filter(pl.col("outcome") == SOURCE).select(
        "model", source="value", source_se="se"
    )
    ranks = data.ranks.select("model", "rank", rank_low="low", rank_high="high")
    own = data.scores.select(
        "model",
        pl.when("degenerate").then("raw").otherwise("stamp").alias("score"),
        "low",
        "high",
        keeps(data.scores)["declared"].alias("counted"),
        *(name for name in flags.COLUMNS if name in data.scores.columns),
    )
    table = described.join(own, on="model", how="left", maintain_order="left")
    for more in (source, ranks):
        table = table.join(more, on="model", how="left", maintain_order="left")
    return table.with_columns(pl.col(pl.Float64).fill_nan(None))


def flag_words(row: Mapping[str, Any]) -> str:
    """A model's health flags in a few words, empty where there are none."""
    return ", ".join(one.flag.label for one in flags.raised(row))


def outcome_values(data: FigureData, outcome: str) -> pl.DataFrame:
    """The models' values of an outcome (model, value, se), without those that have none."""
    rows = data.outcomes.filter(pl.col("outcome") == outcome).select("model", "value", "se")
    return rows.with_columns(pl.col(pl.Float64).fill_nan(None)).drop_nulls("value")


def outcome_title(data: FigureData, outcome: str) -> str:
    """``external/north`` as ``External hospital: north``, by the title of the target."""
    if outcome == MEAN:
        return _mean_title(data)
    target, _, domain = outcome.partition("/")
    title = data.texts["targets"].get(target, target)
    return f"{title}: {domain.replace('_', ' ')}" if domain else title


def _mean_title(data: FigureData) -> str:
    """The mean is over the outcomes that every model has: say so where that is not all of them."""
    own = [name for name in outcome_names(data.outcomes) if name != MEAN]
    rows = data.outcomes.filter(pl.col("outcome").is_in(own))
    gaps = rows.group_by("outcome").agg(pl.col("value").is_null().any())["value"]
    complete = int((~gaps).sum())
    return (
        "Mean of all targets"
        if complete == len(gaps)
        else f"Mean of {complete} of {len(gaps)} targets"
    )


def metric_name(data: FigureData, outcome: str) -> str:
    """The metric of an outcome as a reader knows it."""
    found = data.outcomes.filter(pl.col("outcome") == outcome)["metric"].drop_nulls()
    return METRICS.get(found[0], found[0]) if len(found) else task_metric(data.texts)


def task_metric(texts: Mapping[str, Any]) -> str:
    """The metric that models of a study's task are measured by."""
    return METRICS[{"multilabel": "auroc"}.get(texts["task"], "top1")]


def correlation(
    data: FigureData, outcome: str, predictor: str = "stamp", which: str = "declared"
) -> Rho:
    """The correlation of a predictor with an outcome under a filter, as the table has it."""
    rows = data.correlations.filter(
        (pl.col("outcome") == outcome)
        & (pl.col("predictor") == predictor)
        & (pl.col("filter") == which)
    )
    if rows.is_empty():
        return Rho(0, None, None, None, None, "not computed")
    row = rows.row(0, named=True)
    return Rho(
        n=row["n"],
        rho=row["rho"],
        p=row["p_permutation"],
        partial=row["partial_source"],  # none of the source metric itself
        corrected=row["partial_source_corrected"],
        reason=row["reason"] or "",
    )


def rho_text(found: Rho) -> str:
    """Rho and its number of models, or that it is undefined."""
    value = f"{RHO} undefined" if found.rho is None else f"{RHO} = {short_number(found.rho)}"
    return f"{value}, n = {found.n}"


def interval_name(data: FigureData) -> str:
    """What the bars of a score are."""
    level = data.texts.get("level")
    return "bootstrap interval" if level is None else f"{100 * level:g} % bootstrap interval"


def shown_note(count: int) -> str:
    """A sentence where a figure shows some of the models only, empty where it shows all."""
    if count <= MOST_ROWS:
        return ""
    return f" The best {MOST_ROWS} of {count:,} models are shown; the CSV file beside has all."
