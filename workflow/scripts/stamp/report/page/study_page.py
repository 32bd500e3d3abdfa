"""What the page of a study holds: rows, outcomes, pairs and texts as plain values.

Everything that is not there is left out: a study without targets, a table of scores without
intervals, an analysis that nobody asked for.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl

from stamp.config.view_names import SOURCE
from stamp.report import comparability, flags
from stamp.report.card import Scoring
from stamp.report.main_table import target_title
from stamp.report.outcomes import MEAN, shown_outcomes
from stamp.report.page.answer import Answer, Track, answer, standing
from stamp.report.plot.figure_data import METRICS
from stamp.report.scoreboard import keeps
from stamp.report.wording import inside

CORRELATION = {
    "n": "n",
    "rho": "rho",
    "low": "bonett_wright_low",
    "high": "bonett_wright_high",
    "p": "p_permutation",
    "partial": "partial_source",
    "partial_corrected": "partial_source_corrected",
    "reason": "reason",
}


@dataclass(frozen=True, slots=True)
class StudyTables:
    """The tables of a finished study; those that it does not have are None or empty."""

    leaderboard: pl.DataFrame
    scores: pl.DataFrame
    outcomes: pl.DataFrame
    correlations: pl.DataFrame
    outranks: pl.DataFrame | None = None
    baselines: pl.DataFrame | None = None
    robustness: pl.DataFrame | None = None  # what stress tests say of each model
    regret: pl.DataFrame | None = None
    training: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # by model
    pairs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # by model
    thumbnails: pl.DataFrame | None = None
    sentences: Mapping[str, str] = field(default_factory=dict)  # by analysis
    metadata: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # of logits, by model


@dataclass(frozen=True, slots=True)
class StudyFacts:
    """What is said around the tables: titles, how the study was made, and how to repeat it."""

    study: str
    texts: Mapping[str, Any]
    configuration: str = ""
    command: str = ""
    seed: int | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    frozen: Sequence[str] = ()  # trained models whose last loss is of a head on a frozen backbone
    made_images: bool = False  # whether the source was generated, or is part of a package
    scoring: Scoring | None = None  # None where models were not scored here
    results: str = "results"
    index: str = ""  # where the page of all studies is


@dataclass(frozen=True, slots=True)
class Outcome:
    """An outcome of the targets: its name for a reader, and how well it was predicted."""

    key: str
    title: str
    metric: str
    stamp: dict[str, Any]
    source: dict[str, Any]
    matched: bool = False
    source_matched: bool = False  # whether its source metric is over another mix of classes


@dataclass(frozen=True, slots=True)
class StudyPage:
    """All that a page shows."""

    facts: StudyFacts
    answer: Answer
    models: list[dict[str, Any]]
    outcomes: list[Outcome]
    source_metric: str
    level: float
    tables: StudyTables

    @property
    def pretraining(self) -> dict[str, str]:
        """What each model was pretrained on, where that is not the same for all."""
        return dict(self.facts.texts.get("pretraining", {}))

    @property
    def strata(self) -> list[dict[str, Any]]:
        """How well the score and the source metric rank the models of each kind of pretraining."""
        rows = {row["model"]: row for row in self.models if row["counted"]}
        said = {key: kind for key, kind in self.pretraining.items() if key in rows}
        if len(set(said.values())) < 2 or not self.outcomes:
            return []
        first = self.outcomes[0].key
        plain = [rows[key]["source_metric"] for key in said]
        beside = [rows[key]["sources"].get(first, {}).get("value") for key in said]
        found = {
            "STAMP": [rows[key].get("stamp") for key in said],
            f"source {self.source_metric}": beside if self.outcomes[0].source_matched else plain,
        }
        truth = [rows[key]["values"][first]["value"] for key in said]
        numbers = {name: np.array(values, float) for name, values in found.items()}
        return comparability.strata(said, numbers, np.array(truth, float))

    @property
    def holds_images(self) -> bool:
        """Whether there are pictures on the page."""
        return self.tables.thumbnails is not None and not self.tables.thumbnails.is_empty()


def study_page(tables: StudyTables, facts: StudyFacts) -> StudyPage:
    """Everything that the page of a study shows, from its tables."""
    level = facts.texts.get("level", 0.95)
    outcomes = _outcomes(tables, facts.texts)
    models = model_rows(tables, [one.key for one in outcomes], level)
    order = standing(models, outranks_of(tables.outranks), level)
    names = {row["model"]: row["name"] for row in models}
    found = answer(order, names, track(outcomes), level)
    metric = _metric(tables.outcomes, SOURCE, facts.texts)
    return StudyPage(facts, found, models, outcomes, metric, level, tables)


def outranks_of(table: pl.DataFrame | None) -> dict[str, dict[str, float | None]]:
    """The table of who outranks whom by keys; empty where there is none."""
    if table is None:
        return {}
    return {
        row["model"]: {key: value for key, value in row.items() if key != "model"}
        for row in table.iter_rows(named=True)
    }


def model_rows(tables: StudyTables, outcomes: Sequence[str], level: float) -> list[dict[str, Any]]:
    """One row per model in the leaderboard's order: numbers, outcomes, flags, a unique name."""
    board = {row["model"]: row for row in tables.scores.iter_rows(named=True)}
    counted = dict(zip(tables.scores["model"], keeps(tables.scores)["declared"], strict=True))
    values = {(row["model"], row["outcome"]): row for row in tables.outcomes.iter_rows(named=True)}
    labels = Counter(tables.leaderboard["label"].to_list())
    rows = []
    for found in tables.leaderboard.iter_rows(named=True):
        key, label = found["model"], found["label"]
        own = {**board.get(key, {}), **found}
        source = values.get((key, SOURCE), {})
        raised = flags.raised(_flag_row(own, source, key in board))
        low, high = _interval(own, source, level)
        rows.append(
            {
                **own,
                "name": label if labels[label] == 1 else f"{label} ({key})",
                "counted": bool(counted.get(key, False)),
                "source_metric": source.get("value"),
                "source_low": low,
                "source_high": high,
                "source_n": source.get("n"),
                "values": {one: _value(values.get((key, one), {}), level) for one in outcomes},
                "sources": {
                    one: _value(values[key, f"{SOURCE}:{one}"], level)
                    for one in outcomes
                    if (key, f"{SOURCE}:{one}") in values
                },
                "raised": [
                    {**asdict(one.flag), "words": one.words, "reason": one.reason} for one in raised
                ],
                "stop": any(one.flag.severity == "stop" for one in raised),
            }
        )
    return rows


def _flag_row(own: Mapping[str, Any], source: Mapping[str, Any], scored: bool) -> dict[str, Any]:
    """What the flags are raised from; a model that was not scored says why in its one cell."""
    row = {**own, "metric": source.get("metric")}
    if not scored:
        row["unavailable"] = str(own["flags"]).removeprefix("not available: ")
    return row


def _interval(
    own: Mapping[str, Any], source: Mapping[str, Any], level: float
) -> tuple[float | None, float | None]:
    """The source metric's own interval: the table's, else from its standard error."""
    if own.get("source_low") is not None:
        return own["source_low"], own["source_high"]
    value, se = source.get("value"), source.get("se")
    if value is None or se is None:
        return None, None
    half = NormalDist().inv_cdf((1 + level) / 2) * se
    return max(0.0, value - half), min(1.0, value + half)


def _value(found: Mapping[str, Any], level: float) -> dict[str, float | None]:
    """An outcome of a model with its interval, by its standard error."""
    low, high = _interval({}, found, level)
    return {"value": found.get("value"), "low": low, "high": high}


def _metric(tidy: pl.DataFrame, outcome: str, texts: Mapping[str, Any]) -> str:
    found = tidy.filter(pl.col("outcome") == outcome)["metric"].drop_nulls()
    name = found[0] if len(found) else "auroc" if texts["task"] == "multilabel" else "top1"
    return METRICS.get(name, name)


def _outcomes(tables: StudyTables, texts: Mapping[str, Any]) -> list[Outcome]:
    """The outcomes of the targets, their mean first."""
    keys = shown_outcomes(tables.outcomes)
    keys = [key for key in keys if key == MEAN] + [key for key in keys if key != MEAN]
    found = []
    for key in keys:
        wanted = key.partition("/")[0] in texts.get("matched", ())
        matched = wanted and f"matched:{key}" in tables.scores.columns
        own = correlation(tables.correlations, key, "stamp_matched" if matched else "stamp")
        mixed = bool((tables.outcomes["outcome"] == f"{SOURCE}:{key}").any())
        name = "source_matched" if mixed else "source_metric"
        source = correlation(tables.correlations, key, name)
        if source.get("n") != own.get("n"):
            source = {"n": own.get("n"), "rho": own.get("source_metric_rho")}
        metric = _metric(tables.outcomes, key, texts)
        title = target_title(key, texts).replace("_", " ")
        found.append(Outcome(key, title, metric, own, source, matched, mixed))
    return found


def correlation(table: pl.DataFrame, outcome: str, predictor: str) -> dict[str, Any]:
    """How a predictor ranks models for an outcome, under the study's own rule of exclusion."""
    rows = table.filter(
        (pl.col("outcome") == outcome)
        & (pl.col("predictor") == predictor)
        & (pl.col("filter") == "declared")
    )
    if rows.is_empty():
        return {"n": 0, "rho": None, "reason": "not computed"}
    row = rows.row(0, named=True)
    named = {name: row.get(column) for name, column in CORRELATION.items()}
    return {**named, "source_metric_rho": row.get("source_metric_rho")}


def track(outcomes: Sequence[Outcome]) -> Track | None:
    """How far the ranking was right on the mean of all targets, or on the only one."""
    if not outcomes:
        return None
    first = outcomes[0]
    return Track(
        title="the mean of all targets" if first.key == MEAN else inside(first.title),
        n=first.stamp["n"] or 0,
        rho=first.stamp["rho"],
        low=first.stamp.get("low"),
        high=first.stamp.get("high"),
        source=first.source.get("rho"),
        source_low=first.source.get("low"),
        source_high=first.source.get("high"),
        reason=first.stamp.get("reason") or "",
    )


def pictures(table: pl.DataFrame | None) -> dict[str, str]:
    """The thumbnails as addresses that hold the picture itself."""
    if table is None:
        return {}
    return {
        row["image"]: f"data:{row['media']};base64,{base64.b64encode(row['data']).decode()}"
        for row in table.iter_rows(named=True)
    }
