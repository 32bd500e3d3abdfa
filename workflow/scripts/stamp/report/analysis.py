"""Further analyses of a study, one module each, and what they share.

A module has ``table(data)``, the correlations that it is about; ``models(data)``, what each model
brings to them; ``sentence(table)``, what the table says in words; and the schemas ``TABLE`` and
``MODELS`` of the two. A study that has not what an analysis needs gets one row with the ``reason``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from stamp.config.view_names import SOURCE
from stamp.core.artifacts import read_json, read_table
from stamp.metrics.sums import with_sums
from stamp.metrics.value import COLUMNS as METRICS
from stamp.report.comparison import corrected_partial
from stamp.report.outcomes import source_covariance, source_outcome, values
from stamp.report.profiles.rows import PROFILE
from stamp.report.scoreboard import keeps, uncontaminated
from stamp.report.timings import COLUMNS as COSTS
from stamp.scoring.score import N_PAIRS
from stamp.stats.correlations.correlation import known_spearman
from stamp.stats.correlations.correlation_summary import CorrelationSettings, correlate
from stamp.stats.correlations.noisy_control import SimulationSettings
from stamp.stats.correlations.partial_correlation import partial_spearman

FILTERS = ("all", "declared")
NO_TARGETS = "the study has no targets, so there is no outcome"
NUMBERED = re.compile(r"(.+)-(\d+)")
AGREEMENT: dict[str, Any] = {
    "n": pl.Int64,
    "rho": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "p": pl.Float64,
    "partial": pl.Float64,
    "partial_p": pl.Float64,
    "partial_reason": pl.String,
    "partial_corrected": pl.Float64,
    "partial_corrected_p": pl.Float64,
    "partial_corrected_reason": pl.String,
    "partial_plain": pl.Float64,
    "source_metric_rho": pl.Float64,
    "plain_source_rho": pl.Float64,
}
DESCRIBED: dict[str, Any] = {
    "model": pl.String,
    "label": pl.String,
    "family": pl.String,
    "objective": pl.String,
    "counted": pl.Boolean,
    "stamp": pl.Float64,
}
EVALUATIONS = {
    "model": pl.String,
    "view": pl.String,
    "domain": pl.String,
    "class": pl.String,
    "metric": pl.String,
    "value": pl.Float64,
    "n": pl.Int64,
}


@dataclass(frozen=True, slots=True)
class AnalysisData:
    """The tables of a study, and what is said of its models; empty where an analysis needs none.

    ``n_pairs`` are the models' scores by number of pairs, ``calibrations`` their records by key,
    ``metrics`` their other predictors, ``costs`` what the jobs took, ``profiles`` what the models'
    cached outputs show beyond scores.
    ``settings`` are the study's permutations, resamples and level, ``options`` what single analyses
    take.
    """

    scores: pl.DataFrame
    outcomes: pl.DataFrame
    evaluations: pl.DataFrame
    n_pairs: pl.DataFrame
    calibrations: Mapping[str, Mapping[str, Any]]
    metrics: pl.DataFrame
    models: Mapping[str, Mapping[str, str]]
    texts: Mapping[str, Any]
    settings: Mapping[str, Any]
    seed: int
    options: Mapping[str, Any] = field(default_factory=dict)
    costs: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=COSTS))
    profiles: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=PROFILE))


def read(inputs: Any, study: str, **about: Any) -> AnalysisData:
    """The data of an analysis from its rule's input files; those it does not read are empty.

    ``about`` are the fields of :class:`AnalysisData` that are in no file: models, texts, settings,
    options and seed.
    """
    evaluations = [
        pl.read_csv(path, columns=list(EVALUATIONS), schema_overrides=EVALUATIONS)
        for path in inputs.evaluations
    ]
    records = [read_json(path) for path in inputs.calibrations]
    return AnalysisData(
        scores=read_table(inputs.scores, study=study),
        outcomes=read_table(inputs.outcomes, study=study),
        evaluations=pl.concat(evaluations or [pl.DataFrame(schema=EVALUATIONS)]),
        n_pairs=_tables(inputs.n_pairs, study, N_PAIRS),
        calibrations={record["model"]: record for record in records},
        metrics=with_sums(_tables(inputs.metrics, study, {"model": pl.String, **METRICS})),
        costs=_tables(getattr(inputs, "costs", ()), study, COSTS),
        profiles=_tables(getattr(inputs, "profiles", ()), study, PROFILE),
        **about,
    )


def _tables(paths: Iterable[str], study: str, schema: Mapping[str, Any]) -> pl.DataFrame:
    """The tables of all models in one, empty where there are none."""
    found = [read_table(path, study=study) for path in paths]
    return pl.concat(found or [pl.DataFrame(schema=dict(schema))])


def filters(data: AnalysisData) -> list[str]:
    """The filters of a table's rows; ``uncontaminated`` only where a model is contaminated."""
    met = data.scores["contaminated"].is_not_null().any()
    return ["all", "declared", *(["uncontaminated"] if met else [])]


def kept(data: AnalysisData, which: str, outcome: str) -> pl.DataFrame:
    """The models that a filter keeps for an outcome, with their ``score``.

    Under ``all`` the score is the raw formula: a degenerate model shows where it would rank.
    """
    board = data.scores
    keep = uncontaminated(board, outcome) if which == "uncontaminated" else keeps(board)[which]
    score = pl.col("raw" if which == "all" else "stamp").cast(pl.Float64).alias("score")
    return board.filter(keep).select("model", score)


def agreement(
    data: AnalysisData, outcome: str, models: Sequence[str], score: np.ndarray, truth: np.ndarray
) -> dict[str, Any]:
    """Spearman's rho of a score and an outcome, one number per model, as a row of ``AGREEMENT``.

    With Bonett and Wright's interval and a permutation p; the partial is given the source metric on
    the classes that ``outcome`` is scored on, whose own rho over the same models stands beside it;
    ``partial_corrected`` takes that metric's measurement error into account. Where it is another
    than the source metric over all classes, ``partial_plain`` is given the latter.
    """
    beside = source_outcome(data.outcomes, outcome)
    source, plain = (values(data.outcomes, name, list(models)) for name in (beside, SOURCE))
    errors = source_covariance(data.outcomes, outcome, models)
    wanted = SimulationSettings(seed=data.seed, interval=False)
    corrected = corrected_partial.corrected_partial(score, truth, source, errors, wanted)
    compared = np.where(np.isnan(score), np.nan, source)
    # no number of the row is a bootstrap's, so that one resample is enough
    settings = {**data.settings, "resamples": 1}
    found = correlate(
        score, truth, {"source": source}, CorrelationSettings(seed=data.seed, **settings)
    )
    partial = found.partials["source"]
    other = {}
    if beside != SOURCE:
        rest = partial_spearman(score, truth, plain, permutations=1)  # its p is not shown
        known = np.where(np.isnan(score), np.nan, plain)
        other = {"partial_plain": rest.rho, "plain_source_rho": rank_correlation(known, truth)}
    return {
        "n": found.n,
        "rho": found.rho,
        "low": found.bonett_wright_low,
        "high": found.bonett_wright_high,
        "p": found.p_permutation,
        "partial": partial.rho,
        "partial_p": partial.p_permutation,
        "partial_reason": partial.reason or None,
        "partial_corrected": corrected.get("corrected"),
        "partial_corrected_p": corrected.get("corrected_p"),
        "partial_corrected_reason": corrected["corrected_reason"],
        "source_metric_rho": rank_correlation(compared, truth),
        **other,
        "reason": found.reason or None,
    }


rank_correlation = known_spearman


def mean_known(found: np.ndarray) -> float | None:
    """The mean of the numbers that are there, None where none is."""
    known = found[~np.isnan(found)]
    return float(known.mean()) if known.size else None


def describe(data: AnalysisData) -> pl.DataFrame:
    """One row per model: what is said of it, whether the study's rule counts it, and its score."""
    board = data.scores.select(
        "model",
        keeps(data.scores)["declared"].alias("counted"),
        stamp=pl.when("degenerate").then("raw").otherwise("stamp"),
    )
    said = [
        {
            "model": key,
            **{name: data.models[key][name] for name in ("label", "family", "objective")},
        }
        for key in board["model"]
    ]
    return pl.DataFrame(said, schema=list(DESCRIBED)[:4]).join(board, on="model", how="left")


def numbered(data: AnalysisData) -> pl.DataFrame:
    """What every model reached on the domains named ``kind-number``, such as ``blur-3``."""
    rows = data.evaluations.filter(
        pl.col("class").is_in(["macro", "top1"]) & (pl.col("view") != SOURCE)
    )
    names = [NUMBERED.fullmatch(name) for name in rows["domain"].fill_null("")]
    return rows.select(
        "model",
        "metric",
        "value",
        "n",
        target="view",
        kind=pl.Series([found and found[1] for found in names], dtype=pl.String),
        number=pl.Series([found and int(found[2]) for found in names], dtype=pl.Int64),
    ).drop_nulls("kind")


def whole_mean() -> pl.Expr:
    """The mean of a group's values, null where one of them is."""
    gap = pl.col("value").is_null().any()
    return pl.when(gap).then(None).otherwise(pl.col("value").mean()).alias("value")


def frame(rows: Sequence[Mapping[str, Any]], schema: Mapping[str, Any]) -> pl.DataFrame:
    """Rows as a table of exactly these columns, what is not a number as null."""
    kept_only = [{name: row.get(name) for name in schema} for row in rows]
    return pl.DataFrame(kept_only, schema=dict(schema), orient="row").with_columns(
        pl.col(pl.Float64).fill_nan(None)
    )


def nothing(schema: Mapping[str, Any], reason: str) -> pl.DataFrame:
    """One row that says why there is nothing else."""
    return frame([{"reason": reason}], schema)


def why(table: pl.DataFrame) -> str | None:
    """The reason of a table that has nothing else."""
    only = len(table) == 1 and table.drop("reason").row(0) == (None,) * (table.width - 1)
    return table["reason"][0] if only else None
