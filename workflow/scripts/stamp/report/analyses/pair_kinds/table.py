"""What the kind of pairs changes: temporal (T), labeled (L), changed (C) and synthetic (S) pairs.

T pairs are consecutive images of a group, L those of them with identical labels, C the others, S an
image and its augmented self (the metric ``aug_composite``). Differences are named by what is
subtracted from what; all numbers of a filter are over one set of models.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from stamp.report import analysis
from stamp.report.analysis import AnalysisData
from stamp.report.comparison import common_set
from stamp.report.comparison.common_set import Subset
from stamp.report.outcomes import MEAN, by_model
from stamp.report.wording import RHO, number, p_text
from stamp.stats.correlations.correlation import bonett_wright_interval, permutation_p

KINDS = {"temporal": "T", "labeled": "L", "changed": "C", "synthetic": "S"}
PAIRED = ("temporal", "labeled", "changed")  # kinds that the study draws pairs of
SYNTHETIC = "aug_composite"  # the metric that is the score of synthetic pairs
LETTERS = list(KINDS.values())
DIFFERENCES = [f"{one}_minus_{other}" for one, other in combinations(LETTERS, 2)]
OUTCOME, BETWEEN, DIFFERENCE, MISSING = "outcome", "between", "difference", "missing"
TABLE = {
    "models": pl.String,
    **common_set.SUBSET,
    "what": pl.String,
    "kind": pl.String,
    "other": pl.String,
    "outcome": pl.String,
    "title": pl.String,
    **common_set.COMPARED,
    "mean": pl.Float64,
    "lowest": pl.Float64,
    "highest": pl.Float64,
    "positive": pl.Int64,
    "sv_mean": pl.Float64,
    "sv_positive": pl.Int64,
    "reason": pl.String,
}
MODELS = {
    **analysis.DESCRIBED,
    **dict.fromkeys(LETTERS, pl.Float64),
    **dict.fromkeys(DIFFERENCES, pl.Float64),
    **{f"SV_{KINDS[kind]}": pl.Float64 for kind in PAIRED},
    "AV": pl.Float64,
    **common_set.MEMBERSHIPS,
    "reason": pl.String,
}
NOTHING = (
    "fewer than two of temporal, labeled, changed and synthetic pairs are scored "
    "(pairs.semantic and pairs.also)"
)


def scores(data: AnalysisData, keys: list[str]) -> dict[str, np.ndarray]:
    """The models' scores by kind of pairs, NaN where there is none."""
    found = {KINDS[kind]: _column(data, keys, "stamp", kind) for kind in PAIRED}
    rows = data.metrics.filter((pl.col("metric") == SYNTHETIC) & pl.col("view").is_null())
    return found | {KINDS["synthetic"]: by_model(rows, keys)}


def variances(data: AnalysisData, keys: list[str]) -> dict[str, np.ndarray]:
    """The models' SV by kind of pairs; all kinds share the random pairs and so AV."""
    return {KINDS[kind]: _column(data, keys, "within", kind) for kind in PAIRED}


def _column(data: AnalysisData, keys: list[str], name: str, kind: str) -> np.ndarray:
    """A part of the score of one kind: its own column, or the headline's where it is that kind."""
    board = data.scores
    headline = board["kind"][0] if "kind" in board.columns else None
    column = name if headline == kind else f"{name}_{kind}"
    return by_model(board, keys, column) if column in board.columns else np.full(len(keys), np.nan)


def subset(data: AnalysisData, which: str) -> Subset:
    """The models that a filter keeps and that have all kinds that are there and every outcome."""
    keys = analysis.kept(data, which, MEAN)["model"].to_list()
    return common_set.common(data, keys, scores(data, keys))


def models(data: AnalysisData) -> pl.DataFrame:
    """Every model's score by kind of pairs, their differences, SV by kind, and AV."""
    said = analysis.describe(data)
    keys = said["model"].to_list()
    found, own = scores(data, keys), variances(data, keys)
    gaps = {f"{a}_minus_{b}": found[a] - found[b] for a, b in combinations(LETTERS, 2)}
    numbers = {**found, **gaps, **{f"SV_{kind}": sv for kind, sv in own.items()}}
    numbers["AV"] = by_model(data.scores, keys, "total")
    sets = common_set.memberships({which: subset(data, which) for which in analysis.FILTERS})
    columns = {name: pl.Series(v) for name, v in numbers.items()}
    return analysis.frame(said.with_columns(**columns, **sets).rows(named=True), MODELS)


def table(data: AnalysisData) -> pl.DataFrame:
    """The kinds of pairs beside each other, over one set of models a filter.

    ``outcome`` rows: rho of each kind's score with each outcome, and what is left of it after
    subtracting that of the first kind that is there (``minus_reference``). ``between`` rows: rho of
    the scores of two kinds. ``difference`` rows: mean, least and largest of the score of ``kind``
    minus that of ``other`` over the models, in how many it is above 0, and the same of SV.
    ``missing`` rows say why there is no score of a kind.
    """
    there = scores(data, data.scores["model"].to_list())
    if sum(not np.isnan(found).all() for found in there.values()) < 2:
        return analysis.nothing(TABLE, NOTHING)
    rows: list[dict[str, Any]] = []
    for which in analysis.FILTERS:
        chosen = subset(data, which)
        found = _compared(data, chosen)
        gone = [kind for kind in LETTERS if kind not in chosen.predictors]
        found += [{"what": MISSING, "kind": one, "reason": _reason(data, one)} for one in gone]
        rows += [{**row, **chosen.about, "models": which} for row in found]
    return analysis.frame(rows, TABLE)


def _compared(data: AnalysisData, chosen: Subset) -> list[dict[str, Any]]:
    """The rows of one set of models, or one that says why there are none."""
    if chosen.reason:
        return [{"what": OUTCOME, "reason": chosen.reason}]
    kinds = list(chosen.predictors)
    rows = [
        {**row, "what": OUTCOME, "kind": row["predictor"]}
        for row in common_set.compare(chosen, dict.fromkeys(kinds, 1), kinds[0], data)
    ]
    own = variances(data, chosen.keys)
    for one, other in combinations(kinds, 2):
        pair = {"kind": one, "other": other}
        first, second = chosen.predictors[one], chosen.predictors[other]
        test = permutation_p(first, second, data.settings["permutations"], data.seed)
        ends = bonett_wright_interval(test.rho, len(chosen.keys), data.settings["level"])
        numbers = {"rho": test.rho, "p": test.p, "low": ends.low, "high": ends.high}
        rows.append({**pair, "what": BETWEEN, **{k: float(v) for k, v in numbers.items()}})
        gap = first - second
        row = {**pair, "what": DIFFERENCE, "mean": float(gap.mean())}
        row |= {"lowest": float(gap.min()), "highest": float(gap.max())}
        row |= {"positive": int((gap > 0).sum())}
        if one in own and other in own:
            more = own[one] - own[other]
            row |= {"sv_mean": float(more.mean()), "sv_positive": int((more > 0).sum())}
        rows.append(row)
    return rows


def _reason(data: AnalysisData, letter: str) -> str:
    """Why no model has a score of a kind of pairs."""
    if letter != KINDS["synthetic"]:
        kind = next(name for name, short in KINDS.items() if short == letter)
        return f"the study scores no {kind} pairs (pairs.also)"
    known = data.metrics.filter(pl.col("metric") == SYNTHETIC)["reason"].drop_nulls()
    return f"{SYNTHETIC}: {known[0]}" if len(known) else f"the study has no metric {SYNTHETIC}"


def sentence(table: pl.DataFrame) -> str:
    """The differences between the kinds, how well each orders the models, and what is missing."""
    if reason := analysis.why(table):
        return f"No comparison of kinds of pairs: {reason}."
    declared = table.filter(pl.col("models") == "declared")
    by_what: dict[str, list[dict[str, Any]]] = {
        what: declared.filter(pl.col("what") == what).rows(named=True)
        for what in (OUTCOME, BETWEEN, DIFFERENCE, MISSING)
    }
    if not by_what[DIFFERENCE]:
        return f"No comparison of kinds of pairs: {by_what[OUTCOME][0]['reason']}."
    first = by_what[DIFFERENCE][0]
    shown = {row[end] for row in by_what[DIFFERENCE] for end in ("kind", "other")}
    kinds = ", ".join(f"{short} {name}" for name, short in KINDS.items() if short in shown)
    over = f"over one set of {first['n']} models (set {first['subset']})"
    said = [f"STAMP by kind of pairs ({kinds}), {over}."]
    said += [_difference(row) for row in by_what[DIFFERENCE]]
    rows = by_what[OUTCOME]
    wanted = [row for row in rows if row["outcome"] == MEAN] or rows
    said += [_outcome(row) for row in wanted]
    between = [f"{row['kind']} and {row['other']} {number(row['rho'])}" for row in by_what[BETWEEN]]
    said.append(f"{RHO} between kinds: {', '.join(between)}.")
    said += [f"No {row['kind']}: {row['reason']}." for row in by_what[MISSING]]
    return " ".join(said)


def _difference(row: Mapping[str, Any]) -> str:
    n = row["n"]
    text = (
        f"{row['kind']} minus {row['other']} is {number(row['mean'])} on the mean, "
        f"{number(row['lowest'])} to {number(row['highest'])}, above 0 in {row['positive']} of {n}"
    )
    if row["sv_mean"] is None:
        return f"{text}."
    gap = f"{row['sv_mean']:.5f}".replace("-", "\u2212")
    return (
        f"{text}; SV_{row['kind']} minus SV_{row['other']} is {gap} on the mean, above 0 in "
        f"{row['sv_positive']}."
    )


def _outcome(row: Mapping[str, Any]) -> str:
    text = f"{row['title']}: {RHO} of {row['kind']} is {number(row['rho'])} ({p_text(row['p'])})"
    if row["minus_reference"] is None:
        return f"{text}."
    return (
        f"{text}, {number(row['minus_reference'])} from the first kind's "
        f"({number(row['minus_low'])} to {number(row['minus_high'])})."
    )
