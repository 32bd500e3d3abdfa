"""STAMP beside every other predictor, on one common set of models.

Predictors that at least three quarters of the models have are compared over the models that have
every one of them. A rarer one is compared over the models that have it, with STAMP and the source
metric on those same models; it says so, and has no part in the average. A metric that no model has
is listed with the reason. Under the study's own rule each common predictor also has its partial
correlation given the class-matched source metric. Correlations are given raw and oriented (times
the direction in which a metric should point); differences and averages are of oriented ones. With
``mixed``, every predictor is also given over all the models that have it, as the paper's table
does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import polars as pl

from stamp.config.registries.metrics import METRICS
from stamp.report import analysis
from stamp.report.analysis import AnalysisData
from stamp.report.comparison import predictor_partials
from stamp.report.comparison.common_set import adjust
from stamp.report.comparison.predictors import (
    DIRECTIONS,
    ON_LINE,
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
from stamp.report.outcomes import (
    MEAN,
    shown_outcomes,
    values,
)
from stamp.report.wording import RHO, number
from stamp.stats.correlations.correlation import (
    FEWEST,
    Bootstrap,
    metric_difference,
    paired_bootstrap,
    percentile_interval,
)
from stamp.stats.regret import expected_regret

AVERAGE = "average"
DIFFERENCES = {"minus_stamp": STAMP, "minus_source": SOURCE_METRIC, "minus_matched": SOURCE_MATCHED}
REGRETS: dict[int | None, str] = {**{k: f"regret_{k}" for k in SUBSETS}, None: "regret_all"}
MIXED = "mixed"
CONTROLS = (SOURCE_METRIC, SOURCE_MATCHED, ON_LINE)  # made of what partials hold fixed
TABLE = {
    "models": pl.String,
    "outcome": pl.String,
    "title": pl.String,
    "predictor": pl.String,
    "name": pl.String,
    "needs": pl.String,
    "direction": pl.Int64,
    "n": pl.Int64,
    "common": pl.Boolean,
    "rho": pl.Float64,
    "oriented": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    **{
        f"{column}{end}": pl.Float64
        for column in DIFFERENCES
        for end in ("", "_low", "_high", "_p", "_adjusted")
    },
    **predictor_partials.COLUMNS,
    **dict.fromkeys(REGRETS.values(), pl.Float64),
    "reason": pl.String,
}
MODELS = {
    **analysis.DESCRIBED,
    "metric": pl.String,
    "name": pl.String,
    "view": pl.String,
    "domain": pl.String,
    "value": pl.Float64,
    "reason": pl.String,
}


def models(data: AnalysisData) -> pl.DataFrame:
    """Every metric of every model, of the source and of each target's domains."""
    names = pl.DataFrame([{"metric": one.name, "name": one.title} for one in METRICS])
    found = data.metrics.join(names, on="metric", how="left", maintain_order="left")
    joined = analysis.describe(data).join(found, on="model", maintain_order="left_right")
    return analysis.frame(joined.rows(named=True), MODELS)


@dataclass(frozen=True, slots=True)
class Contest:
    """The models that a filter keeps for one outcome: what each predictor says, what they reached.

    Values of predictors are oriented; ``common`` are the models that all of ``shared`` have.
    """

    outcome: str
    keys: list[str]
    scores: dict[str, np.ndarray]
    truth: np.ndarray
    known: dict[str, np.ndarray]
    shared: list[str]
    common: np.ndarray | None

    @classmethod
    def of(cls, data: AnalysisData, metrics: MetricValues, which: str, outcome: str) -> Self:
        board = analysis.kept(data, "declared" if which == MIXED else which, outcome)
        keys = board["model"].to_list()
        truth = values(data.outcomes, outcome, keys)
        found = predictors(data, metrics, outcome, keys, board["score"].to_numpy())
        known = {name: ~(np.isnan(score) | np.isnan(truth)) for name, score in found.items()}
        least = SHARE * known[STAMP].sum()
        shared = [name for name in found if known[name].any() and known[name].sum() >= least]
        if which == MIXED:
            shared = []
        common = np.all([known[name] for name in shared], axis=0) if shared else None
        scores = {name: DIRECTIONS[name] * score for name, score in found.items()}
        return cls(outcome, keys, scores, truth, known, shared, common)


def compared(data: AnalysisData, contest: Contest, which: str) -> list[dict[str, Any]]:
    """One row per predictor for one outcome: over a common set, or over its own models."""
    outcome, known, rows = contest.outcome, contest.known, []
    for name in contest.scores:
        row: dict[str, Any] = {
            "models": which,
            "outcome": outcome,
            "title": target_title(outcome, data.texts),
        }
        row |= {**about(name), "direction": DIRECTIONS[name]}
        members = known[name]
        if contest.common is not None and name in contest.shared:
            members = contest.common
        if not known[name].any():
            row["reason"] = _reason(data, name, outcome, contest.keys)
        else:
            row |= {"n": int(members.sum()), "common": name in contest.shared}
            if name not in contest.shared and which != MIXED:
                few = f"{row['n']} of {len(contest.keys)} models have it"
                row["reason"] = f"{few}: no part in the average"
        rows.append(row)
    if contest.common is not None:
        _fill([row for row in rows if row.get("common")], contest, contest.common, data)
    for row in rows:
        if row.get("common") is False:
            _fill([row], contest, known[row["predictor"]], data)
    return rows


def _add_partials(rows: list[dict[str, Any]], contest: Contest, data: AnalysisData) -> None:
    """Put what each common predictor adds to the source metric into its row."""
    own = [row for row in rows if row.get("common") and row["predictor"] not in CONTROLS]
    if contest.common is None or not own or contest.common.sum() < FEWEST:
        return
    there = [key for key, is_in in zip(contest.keys, contest.common, strict=True) if is_in]
    tested = {row["predictor"]: contest.scores[row["predictor"]][contest.common] for row in own}
    found = predictor_partials.predictor_partials(data, contest.outcome, there, tested)
    for row in own:
        row |= found[row["predictor"]]


def _fill(
    rows: list[dict[str, Any]], contest: Contest, members: np.ndarray, data: AnalysisData
) -> None:
    """Put the correlations over these members, and differences on the same ones, into the rows."""
    n, scores, truth = int(members.sum()), contest.scores, contest.truth
    if n < FEWEST:
        for row in rows:
            row["reason"] = f"{n} models have it: at least {FEWEST} are needed"
        return
    own = [row["predictor"] for row in rows]
    beside = [
        name
        for name in DIFFERENCES.values()
        if name in scores and not np.isnan(scores[name][members]).any()
    ]
    names = list(dict.fromkeys([*own, *beside]))
    drawn = paired_bootstrap(
        np.stack([scores[name] for name in names]),
        truth,
        data.settings["resamples"],
        data.seed,
        members,
    )
    numbers = _numbers(drawn, names, data.settings["level"])
    for row, found in zip(rows, numbers, strict=False):
        row |= found | {"rho": row["direction"] * found["oriented"]}
        row |= _regrets(scores[row["predictor"]][members], truth[members])


def _regrets(score: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """What picking the first of k models by a score loses, as in the analysis ``regret``."""
    subsets = {k: column for k, column in REGRETS.items() if k is None or k < len(truth)}
    return {column: expected_regret(score, truth, k or len(truth)) for k, column in subsets.items()}


def _reason(data: AnalysisData, name: str, outcome: str, keys: list[str]) -> str:
    """Why none of these models has a metric: what most of them say."""
    rows = data.metrics.filter((pl.col("metric") == name) & pl.col("model").is_in(keys))
    known = rows["reason"].drop_nulls()
    if len(known):
        return f"not available: {known.mode(maintain_order=True)[0]}"
    partly = outcome == MEAN and rows["value"].is_not_null().any()
    return "not available: not for every target of the mean" if partly else "not available"


def _numbers(drawn: Bootstrap, names: list[str], level: float) -> list[dict[str, Any]]:
    """Oriented rho, its interval, and its differences from STAMP's and the source metric's."""
    interval = percentile_interval(drawn.draws, level)
    rows = []
    for place, name in enumerate(names):
        row: dict[str, Any] = {"oriented": float(drawn.rho[place, 0])}
        row |= {"low": float(interval.low[place, 0]), "high": float(interval.high[place, 0])}
        for column, other in DIFFERENCES.items():
            if other in names and other != name:
                gap = metric_difference(drawn, place, names.index(other), level)
                row |= {column: float(gap.difference[0]), f"{column}_p": float(gap.p[0])}
                row |= {f"{column}_low": float(gap.low[0]), f"{column}_high": float(gap.high[0])}
                row[f"{column}_draws"] = gap.draws[:, 0]
        rows.append(row)
    return rows


def _averages(rows: list[dict[str, Any]], relabelled: list[str]) -> list[dict[str, Any]]:
    """The mean over the targets' outcomes of each predictor's rho, relabelled sources left out.

    One over fewer outcomes than STAMP's says so: averages over other targets do not compare.
    """
    counted = [
        row
        for row in rows
        if row["outcome"] != MEAN
        and row["outcome"].partition("/")[0] not in relabelled
        and (row.get("common") or row["models"] == MIXED)
    ]
    by_name = {
        name: [row for row in counted if row["predictor"] == name and row.get("rho") is not None]
        for name in dict.fromkeys(row["predictor"] for row in counted)
    }
    every = max(map(len, by_name.values()), default=0)
    found = []
    for own in by_name.values():
        if own:
            mean = {key: float(np.mean([row[key] for row in own])) for key in ("rho", "oriented")}
            same = {key: own[0][key] for key in ("models", "predictor", "name", "needs")}
            words = {"outcome": AVERAGE, "title": f"Average over {len(own)} outcomes"}
            counts = {row["n"] for row in own}
            n: dict[str, Any] = {"n": counts.pop()} if len(counts) == 1 else {}
            fewer = f"over {len(own)} of {every} outcomes: not compared with the other averages"
            n["reason"] = fewer if len(own) < every else None
            found.append({**same, **words, "direction": own[0]["direction"], **mean, **n})
    return found


def table(data: AnalysisData) -> pl.DataFrame:
    """Every predictor with every outcome under each filter.

    The p of all differences under a filter are corrected together: its models are drawn jointly for
    every predictor and outcome (``multiple_testing.max_t``).
    """
    names = shown_outcomes(data.outcomes)
    if not names:
        return analysis.nothing(TABLE, analysis.NO_TARGETS)
    metrics, every = MetricValues.of(data), list[dict[str, Any]]()
    for which in (*analysis.FILTERS, *((MIXED,) if data.options.get("mixed") else ())):
        if which == "declared" and nobody_is_excluded(data, names):
            rows = [{**row, "models": which} for row in every if row["outcome"] != AVERAGE]
        else:
            rows = [
                row
                for outcome in names
                for row in compared(data, Contest.of(data, metrics, which, outcome), which)
            ]
            for column in DIFFERENCES:
                adjust(rows, column, column)
        if which == "declared":
            for outcome in names:
                own = [row for row in rows if row["outcome"] == outcome]
                _add_partials(own, Contest.of(data, metrics, which, outcome), data)
        every += rows + _averages(rows, data.texts["relabelled"])
    return analysis.frame(every, TABLE)


def nobody_is_excluded(data: AnalysisData, names: list[str]) -> bool:
    """Whether the study's own rule keeps every model for all outcomes, with the same scores."""
    return all(
        analysis.kept(data, "declared", name).equals(analysis.kept(data, "all", name))
        for name in names
    )


def sentence(table: pl.DataFrame) -> str:
    """Which predictor did best on the average, where STAMP stands, and how many differ from it.

    The source metric, which needs no target data either, stands beside it. What knows target labels
    (accuracy on the line, scores of a labeled target) does not compete, nor does an average over
    fewer outcomes.
    """
    if reason := analysis.why(table):
        return f"No comparison: {reason}."
    rows = table.filter((pl.col("models") == "declared") & (pl.col("outcome") == AVERAGE))
    rows = rows.filter(competes() & pl.col("reason").is_null())
    rows = rows.drop_nulls("oriented").sort("oriented", descending=True)
    if rows.is_empty():
        return "No comparison: no predictor has a correlation."
    best = rows.row(0, named=True)
    place = rows["predictor"].to_list().index(STAMP) + 1 if STAMP in rows["predictor"] else None
    own = rows.filter(pl.col("predictor") == STAMP)["oriented"]
    tested = table.filter(
        (pl.col("models") == "declared") & pl.col("minus_stamp_adjusted").is_not_null()
    )
    apart = int((tested["minus_stamp_adjusted"] < 0.05).sum())
    said = (
        f"Of {len(rows)} predictors that need no target labels, {best['name']} has the largest "
        f"oriented {RHO} on the average over targets, {number(best['oriented'])}"
    )
    if place is not None:
        said += f"; STAMP is in place {place} with {number(own[0])}"
    source = rows.filter(pl.col("predictor") == SOURCE_METRIC)["oriented"]
    if len(source) and best["predictor"] != SOURCE_METRIC:
        said += f", the source metric has {number(source[0])}"
    tests = f"{apart} of {len(tested)} differences from STAMP have p < 0.05"
    return f"{said}. Corrected for all tests together, {tests}."
