"""The score as an alarm before deployment: which models will fail, at a threshold on the score.

A model fails where its outcome is below delta. Some models calibrate the alarm's threshold, the
others test it, over and over. The calibration knows the outcomes of its models: it uses target
labels, which the paper's "no target labels" leaves unsaid.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from stamp.report import analysis
from stamp.report.analysis import AnalysisData
from stamp.report.comparison import paired
from stamp.report.comparison.paired import Paired
from stamp.stats.correlations.correlation import percentile_interval

SPLITS, SHARE = 1_000, 0.35
QUANTILES = np.arange(0.1, 0.91, 0.1)  # of the outcome: the deltas of the sweep
FEWEST = 2  # models that fail, and that do not: one on each side of a split
SPLIT = 21  # tag that keeps the random streams of one seed apart
F1, PRECISE = "F1", "no false alarm"
SOURCE_METRIC = "source metric"
USES = "calibration models' target labels"
MEASURES = ("precision", "recall", "f1", "always_f1", "gain")
TABLE = {
    **paired.ABOUT,
    "predictor": pl.String,
    "rule": pl.String,
    "uses": pl.String,
    "n": pl.Int64,
    "delta": pl.Float64,
    "delta_is": pl.String,
    "failing": pl.Int64,
    "calibrating": pl.Int64,
    "testing": pl.Int64,
    "splits": pl.Int64,
    **{f"{name}{end}": pl.Float64 for name in MEASURES for end in ("", "_low", "_high")},
    "silent": pl.Float64,
    "gains": pl.Float64,
    "threshold": pl.Float64,
    "reason": pl.String,
}
MODELS = {
    **paired.OF_MODEL,
    "value": pl.Float64,
    "delta": pl.Float64,
    "fails": pl.Boolean,
    "alarmed": pl.Float64,
    "reason": pl.String,
}


@dataclass(frozen=True, slots=True)
class Tested:
    """What the alarm did in each split [splits]; NaN where a ratio has nothing under it.

    ``silent`` where no test model was alarmed; ``alarmed`` [n] is how often each model was, of the
    splits that tested it.
    """

    precision: np.ndarray
    recall: np.ndarray
    f1: np.ndarray
    always: np.ndarray
    silent: np.ndarray
    thresholds: np.ndarray
    alarmed: np.ndarray


def calibration_splits(fails: np.ndarray, splits: int, seed: int) -> np.ndarray:
    """Which models calibrate, [splits, n]: 35 % of those that fail and of those that do not.

    At least one of each kind calibrates and one tests.
    """
    rng = np.random.default_rng([seed, SPLIT])
    chosen = np.zeros((splits, len(fails)), dtype=bool)
    for group in (np.flatnonzero(fails), np.flatnonzero(~fails)):
        size = min(max(1, round(SHARE * len(group))), len(group) - 1)
        order = np.argsort(rng.random((splits, len(group))), axis=1)[:, :size]
        np.put_along_axis(chosen, group[order], True, axis=1)
    return chosen


def thresholds(score: np.ndarray, fails: np.ndarray, chosen: np.ndarray, rule: str) -> np.ndarray:
    """The threshold of each split, from its calibration models alone; below it there is alarm.

    Candidates lie half-way between neighbouring scores of the calibration models, and above all of
    them. ``F1`` takes the largest F1, of equal ones the lowest threshold; ``no false alarm`` the
    highest with precision 1, or minus infinity where the lowest score is of a model that does not
    fail.
    """
    size = int(chosen[0].sum())
    order = np.argsort(score, kind="stable")
    places = np.nonzero(chosen[:, order])[1].reshape(len(chosen), size)
    ranked, failing = score[order][places], fails[order][places]
    hits, alarms = np.cumsum(failing, axis=1), np.arange(1, size + 1)
    above = np.concatenate([ranked[:, 1:], np.full((len(chosen), 1), np.inf)], axis=1)
    cut = above > ranked
    if rule == PRECISE:
        clean = cut & (hits == alarms)
        best = size - 1 - np.argmax(clean[:, ::-1], axis=1)
        found = np.take_along_axis(_middle(ranked, above), best[:, None], axis=1)[:, 0]
        return np.where(clean.any(axis=1), found, -np.inf)
    f1 = np.where(cut, 2 * hits / (alarms + hits[:, -1:]), -1)
    best = np.argmax(f1, axis=1)
    return np.take_along_axis(_middle(ranked, above), best[:, None], axis=1)[:, 0]


def _middle(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return np.where(np.isinf(high), np.inf, low + (high - low) / 2)


def tested(score: np.ndarray, fails: np.ndarray, chosen: np.ndarray, rule: str) -> Tested:
    """Precision, recall and F1 of the alarm on the models that did not calibrate it.

    ``always`` is the F1 of alarming for every model, 2 p / (1 + p) with p the failing share of the
    test models.
    """
    at = thresholds(score, fails, chosen, rule)
    tests = ~chosen
    alarm = tests & (score < at[:, None])
    hits = (alarm & fails).sum(axis=1)
    alarms, failing = alarm.sum(axis=1), (tests & fails).sum(axis=1)
    share = failing / tests.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return Tested(
            precision=hits / np.where(alarms, alarms, np.nan),
            recall=hits / failing,
            f1=2 * hits / (alarms + failing),
            always=2 * share / (1 + share),
            silent=alarms == 0,
            thresholds=at,
            alarmed=alarm.sum(axis=0) / tests.sum(axis=0),
        )


def deltas(y: np.ndarray, outcome: str, given: Any) -> list[tuple[float, str]]:
    """The deltas of an outcome with their names: the study's, or the median; then the sweep's.

    With ties and few models fewer or more than the quantile's share fail: ``failing`` counts them.
    """
    wanted = given.get(outcome) if isinstance(given, Mapping) else given
    own = (float(np.median(y)), "median") if wanted is None else (float(wanted), "study")
    sweep = [(float(np.quantile(y, one)), f"{100 * one:.0f} % quantile") for one in QUANTILES]
    return [own, *(one for one in sweep if one[0] != own[0])]


def sides(one: Paired) -> Iterator[tuple[str, np.ndarray]]:
    """The score, and the source metric beside it where every one of these models has it."""
    known = one.known()
    yield one.score, one.x[known]
    if not np.isnan(one.source[known]).any():
        yield SOURCE_METRIC, one.source[known]


def table(data: AnalysisData) -> pl.DataFrame:
    """Means over the splits, and percentiles, at the study's delta and over a sweep of deltas.

    ``silent`` is the share of splits without any alarm, which have no precision; ``gain`` is F1
    minus that of alarming always, ``gains`` the share of splits where it is above 0.
    ``threshold`` is the median of the splits' thresholds on the score, null where that of the
    median split alarms for all models or for none.
    """
    given, level = data.options.get("delta"), data.settings["level"]
    rows = []
    for one in paired.pairings(data):
        known = one.known()
        y, n = one.y[known], int(known.sum())
        for delta, name in deltas(y, one.outcome, given) if n else []:
            fails = y < delta
            common = {**one.about, "uses": USES, "n": n, "delta": delta, "delta_is": name}
            common["failing"] = int(fails.sum())
            if min(fails.sum(), n - fails.sum()) < FEWEST:
                few = f"{fails.sum()} of {n} models fail: {FEWEST} that do and that do not needed"
                rows.append({**common, "predictor": one.score, "reason": few})
                continue
            chosen = calibration_splits(fails, SPLITS, data.seed)
            common |= {"calibrating": int(chosen[0].sum()), "testing": int((~chosen[0]).sum())}
            for predictor, score in sides(one):
                for rule in (F1, PRECISE):
                    found = summary(tested(score, fails, chosen, rule), level)
                    rows.append({**common, "predictor": predictor, "rule": rule, **found})
        if not n:
            rows.append({**one.about, "n": 0, "reason": "no model has a score and a value"})
    return analysis.frame(rows, TABLE) if rows else analysis.nothing(TABLE, analysis.NO_TARGETS)


def summary(found: Tested, level: float) -> dict[str, float]:
    """Means over splits with percentile intervals."""
    gain = found.f1 - found.always
    each = (found.precision, found.recall, found.f1, found.always, gain)
    row: dict[str, float] = {"splits": len(gain), "silent": float(found.silent.mean())}
    for name, draws in zip(MEASURES, each, strict=True):
        ends = percentile_interval(draws, level)
        known = draws[~np.isnan(draws)]
        row[name] = float(known.mean()) if known.size else math.nan
        row |= {f"{name}_low": float(ends.low), f"{name}_high": float(ends.high)}
    # the upper of two middle splits: no mean of two infinities
    middle = float(np.sort(found.thresholds)[len(gain) // 2])
    threshold = middle if math.isfinite(middle) else math.nan
    return row | {"gains": float((gain > 0).mean()), "threshold": threshold}


def models(data: AnalysisData) -> pl.DataFrame:
    """Whether each model fails at the study's delta, and how often it was alarmed when tested."""
    said = paired.described(data)
    given, rows = data.options.get("delta"), []
    for one in paired.pairings(data):
        known = np.flatnonzero(one.known())
        if not len(known):
            continue
        x, y = one.x[known], one.y[known]
        delta = deltas(y, one.outcome, given)[0][0]
        fails, alarmed = y < delta, np.full(len(y), np.nan)
        if min(fails.sum(), (~fails).sum()) >= FEWEST:
            alarmed = tested(x, fails, calibration_splits(fails, SPLITS, data.seed), F1).alarmed
        rows += [
            {
                **paired.of_model(said, one, int(at)),
                "value": y[place],
                "delta": delta,
                "fails": bool(fails[place]),
                "alarmed": alarmed[place],
            }
            for place, at in enumerate(known)
        ]
    return analysis.frame(rows, MODELS) if rows else analysis.nothing(MODELS, analysis.NO_TARGETS)


def sentence(table: pl.DataFrame) -> str:
    """How the alarm did at the study's delta, beside the source metric's and beside always."""
    if reason := analysis.why(table):
        return f"No alarm: {reason}."
    parts = []
    own = paired.spoken(table).filter(pl.col("delta_is").is_in(["median", "study"]))
    for (_,), rows in own.group_by("outcome", maintain_order=True):
        ours = rows.filter(pl.col("predictor") != SOURCE_METRIC).row(0, named=True)
        named = "the median" if ours["delta_is"] == "median" else "the study's"
        words = f"{ours['title']}, failing below {ours['delta']:.3f} ({named})"
        if ours["f1"] is None:
            parts.append(f"{words}: {ours['reason']}.")
            continue
        words += (
            f": precision {_precision(ours)}, recall {ours['recall']:.2f}, F1 {_measure(ours)} on "
            f"{ours['testing']} test models over {ours['splits']:,} splits, against "
            f"{ours['always_f1']:.2f} for alarming always"
        )
        other = rows.filter((pl.col("predictor") == SOURCE_METRIC) & (pl.col("rule") == F1))
        if len(other):
            words += f" and {other['f1'][0]:.2f} for the source metric"
        parts.append(words + ".")
    if not parts:
        return "No alarm: no outcome has models with a score and a value."
    lead = (
        f"STAMP as an alarm, its threshold calibrated on {100 * SHARE:.0f} % of the models, whose "
        "target labels it uses."
    )
    return " ".join([lead, *parts])


def _measure(row: dict[str, Any]) -> str:
    return f"{row['f1']:.2f} ({row['f1_low']:.2f} to {row['f1_high']:.2f})"


def _precision(row: dict[str, Any]) -> str:
    return "undefined" if row["precision"] is None else f"{row['precision']:.2f}"
