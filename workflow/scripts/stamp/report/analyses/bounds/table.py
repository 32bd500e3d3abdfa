"""The terms of the paper's error bound, measured and set beside each other, as indices only.

``index`` is 4 (1 - S) / S of the score S: as a bound on an error it says nothing unless S > 0.8,
and it orders models exactly as S does, so its rho with STAMP is -1 by construction. Nothing here
claims that r_bar is near S_W / S_B: both are printed, and their ratio.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from stamp.report import analysis
from stamp.report.analyses.bounds.profile import TERMS
from stamp.report.analysis import AnalysisData
from stamp.report.outcomes import MEAN
from stamp.report.profiles import associations
from stamp.report.profiles.associations import STAMP, Quantity
from stamp.report.wording import RHO, number

INDEX = "index"
NAMES = {
    "class_eta2": "class \u03b7\u00b2",
    "patient_eta2": "patient \u03b7\u00b2",
    "spread_ratio": "S_W / S_B",
    "mean_ratio": "mean r_y",
    "agreement": "mean r_y over S_W / S_B",
    "cv": "CV of r_y",
    INDEX: "4 (1 \u2212 S) / S",
}
TABLE = {
    "term": pl.String,
    "name": pl.String,
    **associations.ASSOCIATION,
    "median": pl.Float64,
    "lowest": pl.Float64,
    "highest": pl.Float64,
    "below_one": pl.Int64,
}
MODELS = {**analysis.DESCRIBED, **dict.fromkeys((*TERMS, INDEX), pl.Float64), "reason": pl.String}


def index(score: np.ndarray) -> np.ndarray:
    """``4 (1 - S) / S``, NaN where S is not positive."""
    return 4 * (1 - score) / np.where(score > 0, score, np.nan)


def terms(data: AnalysisData) -> list[Quantity]:
    """The terms of the profiles, and the index of each model's score."""
    board = analysis.describe(data)
    score = board["stamp"].cast(pl.Float64).fill_null(float("nan")).to_numpy()
    known = dict(zip(board["model"], index(score).tolist(), strict=True))
    found = [associations.quantity(data, name, term=name, name=NAMES[name]) for name in TERMS]
    return [*found, Quantity({"term": INDEX, "name": NAMES[INDEX]}, known)]


def models(data: AnalysisData) -> pl.DataFrame:
    """Every model's terms."""
    found = analysis.describe(data).rows(named=True)
    reasons = dict(
        data.profiles.filter(pl.col("quantity") == "class_eta2")
        .select("model", "reason")
        .iter_rows()
    )
    every = terms(data)
    for row in found:
        row |= {one.about["term"]: one.values.get(row["model"]) for one in every}
        row["reason"] = reasons.get(row["model"])
    return analysis.frame(found, MODELS)


def table(data: AnalysisData) -> pl.DataFrame:
    """Spread of each term over models, and its rho with STAMP and with each outcome.

    ``below_one`` counts the models whose term is below 1: a bound on an error says nothing else.
    """
    found = terms(data)
    by_term = {one.about["term"]: one for one in found}
    rows = associations.associate(data, found)
    counted = {
        (which, outcome): analysis.kept(data, which, MEAN if outcome == STAMP else outcome)["model"]
        for which, outcome in {(row["models"], row["outcome"]) for row in rows}
    }
    for row in rows:
        keys = counted[row["models"], row["outcome"]]
        row |= _spread(by_term[row["term"]].of(keys))
    return analysis.frame(rows, TABLE)


def _spread(own: np.ndarray) -> dict[str, Any]:
    known = own[~np.isnan(own)]
    if not known.size:
        return {}
    ends = {"lowest": float(known.min()), "highest": float(known.max())}
    return {"median": float(np.median(known)), **ends, "below_one": int((known < 1).sum())}


def sentence(table: pl.DataFrame) -> str:
    """The index below one, both kinds of eta squared, and r_bar beside S_W / S_B."""
    rows = associations.headline(table).filter(pl.col("outcome") == STAMP)
    own = {row["term"]: row for row in rows.to_dicts()}
    at = own[INDEX]
    if at["median"] is None:
        return "No terms of the bound: no model that counts has a score above 0."
    words = (
        f"{NAMES[INDEX]} is below 1 for {at['below_one']} of {at['n']} models with a score above 0 "
        f"(median {number(at['median'])}): an index, no bound."
    )
    for name in ("class_eta2", "patient_eta2"):
        one = own[name]
        if one["median"] is not None:
            words += (
                f" {NAMES[name][0].upper()}{NAMES[name][1:]} has the median "
                f"{number(one['median'])}; {RHO} with STAMP is {number(one['rho'])}."
            )
    ratio = own["agreement"]
    if ratio["median"] is not None:
        words += (
            f" The mean of r_y over classes is {number(ratio['lowest'])} to "
            f"{number(ratio['highest'])} times S_W / S_B (median {number(ratio['median'])}); "
            f"the CV of r_y has the median {number(own['cv']['median'])}."
        )
    return words
