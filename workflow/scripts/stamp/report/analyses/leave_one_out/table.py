"""Whether one model carries a result: rho without each model in turn.

The range of rho, for every score and for the source metric, is in correlations.csv (``loo_low``,
``loo_high``); here is what the single models do to it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from stamp.report import analysis
from stamp.report.analysis import AnalysisData
from stamp.report.comparison import paired
from stamp.report.comparison.paired import Paired
from stamp.report.wording import RHO, number
from stamp.stats.correlations.correlation import FEWEST, LeaveOneOut, asymptotic_p, leave_one_out

TABLE = {
    **paired.ABOUT,
    "n": pl.Int64,
    "rho": pl.Float64,
    "most_influential": pl.String,
    "label": pl.String,
    "rho_without": pl.Float64,
    "largest_p_asymptotic": pl.Float64,
    "reason": pl.String,
}
MODELS = {
    **paired.OF_MODEL,
    "rho_without": pl.Float64,
    "change": pl.Float64,
    "reason": pl.String,
}
FEW = FEWEST + 1  # so that those that stay are enough for a rho


def without_each(x: np.ndarray, y: np.ndarray) -> LeaveOneOut | None:
    """rho without each model that has both values, or None where those are too few."""
    return leave_one_out(x, y) if len(x) >= FEW else None


def models(data: AnalysisData) -> pl.DataFrame:
    """Rho of every outcome without each model, and how far that moves it."""
    said = paired.described(data)
    rows = []
    for one in paired.pairings(data):
        known = one.known()
        found = without_each(one.x[known], one.y[known])
        if found is None:
            continue
        whole = analysis.rank_correlation(one.x, one.y)
        rows += [
            {**paired.of_model(said, one, int(at)), "rho_without": rho, "change": rho - whole}
            for at, rho in zip(np.flatnonzero(known), found.rho.tolist(), strict=True)
        ]
    few = f"no outcome has {FEW} models with a score and a value"
    return analysis.frame(rows, MODELS) if rows else analysis.nothing(MODELS, few)


def table(data: AnalysisData) -> pl.DataFrame:
    """The model whose absence moves rho the most, and rho without it.

    ``largest_p_asymptotic`` is the largest p of t with n - 3 degrees of freedom without one model:
    what the weakest of these results would be reported with.
    """
    rows = [{**one.about, **_row(data, one)} for one in paired.pairings(data)]
    return analysis.frame(rows, TABLE) if rows else analysis.nothing(TABLE, analysis.NO_TARGETS)


def _row(data: AnalysisData, one: Paired) -> dict[str, Any]:
    known = one.known()
    x, y, n = one.x[known], one.y[known], int(known.sum())
    found = without_each(x, y)
    if found is None:
        return {"n": n, "reason": f"{n} models are too few: at least {FEW} are needed"}
    if found.most_influential is None:
        return {"n": n, "reason": "the score or the outcome is the same for all models"}
    which, rho = found.most_influential, analysis.rank_correlation(x, y)
    key = [one.keys[at] for at in np.flatnonzero(known)][which]
    return {
        "n": n,
        "rho": rho,
        "most_influential": key,
        "label": data.models[key]["label"],
        "rho_without": float(found.rho[which]),
        "largest_p_asymptotic": float(np.nanmax(asymptotic_p(found.rho, n - 1))),
    }


def sentence(table: pl.DataFrame) -> str:
    """Who moves each outcome's rho the most, where to, and the weakest result without one model."""
    if reason := analysis.why(table):
        return f"No model could be left out: {reason}."
    return " ".join(_words(row) for row in paired.spoken(table).iter_rows(named=True))


def _words(row: dict[str, Any]) -> str:
    if row["rho"] is None:
        return f"{row['title']}: {row['reason']}."
    return (
        f"{row['title']}: {RHO} = {number(row['rho'])} over {row['n']} models; {row['label']} "
        f"moves it the most, to {number(row['rho_without'])}; the largest p without one model is "
        f"{number(row['largest_p_asymptotic'])}."
    )
