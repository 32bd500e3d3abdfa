"""Which layers' STAMP, and which gains between layers, go with an outcome when taken together.

Ridge regression of the outcome on the models' ranks in each feature. The features are differences
of each other and few models carry many of them, so a coefficient alone says little: each feature's
own rho, what shuffling it costs, and what the whole predicts of models left out stand beside it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from stamp.report import analysis
from stamp.report.analyses.layers.table import KINDS, features
from stamp.report.analysis import AnalysisData
from stamp.report.main_table import target_title
from stamp.report.outcomes import shown_outcomes, values
from stamp.report.profiles import associations
from stamp.report.wording import RHO, number, p_text
from stamp.stats.correlations.correlation import permutation_p
from stamp.stats.ranks import mid_ranks
from stamp.stats.ridge import fit

FEWEST = 8  # models below which no regression is made
TABLE = {
    "models": pl.String,
    "outcome": pl.String,
    "title": pl.String,
    "kind": pl.String,
    "what": pl.String,
    "feature": pl.String,
    "n": pl.Int64,
    "coefficient": pl.Float64,
    "importance": pl.Float64,
    "rho": pl.Float64,
    "p": pl.Float64,
    "alpha": pl.Float64,
    "r2": pl.Float64,
    "loo_r2": pl.Float64,
    "loo_p": pl.Float64,
    "reason": pl.String,
}
MODELS = {
    **analysis.DESCRIBED,
    "kind": pl.String,
    "what": pl.String,
    "feature": pl.String,
    "value": pl.Float64,
    "reason": pl.String,
}


def unit_ranks(columns: np.ndarray) -> np.ndarray:
    """Each column [n, features] as mid-ranks from 0 to 1."""
    ranks = mid_ranks(columns.T).T - 1
    return ranks / max(1, len(columns) - 1)


def models(data: AnalysisData) -> pl.DataFrame:
    """Every model's features, as they are."""
    said = analysis.describe(data).rows(named=True)
    rows = [
        {**row, **_about(one), "value": one.values.get(row["model"]), "reason": one.reason}
        for kind in KINDS
        for one in features(data, kind)
        for row in said
    ]
    for row in rows:
        row["reason"] = row["reason"] if row["value"] is None else None
    return analysis.frame(rows, MODELS)


def _about(one: Any) -> dict[str, Any]:
    return {key: one.about[key] for key in ("kind", "what")} | {"feature": one.about["layer"]}


def table(data: AnalysisData) -> pl.DataFrame:
    """Coefficient, importance and rho of each feature, for each outcome.

    ``coefficient`` is in standard deviations of the outcome for one of the feature's ranks;
    ``importance`` the R^2 that shuffling the feature costs; ``rho`` the feature's alone, with its
    permutation p. ``loo_r2`` is the regression's on models left out (0: no better than their mean),
    ``loo_p`` its permutation p.
    """
    names = shown_outcomes(data.outcomes)
    if not names:
        return analysis.nothing(TABLE, analysis.NO_TARGETS)
    rows = []
    for which in analysis.filters(data):
        for outcome in names:
            for kind in KINDS:
                rows += _rows(data, which, outcome, kind)
    return analysis.frame(rows, TABLE)


def _rows(data: AnalysisData, which: str, outcome: str, kind: str) -> list[dict[str, Any]]:
    keys = analysis.kept(data, which, outcome)["model"].to_list()
    found = list(features(data, kind))
    truth = values(data.outcomes, outcome, keys)
    columns = np.stack([one.of(keys) for one in found], axis=1)
    known = ~(np.isnan(truth) | np.isnan(columns).any(axis=1))
    columns, truth = columns[known], truth[known]
    n = int(known.sum())
    common = {"models": which, "outcome": outcome, "title": target_title(outcome, data.texts)}
    rows = [{**common, **_about(one), "n": n} for one in found]
    few = f"{n} models have every feature and the outcome: at least {FEWEST} are needed"
    missing = next((one.reason for one in found if one.reason), None)
    if n < FEWEST or np.ptp(truth) == 0 or (np.ptp(columns, axis=0) == 0).any():
        constant = "a feature or the outcome is the same for all models"
        reason = (missing or few) if n < FEWEST else constant
        return [{**row, "reason": reason} for row in rows]
    permutations, seed = data.settings["permutations"], data.seed
    ranks = unit_ranks(columns)
    ridge = fit(ranks, truth, permutations, seed)
    test = permutation_p(truth, columns, permutations, seed)
    whole = {
        "alpha": ridge.alpha,
        "r2": ridge.r2,
        "loo_r2": ridge.loo_r2,
        "loo_p": ridge.p,
    }
    for at, row in enumerate(rows):
        row |= {
            "coefficient": float(ridge.coefficients[at]),
            "importance": float(ridge.importance[at]),
            "rho": float(test.rho[at]),
            "p": float(test.p[at]),
            **whole,
        }
    return rows


def sentence(table: pl.DataFrame) -> str:
    """The two features that shuffling costs most, and what the regression predicts."""
    if reason := analysis.why(table):
        return f"No regression on layers: {reason}."
    rows = associations.headline(table).filter(pl.col("kind") == "raw")
    known = rows.drop_nulls("importance").sort("importance", descending=True)
    if known.is_empty():
        return f"No regression on layers: {associations.first_reason(rows)}."
    one = known.row(0, named=True)
    best = ", ".join(
        f"{row['feature']} ({RHO} = {number(row['rho'])}, coefficient {number(row['coefficient'])})"
        for row in known.head(2).to_dicts()
    )
    return (
        f"{one['title']}: of {len(known)} features of the layers' STAMP, shuffling costs most of "
        f"{best}; the regression explains {number(one['loo_r2'])} of the variance of models left "
        f"out ({p_text(one['loo_p'])}, n = {one['n']})."
    )
