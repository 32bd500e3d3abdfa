"""Scores and outcomes by one thing that is said of models: what `objectives` and `regimes` share.

A stratum is all models of which the same is said. Strata stand by their size, largest first, then
by name, so that no score had a part in which of two is called the first. A stratum of one model is
listed and left out of the tests. The score under ``all`` is the raw formula, so that a degenerate
model shows where it would stand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from stamp.report import analysis
from stamp.report.analysis import AnalysisData
from stamp.report.main_table import target_title
from stamp.report.outcomes import MEAN, by_model, shown_outcomes, values
from stamp.report.wording import RHO, number
from stamp.stats.correlations.correlation import FEWEST, bonett_wright_interval, permutation_p
from stamp.stats.effect_sizes import kruskal_wallis
from stamp.stats.group_tests import Resampler, kruskal_permutation_p, mann_whitney
from stamp.stats.multiple_testing import holm

STAMP = "stamp"
STRATUM, TEST, PAIR = "stratum", "test", "pair"
SMALLEST = 2  # models of a stratum that takes part in tests
TABLE = {
    "models": pl.String,
    "of": pl.String,
    "title": pl.String,
    "what": pl.String,
    "stratum": pl.String,
    "other": pl.String,
    "n": pl.Int64,
    "other_n": pl.Int64,
    "mean": pl.Float64,
    "sd": pl.Float64,
    "sd_n": pl.Float64,
    "lowest": pl.Float64,
    "highest": pl.Float64,
    "statistic": pl.Float64,
    "df": pl.Int64,
    "method": pl.String,
    "p": pl.Float64,
    "p_permutation": pl.Float64,
    "p_greater": pl.Float64,
    "holm": pl.Float64,
    "delta": pl.Float64,
    "delta_low": pl.Float64,
    "delta_high": pl.Float64,
    "difference": pl.Float64,
    "difference_low": pl.Float64,
    "difference_high": pl.Float64,
    "rho": pl.Float64,
    "rho_low": pl.Float64,
    "rho_high": pl.Float64,
    "rho_p": pl.Float64,
    "rho_method": pl.String,
    "ids": pl.String,
    "reason": pl.String,
}
MODELS = {
    **analysis.DESCRIBED,
    "stratum": pl.String,
    "of": pl.String,
    "title": pl.String,
    "metric": pl.String,
    "value": pl.Float64,
    "reason": pl.String,
}


@dataclass(frozen=True, slots=True)
class GroupedQuantity:
    """What strata are compared by: the score or an outcome, of the models that have it."""

    name: str
    title: str
    keys: list[str]
    values: np.ndarray
    scores: np.ndarray


def models(data: AnalysisData, column: str) -> pl.DataFrame:
    """Every model's stratum, score and outcomes, one row each."""
    said = analysis.describe(data)
    keys = said["model"].to_list()
    metric = dict(data.outcomes.select("outcome", "metric").iter_rows())
    said_of = [data.models[key].get(column) for key in keys]
    strata = pl.Series("stratum", said_of, dtype=pl.String)
    parts = [said.with_columns(strata, of=pl.lit(STAMP), title=pl.lit("STAMP"), value="stamp")]
    for outcome in shown_outcomes(data.outcomes):
        about = {"of": outcome, "title": target_title(outcome, data.texts)}
        texts = {name: pl.lit(text) for name, text in {**about, "metric": metric[outcome]}.items()}
        found = pl.Series("value", values(data.outcomes, outcome, keys))
        parts.append(said.with_columns(strata, found, **texts))
    return analysis.frame([row for part in parts for row in part.rows(named=True)], MODELS)


def table(data: AnalysisData, column: str) -> pl.DataFrame:
    """How the strata differ in the score and in each outcome, under each filter.

    ``stratum`` rows: mean, sd (divisor n - 1), ``sd_n`` (divisor n), least and largest value, and
    within the stratum rho of the score with the outcome. The ``test`` row: Kruskal and Wallis's H
    with p by chi-squared and by permutations. ``pair`` rows: Mann and Whitney's U of the stratum
    against the other, with the two-sided p, Holm-corrected over the pairs of the same quantity and
    filter, and ``p_greater`` for the side that the stratum has the larger values; Cliff's delta and
    the difference of means, with bootstrap intervals.
    """
    if len({data.models[key][column] for key in data.scores["model"]}) < 2:
        return analysis.nothing(TABLE, f"all models have the same {column}")
    drawn = Resampler(data.settings["resamples"], data.settings["level"], data.seed)
    rows = []
    for which in analysis.FILTERS:
        for quantity in quantities(data, which):
            common = {"models": which, "of": quantity.name, "title": quantity.title}
            rows += [{**common, **row} for row in compared(quantity, column, data, drawn)]
    return analysis.frame(rows, TABLE)


def quantities(data: AnalysisData, which: str) -> Iterator[GroupedQuantity]:
    """The score, then each outcome, of the models that a filter keeps and that have both."""
    for name in (STAMP, *shown_outcomes(data.outcomes)):
        board = analysis.kept(data, which, name).drop_nulls("score").drop_nans("score")
        keys = board["model"].to_list()
        scores = by_model(board, keys, "score")
        found = scores if name == STAMP else values(data.outcomes, name, keys)
        known = ~np.isnan(found)
        title = "STAMP" if name == STAMP else target_title(name, data.texts)
        there = [key for key, one in zip(keys, known, strict=True) if one]
        yield GroupedQuantity(name, title, there, found[known], scores[known])


def compared(
    quantity: GroupedQuantity, column: str, data: AnalysisData, drawn: Resampler
) -> Iterator[dict[str, Any]]:
    """The rows of one quantity: its strata, the test of all, and each two of them."""
    strata = members([data.models[key][column] for key in quantity.keys])
    for name, places in strata.items():
        yield {"what": STRATUM, "stratum": name, **_of_stratum(quantity, places, data)}
    tested = {name: places for name, places in strata.items() if len(places) >= SMALLEST}
    n = sum(map(len, tested.values()))
    if len(tested) < 2:
        few = f"{len(tested)} strata have {SMALLEST} models or more, and 2 are needed"
        yield {"what": TEST, "n": n, "reason": few}
        return
    groups = [quantity.values[places] for places in tested.values()]
    if len(np.unique(np.concatenate(groups))) < 2:
        yield {"what": TEST, "n": n, "reason": "all values are the same"}
        return
    found = kruskal_wallis(groups)
    yield {
        "what": TEST,
        "n": n,
        "method": "Kruskal-Wallis",
        "statistic": found.h,
        "df": found.df,
        "p": found.p,
        "p_permutation": kruskal_permutation_p(groups, data.settings["permutations"], data.seed),
    }
    yield from _pairs(list(tested), groups, drawn)


def members(said: list[str]) -> dict[str, np.ndarray]:
    """The places of each stratum's models; the largest stratum first, then by name."""
    names = np.array(said, dtype=object)
    found = {name: np.flatnonzero(names == name) for name in sorted(set(said))}
    return dict(sorted(found.items(), key=lambda one: -len(one[1])))


def _of_stratum(
    quantity: GroupedQuantity, places: np.ndarray, data: AnalysisData
) -> dict[str, Any]:
    """The moments of a stratum, and within it rho of the score with the outcome."""
    own = quantity.values[places]
    row: dict[str, Any] = {
        "n": len(own),
        "mean": float(own.mean()),
        "sd": float(own.std(ddof=1)) if len(own) > 1 else None,
        "sd_n": float(own.std()),
        "lowest": float(own.min()),
        "highest": float(own.max()),
        "ids": ", ".join(quantity.keys[place] for place in places),
    }
    if quantity.name == STAMP:
        return row
    if len(own) < FEWEST:
        return row | {"reason": f"{len(own)} models are too few for {RHO}: {FEWEST} are needed"}
    scores = quantity.scores[places]
    test = permutation_p(scores, own, data.settings["permutations"], data.seed)
    interval = bonett_wright_interval(test.rho, len(own), data.settings["level"])
    return row | {
        "rho": float(test.rho),
        "rho_low": float(interval.low),
        "rho_high": float(interval.high),
        "rho_p": float(test.p),
        "rho_method": test.method,
    }


def _pairs(names: list[str], groups: list[np.ndarray], drawn: Resampler) -> list[dict[str, Any]]:
    """Each two strata against each other, Holm-corrected over all of them."""
    rows: list[dict[str, Any]] = []
    for i, j in combinations(range(len(names)), 2):
        test = mann_whitney(groups[i], groups[j])
        delta, gap = drawn.effects(groups, i, j)
        rows.append(
            {
                "what": PAIR,
                "stratum": names[i],
                "other": names[j],
                "n": len(groups[i]),
                "other_n": len(groups[j]),
                "statistic": test.u,
                "method": f"Mann-Whitney, {test.method}",
                "p": test.p_two_sided,
                "p_greater": test.p_greater,
                "delta": delta.value,
                "delta_low": delta.low,
                "delta_high": delta.high,
                "difference": gap.value,
                "difference_low": gap.low,
                "difference_high": gap.high,
            }
        )
    for row, corrected in zip(rows, holm(np.array([row["p"] for row in rows])), strict=True):
        row["holm"] = float(corrected)
    return rows


def small_p(value: float | None) -> str:
    """A p for a sentence, with two figures however small it is."""
    return "p undefined" if value is None else f"p = {value:.2g}"


def sentence(table: pl.DataFrame, column: str) -> str:
    """How the strata's scores differ, the largest against each other one; and the mean outcome."""
    if reason := analysis.why(table):
        return f"No comparison by {column}: {reason}."
    declared = table.filter(pl.col("models") == "declared")
    names = declared["of"].unique(maintain_order=True).to_list()
    targets = [name for name in names if name != STAMP]
    shown = [STAMP, *([MEAN] if MEAN in targets else targets)]
    return " ".join(_words(declared.filter(pl.col("of") == name), column) for name in shown)


def _words(rows: pl.DataFrame, column: str) -> str:
    kinds: dict[str, list[dict[str, Any]]] = {
        kind: rows.filter(pl.col("what") == kind).rows(named=True) for kind in (STRATUM, TEST, PAIR)
    }
    strata = kinds[STRATUM]
    if not strata:
        return f"{rows['title'][0]} by {column}: no model is left."
    said = [f"{strata[0]['title']} by {column}: {'; '.join(_stratum(row) for row in strata)}."]
    test = kinds[TEST][0]
    if test["statistic"] is None:
        return f"{said[0]} No test: {test['reason']}."
    said.append(
        f"Kruskal\u2013Wallis over the {test['n']} models of strata with at least {SMALLEST}: "
        f"H = {test['statistic']:.2f} on {test['df']} df, {small_p(test['p'])} by "
        f"\u03c7\u00b2, {small_p(test['p_permutation'])} by permutations."
    )
    if strata[0]["of"] != STAMP:
        return " ".join(said)
    first = kinds[PAIR][0]["stratum"]
    said += [_pair(row) for row in kinds[PAIR] if row["stratum"] == first]
    others = [row for row in kinds[PAIR] if row["stratum"] != first]
    if others:
        apart = sum(row["holm"] < 0.05 for row in others)
        said.append(f"After Holm p < 0.05 in {apart} of the {len(others)} other pairs.")
    return " ".join(said)


def _stratum(row: Mapping[str, Any]) -> str:
    spread = "one model" if row["sd"] is None else f"sd {number(row['sd'])}, n = {row['n']}"
    inside = "" if row["rho"] is None else f", {RHO} within it {number(row['rho'])}"
    return f"{row['stratum']} {number(row['mean'])} ({spread}{inside})"


def _pair(row: Mapping[str, Any]) -> str:
    exact = "exact " if "exact" in row["method"] else ""
    return (
        f"{row['stratum']} against {row['other']}: Cliff's \u03b4 = {number(row['delta'])} "
        f"({number(row['delta_low'])} to {number(row['delta_high'])}), difference of means "
        f"{number(row['difference'])} ({number(row['difference_low'])} to "
        f"{number(row['difference_high'])}), {exact}Mann\u2013Whitney {small_p(row['p'])} "
        f"two-sided ({small_p(row['holm'])} after Holm), {small_p(row['p_greater'])} for "
        f"{row['stratum']} greater."
    )
