"""What a user loses who picks a model by each predictor, and how it chooses between close models.

A rank correlation says how well a predictor orders all models. A user takes one: the first of the
few that are at hand. Regret is how much better the best of those is on the target.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from stamp.report import analysis
from stamp.report.analysis import AnalysisData
from stamp.report.comparison.predictors import (
    DIRECTIONS,
    SHARE,
    SOURCE_MATCHED,
    SOURCE_METRIC,
    STAMP,
    SUBSETS,
    MetricValues,
    about,
    competes,
    predictors,
)
from stamp.report.main_table import target_title
from stamp.report.outcomes import MEAN, by_model, shown_outcomes, source_outcome, values
from stamp.report.wording import inside, number
from stamp.stats.correlations.correlation import FEWEST, percentile_interval
from stamp.stats.regret import Regret, Resampling, close_pairs, regret

POINT = 0.01  # of the source metric: how close two models are, beside one standard error
RANDOM = "random"
RESAMPLES = 1000  # at the most: each sorts every predictor again
ENDS = ("", "_low", "_high")
DIFFERENCES = {"minus_source": SOURCE_METRIC, "minus_matched": SOURCE_MATCHED}
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
    "models_low": pl.Float64,
    "models_high": pl.Float64,
    "families_low": pl.Float64,
    "families_high": pl.Float64,
    **{f"{column}{end}": pl.Float64 for column in DIFFERENCES for end in ENDS},
    **{
        column: kind
        for near in ("close", "point")
        for column, kind in {
            f"{near}_pairs": pl.Int64,
            **{f"{near}_right{end}": pl.Float64 for end in ENDS},
        }.items()
    },
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


@dataclass(frozen=True, slots=True)
class Choices:
    """The models that one is picked of: predictors [p, n], oriented, and what each reached [n].

    ``control`` is their source metric and ``error`` its standard error, NaN where it is not known.
    """

    keys: list[str]
    names: list[str]
    scores: np.ndarray
    truth: np.ndarray
    control: np.ndarray
    error: np.ndarray


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
    ``models_low`` and ``models_high`` draw single models again, ``families_low`` and
    ``families_high`` whole families, where there are several; ``low`` and ``high`` are the wider
    end of the two, since few families say little of how others would differ. ``minus_source`` is
    the regret less that of the source metric, ``minus_matched`` less that of the class-matched one,
    with the wider ends too: below 0 the predictor chose better.
    ``close_right`` is how often the better of two models is picked whose class-matched source
    metrics lie within one standard error of their difference, ``point_right`` within one point.
    """
    metrics, names = MetricValues.of(data), shown_outcomes(data.outcomes)
    rows = [row for outcome in names for row in _of_outcome(data, metrics, outcome)]
    return analysis.frame(rows, TABLE) if rows else analysis.nothing(TABLE, analysis.NO_TARGETS)


def _of_outcome(
    data: AnalysisData, metrics: MetricValues, outcome: str
) -> Iterator[dict[str, Any]]:
    """One row per number of models at hand and predictor, the last for a random choice."""
    head = {"outcome": outcome, "title": target_title(outcome, data.texts)}
    of, n = _choices(data, metrics, outcome)
    if of is None:
        few = f"{n} models have all predictors: too few to choose"
        yield {**head, "n": n, "reason": few}
        return
    resamples, level = min(RESAMPLES, data.settings["resamples"]), data.settings["level"]
    families = [data.models[key]["family"] for key in of.keys]
    several = families if len(set(families)) > 1 else None
    by_family = Resampling(resamples, several, level, data.seed)
    near = _close(of, by_family)
    for k in dict.fromkeys([*(k for k in SUBSETS if k < n), n]):
        cost = regret(of.scores, of.truth, k, by_family)
        alone = regret(of.scores, of.truth, k, Resampling(resamples, None, level, data.seed))
        for place, name in enumerate(of.names):
            row = _row(cost, alone, place)
            row |= _differences((cost, alone), of.names, place, level)
            yield {**head, **about(name), **row, **near[name]}
        chance = {"predictor": RANDOM, "name": "Random choice", "needs": "", "k": k, "n": n}
        yield {**head, **chance, "regret": cost.random[0]}


def _choices(data: AnalysisData, metrics: MetricValues, outcome: str) -> tuple[Choices | None, int]:
    """The models with every common predictor, or none where they are too few; and how many."""
    board = analysis.kept(data, "declared", outcome)
    every = board["model"].to_list()
    truth = values(data.outcomes, outcome, every)
    found = predictors(data, metrics, outcome, every, board["score"].to_numpy())
    known = {name: ~(np.isnan(score) | np.isnan(truth)) for name, score in found.items()}
    least = max(1.0, SHARE * known[STAMP].sum())
    names = [name for name in found if known[name].sum() >= least]
    members = np.all([known[name] for name in names], axis=0) if names else np.zeros(0, bool)
    n = int(members.sum())
    if n < FEWEST or STAMP not in names:
        return None, n
    keys = [key for key, is_in in zip(every, members, strict=True) if is_in]
    beside = source_outcome(data.outcomes, outcome)
    rows = data.outcomes.filter(pl.col("outcome") == beside)
    scores = np.stack([DIRECTIONS[name] * found[name][members] for name in names])
    control, error = by_model(rows, keys), by_model(rows, keys, "se")
    return Choices(keys, names, scores, truth[members], control, error), n


def _close(of: Choices, how: Resampling) -> dict[str, dict[str, Any]]:
    """How often each predictor picks the better of two close models, as columns by its name."""
    margins: dict[str, Any] = {"point": POINT}
    if not np.isnan(of.error).any():
        margins["close"] = of.error
    columns: dict[str, dict[str, Any]] = {name: {} for name in of.names}
    for near, margin in margins.items():
        found = close_pairs(of.control, of.scores, of.truth, margin, how)
        for place, name in enumerate(of.names):
            columns[name] |= {
                f"{near}_pairs": found.pairs,
                f"{near}_right": float(found.right[place]),
                f"{near}_right_low": float(found.low[place]),
                f"{near}_right_high": float(found.high[place]),
            }
    return columns


def _row(cost: Regret, alone: Regret, place: int) -> dict[str, Any]:
    """The regret of one predictor with both its intervals."""
    return {
        "k": cost.k,
        "n": cost.n,
        "regret": cost.regret[place, 0],
        "low": min(cost.low[place, 0], alone.low[place, 0]),
        "high": max(cost.high[place, 0], alone.high[place, 0]),
        "models_low": alone.low[place, 0],
        "models_high": alone.high[place, 0],
        "families_low": cost.low[place, 0],
        "families_high": cost.high[place, 0],
    }


def _differences(
    costs: Sequence[Regret], names: list[str], place: int, level: float
) -> dict[str, Any]:
    """The regret of one predictor less that of the source metric, plain and class-matched.

    The interval reaches from the lowest to the highest end of those of all resamplings.
    """
    row: dict[str, Any] = {}
    for column, other in DIFFERENCES.items():
        if other in names and other != names[place]:
            at = names.index(other)
            gaps = [one.draws[:, place, 0] - one.draws[:, at, 0] for one in costs]
            ends = [percentile_interval(gap, level) for gap in gaps]
            row |= {
                column: costs[0].regret[place, 0] - costs[0].regret[at, 0],
                f"{column}_low": min(float(one.low) for one in ends),
                f"{column}_high": max(float(one.high) for one in ends),
            }
    return row


def shown_rows(table: pl.DataFrame) -> pl.DataFrame:
    """The rows that a sentence or a figure is about: the mean outcome, the best of twelve."""
    rows = table.drop_nulls("regret")
    if rows.is_empty():
        return rows
    outcome = MEAN if (rows["outcome"] == MEAN).any() else rows["outcome"][0]
    own = rows.filter(pl.col("outcome") == outcome)
    k = SUBSETS[-1] if SUBSETS[-1] in own["k"] else own["k"].sort()[0]
    return own.filter(pl.col("k") == k)


def sentence(table: pl.DataFrame) -> str:
    """The regret of STAMP, of the source metric, of the best predictor and of a random choice."""
    if reason := analysis.why(table):
        return f"No regret: {reason}."
    own = shown_rows(table)
    if own.is_empty():
        return f"No regret: {table['reason'].drop_nulls()[0]}."
    known = {row["predictor"]: row for row in own.iter_rows(named=True)}
    rivals = own.filter((pl.col("predictor") != RANDOM) & competes()).sort("regret")
    best = rivals.row(0, named=True)
    parts = [f"STAMP loses {number(known[STAMP]['regret'])}"]
    for name, said in ((SOURCE_METRIC, "the source metric"), (SOURCE_MATCHED, "class-matched")):
        if name in known:
            parts.append(f"{said} {number(known[name]['regret'])}")
    parts.append(f"a random choice {number(known[RANDOM]['regret'])}")
    parts.append(f"the best predictor, {best['name']}, {number(best['regret'])}")
    return (
        f"Picking the best of {own['k'][0]} models for {inside(own['title'][0])}, over "
        f"{own['n'][0]} models: {', '.join(parts)}, in units of the outcome.{_close_words(known)}"
    )


def _close_words(known: Mapping[str, Mapping[str, Any]]) -> str:
    """How often STAMP picks the better of two close models, where there are any."""
    row = known[STAMP]
    for near, said in (("close", "one standard error"), ("point", "one point")):
        if row[f"{near}_pairs"]:
            ends = f"{number(row[f'{near}_right_low'])} to {number(row[f'{near}_right_high'])}"
            return (
                f" Of {row[f'{near}_pairs']} pairs of models within {said} of the source metric "
                f"STAMP picks the better one in {number(row[f'{near}_right'])} ({ends})."
            )
    return ""
