"""How well the score orders models that share a backbone: no difference is the architecture's.

The zoo's ``backbone`` says which do; a study's ``statistics.selections`` names further lists of
models that are compared with each other in the same way. Few models are, so p is over all orders of
them where n is at most 8, and the table says which values rho can have at all.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl

from stamp.report import analysis, model_groups
from stamp.report.analyses.families.table import step
from stamp.report.analysis import AnalysisData
from stamp.report.main_table import target_title
from stamp.report.model_groups import MODELS
from stamp.report.outcomes import by_model, shown_outcomes, source_outcome, values
from stamp.report.wording import RHO, number
from stamp.stats.correlations.correlation import FEWEST, bonett_wright_interval, permutation_p

TABLE = {
    "models": pl.String,
    "backbone": pl.String,
    "outcome": pl.String,
    "title": pl.String,
    "n": pl.Int64,
    "ids": pl.String,
    "objectives": pl.String,
    "rho": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "p": pl.Float64,
    "method": pl.String,
    "orders": pl.Int64,
    "ties": pl.Boolean,
    "step": pl.Float64,
    "least_p": pl.Float64,
    "source_metric_rho": pl.Float64,
    "reason": pl.String,
}
ALONE = (
    "no two models have the same backbone (`backbone` in the zoo), and the study names no list of "
    "models (`statistics.selections`)"
)
ORDERS = math.factorial(8)  # all orders are gone through up to this many, whatever the study asks


def shared(data: AnalysisData) -> dict[str, list[str]]:
    """The models of every backbone that several have, by its name, then the study's selections."""
    found: dict[str, list[str]] = {}
    for key in sorted(data.scores["model"]):
        if backbone := data.models[key].get("backbone"):
            found.setdefault(backbone, []).append(key)
    named = {
        name: sorted(set(keys) & set(data.scores["model"]))
        for name, keys in (data.options.get("selections") or {}).items()
    }
    backbones = {name: found[name] for name in sorted(found) if len(found[name]) > 1}
    return {**backbones, **named}


def models(data: AnalysisData) -> pl.DataFrame:
    """The score and the outcomes of every model that is compared, in each of its comparisons."""
    groups = shared(data)
    if not groups:
        return analysis.nothing(MODELS, ALONE)
    every = model_groups.models(data, "backbone")
    parts = [
        every.filter(pl.col("model").is_in(keys)).with_columns(stratum=pl.lit(name))
        for name, keys in groups.items()
    ]
    return pl.concat(parts).select(list(MODELS))


def table(data: AnalysisData) -> pl.DataFrame:
    """Rho of the score with each outcome over the models of each backbone, with exact p.

    Without ties rho over n models takes only values that are ``step`` apart, and the least
    two-sided p is 2 / n!: with four models none is below 0.05.
    """
    names, backbones = shown_outcomes(data.outcomes), shared(data)
    if not backbones or not names:
        return analysis.nothing(TABLE, analysis.NO_TARGETS if backbones else ALONE)
    rows = [
        {
            "models": which,
            "backbone": backbone,
            "outcome": outcome,
            "title": target_title(outcome, data.texts),
            **_row(data, which, outcome, keys),
        }
        for which in analysis.filters(data)
        for backbone, keys in backbones.items()
        for outcome in names
    ]
    return analysis.frame(rows, TABLE)


def _row(data: AnalysisData, which: str, outcome: str, keys: list[str]) -> dict[str, Any]:
    board = analysis.kept(data, which, outcome)
    score, truth = by_model(board, keys, "score"), values(data.outcomes, outcome, keys)
    known = ~(np.isnan(score) | np.isnan(truth))
    there = [key for key, one in zip(keys, known, strict=True) if one]
    score, truth, n = score[known], truth[known], len(there)
    row: dict[str, Any] = {
        "n": n,
        "ids": ", ".join(there),
        "objectives": ", ".join(sorted({data.models[key]["objective"] for key in there})),
    }
    if n < FEWEST:
        return {**row, "reason": f"{n} models are too few: at least {FEWEST} are needed"}
    found = permutation_p(score, truth, max(data.settings["permutations"], ORDERS), data.seed)
    interval = bonett_wright_interval(found.rho, n, data.settings["level"])
    ties = len(np.unique(score)) < n or len(np.unique(truth)) < n
    exact = found.method == "exact" and not ties
    source = values(data.outcomes, source_outcome(data.outcomes, outcome), there)
    constant = "the score or the outcome is the same for all models"
    return row | {
        "rho": float(found.rho),
        "low": float(interval.low),
        "high": float(interval.high),
        "p": float(found.p),
        "method": found.method,
        "orders": found.permutations,
        "ties": ties,
        "step": step(n),
        "least_p": 2 / math.factorial(n) if exact else None,
        "source_metric_rho": analysis.rank_correlation(source, truth),
        "reason": constant if np.isnan(found.rho) else None,
    }


def sentence(table: pl.DataFrame) -> str:
    """Rho of each backbone with each outcome, and who was compared."""
    if reason := analysis.why(table):
        return f"No comparison of models that share a backbone: {reason}."
    parts = []
    declared = table.filter(pl.col("models") == "declared")
    for (backbone,), rows in declared.group_by("backbone", maintain_order=True):
        tested = rows.drop_nulls("rho").rows(named=True)
        if not tested:
            parts.append(f"{backbone}: {rows['reason'][0]} ({rows['ids'][0] or 'none'}).")
            continue
        said = [
            f"{number(row['rho'])} with {row['title']} ({row['method']} p = {row['p']:.2g}"
            f"{', ties' if row['ties'] else ''}; the source metric's {RHO} is "
            f"{number(row['source_metric_rho'])})"
            for row in tested
        ]
        first = max(tested, key=lambda row: row["n"])
        text = f"{backbone}: {RHO} is {'; '.join(said)}, over {first['n']} models: {first['ids']}."
        least = "" if first["least_p"] is None else f" and the least p is {first['least_p']:.2g}"
        steps = f" Without ties {RHO} moves in steps of {first['step']:.2g}{least}."
        parts.append(text + steps)
    return " ".join(parts)
