"""What a user loses who picks a model by each predictor, and how it chooses between close models.

A rank correlation says how well a predictor orders all models. A user takes one: the first of the
few that are at hand. Regret is how much better the best of those is on the target.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from stamp.config.registries.metrics import METRICS
from stamp.report import analysis
from stamp.report.analyses.baselines.table import (
    SHARE,
    SOURCE_METRIC,
    STAMP,
    TITLES,
    about,
    competes,
    predictors,
)
from stamp.report.analysis import AnalysisData
from stamp.report.main_table import target_title
from stamp.report.outcomes import MEAN, by_model, shown_outcomes, source_outcome, values
from stamp.report.wording import number
from stamp.stats.correlations.correlation import FEWEST, percentile_interval
from stamp.stats.regret import Regret, Resampling, close_pairs, regret

SUBSETS = (5, 12)  # models at hand; and all of them
POINT = 0.01  # how close two models are by the source metric where its error is not known
RANDOM = "random"
RESAMPLES = 1000  # at the most: each sorts every predictor again
TABLE = {
    "outcome": pl.String,
    "title": pl.String,
    "predictor": pl.String,
    "name": pl.String,
    "needs": pl.String,
    "k": pl.Int64,
    "n": pl.Int64,
    "regret": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "minus_source": pl.Float64,
    "minus_source_low": pl.Float64,
    "minus_source_high": pl.Float64,
    "close_pairs": pl.Int64,
    "close_right": pl.Float64,
    "reason": pl.String,
}
MODELS = {
    **analysis.DESCRIBED,
    "outcome": pl.String,
    "title": pl.String,
    "value": pl.Float64,
    "behind_best": pl.Float64,
    "reason": pl.String,
}


def models(data: AnalysisData) -> pl.DataFrame:
    """What each model reached on each outcome, and how far behind the best of all that is."""
    rows = []
    described = analysis.describe(data)
    keys = described["model"].to_list()
    for outcome in shown_outcomes(data.outcomes):
        truth = values(data.outcomes, outcome, keys)
        best = np.nanmax(truth) if (~np.isnan(truth)).any() else np.nan
        title = target_title(outcome, data.texts)
        rows += [
            {**row, "outcome": outcome, "title": title, "value": one, "behind_best": best - one}
            for row, one in zip(described.iter_rows(named=True), truth.tolist(), strict=True)
        ]
    return analysis.frame(rows, MODELS) if rows else analysis.nothing(MODELS, analysis.NO_TARGETS)


def table(data: AnalysisData) -> pl.DataFrame:
    """The expected regret of each predictor for each outcome, for k models at hand.

    It is over the models that have every common predictor, and over all subsets of k of them.
    ``minus_source`` is the regret less that of the source metric: below 0 the predictor chose
    better. Intervals draw whole families of models again. ``close_right`` is how often the better
    of two models is picked whose source metrics lie within one standard error of their difference.
    """
    rows = [row for outcome in shown_outcomes(data.outcomes) for row in _of_outcome(data, outcome)]
    return analysis.frame(rows, TABLE) if rows else analysis.nothing(TABLE, analysis.NO_TARGETS)


def _of_outcome(data: AnalysisData, outcome: str) -> list[dict[str, Any]]:
    board = analysis.kept(data, "declared", outcome)
    keys = board["model"].to_list()
    truth = values(data.outcomes, outcome, keys)
    found = predictors(data, outcome, keys, board["score"].to_numpy(), truth)
    known = {name: ~(np.isnan(score) | np.isnan(truth)) for name, score in found.items()}
    least = max(1.0, SHARE * known[STAMP].sum())
    shared = [name for name in found if known[name].sum() >= least]
    members = np.all([known[name] for name in shared], axis=0) if shared else np.zeros(0, bool)
    head = {"outcome": outcome, "title": target_title(outcome, data.texts)}
    n = int(members.sum())
    if n < FEWEST or STAMP not in shared:
        return [{**head, "n": n, "reason": f"{n} models have all predictors: too few to choose"}]
    direction = {one.name: one.direction for one in METRICS} | dict.fromkeys(TITLES, 1)
    scores = np.stack([direction[name] * found[name][members] for name in shared])
    near = _close(data, outcome, [key for key, is_in in zip(keys, members, strict=True) if is_in])
    families = [
        data.models[key]["family"] for key, is_in in zip(keys, members, strict=True) if is_in
    ]
    resamples = min(RESAMPLES, data.settings["resamples"])
    how = Resampling(resamples, families, data.settings["level"], data.seed)
    rows = []
    for k in dict.fromkeys([*(k for k in SUBSETS if k < n), n]):
        cost = regret(scores, truth[members], k, how)
        rows += _rows(cost, shared, data.settings["level"])
    for row in rows:
        place = shared.index(row["predictor"]) if row["predictor"] in shared else None
        if place is not None:
            picked = close_pairs(near[0], scores[place], truth[members], near[1])
            row |= {"close_pairs": picked.pairs, "close_right": picked.right}
    return [{**head, **row} for row in rows]


def _close(data: AnalysisData, outcome: str, keys: list[str]) -> tuple[np.ndarray, Any]:
    """The source metric of the models, and within how much of it two are close."""
    beside = source_outcome(data.outcomes, outcome)
    rows = data.outcomes.filter(pl.col("outcome") == beside)
    error = by_model(rows, keys, "se")
    return by_model(rows, keys), POINT if np.isnan(error).any() else error


def _rows(cost: Regret, names: list[str], level: float) -> list[dict[str, Any]]:
    """One row per predictor at one k, and one for a random choice."""
    source = names.index(SOURCE_METRIC) if SOURCE_METRIC in names else None
    rows: list[dict[str, Any]] = []
    for place, name in enumerate(names):
        row = {**about(name), "k": cost.k, "n": cost.n, "regret": cost.regret[place, 0]}
        row |= {"low": cost.low[place, 0], "high": cost.high[place, 0]}
        if source is not None and place != source:
            gap = cost.draws[:, place, 0] - cost.draws[:, source, 0]
            ends = percentile_interval(gap, level)
            row |= {
                "minus_source": cost.regret[place, 0] - cost.regret[source, 0],
                "minus_source_low": float(ends.low),
                "minus_source_high": float(ends.high),
            }
        rows.append(row)
    chance = {"predictor": RANDOM, "name": "Random choice", "needs": "", "k": cost.k, "n": cost.n}
    return [*rows, {**chance, "regret": cost.random[0]}]


def sentence(table: pl.DataFrame) -> str:
    """The regret of STAMP, of the source metric, of the best predictor and of a random choice."""
    if reason := analysis.why(table):
        return f"No regret: {reason}."
    rows = table.drop_nulls("regret")
    if rows.is_empty():
        return f"No regret: {table['reason'].drop_nulls()[0]}."
    outcome = MEAN if (rows["outcome"] == MEAN).any() else rows["outcome"][0]
    own = rows.filter(pl.col("outcome") == outcome)
    k = SUBSETS[-1] if SUBSETS[-1] in own["k"] else own["k"].sort()[0]
    own = own.filter(pl.col("k") == k)
    known = {row["predictor"]: row for row in own.iter_rows(named=True)}
    rivals = own.filter((pl.col("predictor") != RANDOM) & competes()).sort("regret")
    best = rivals.row(0, named=True)
    parts = [f"STAMP loses {number(known[STAMP]['regret'])}"]
    if SOURCE_METRIC in known:
        parts.append(f"the source metric {number(known[SOURCE_METRIC]['regret'])}")
    parts.append(f"a random choice {number(known[RANDOM]['regret'])}")
    parts.append(f"the best predictor, {best['name']}, {number(best['regret'])}")
    return (
        f"Picking the best of {k} models for {own['title'][0]}, over {own['n'][0]} models: "
        f"{', '.join(parts)}, in units of the outcome."
    )
