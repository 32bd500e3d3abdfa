"""What the score's parts are worth alone: -SV, AV and SV / AV beside STAMP, over the same models.

SV / AV is (1 - STAMP), so its rho is that of STAMP with the other sign: it is there as a check.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from stamp.report import analysis
from stamp.report.analysis import AnalysisData
from stamp.report.comparison import common_set
from stamp.report.comparison.common_set import Subset
from stamp.report.outcomes import MEAN, by_model
from stamp.report.wording import MINUS, RHO, number, p_text
from stamp.scoring.stamp import EPSILON

STAMP = "stamp"
TITLES = {"within": f"{MINUS}SV", "total": "AV", "ratio": "SV/AV", STAMP: f"1 {MINUS} SV/AV"}
DIRECTIONS = {"within": 1, "total": 1, "ratio": -1, STAMP: 1}
TABLE = {
    "models": pl.String,
    **common_set.SUBSET,
    "outcome": pl.String,
    "title": pl.String,
    "variant": pl.String,
    "name": pl.String,
    "direction": pl.Int64,
    **common_set.COMPARED,
    "reason": pl.String,
}
MODELS = {
    **analysis.DESCRIBED,
    "within": pl.Float64,
    "total": pl.Float64,
    "ratio": pl.Float64,
    **common_set.MEMBERSHIPS,
    "reason": pl.String,
}
NO_PARTS = "no model has SV and AV, the parts of the score"


def parts(data: AnalysisData, keys: list[str]) -> dict[str, np.ndarray]:
    """SV, AV and their ratio of the models, NaN where a model has none."""
    within, total = (by_model(data.scores, keys, name) for name in ("within", "total"))
    return {"within": within, "total": total, "ratio": within / (total + EPSILON)}


def subset(data: AnalysisData, which: str) -> Subset:
    """The models that a filter keeps and that have a score, its parts and every outcome."""
    board = analysis.kept(data, which, MEAN)
    keys = board["model"].to_list()
    found = parts(data, keys)
    variants = {**found, "within": -found["within"], STAMP: by_model(board, keys, "score")}
    return common_set.common(data, keys, variants)


def models(data: AnalysisData) -> pl.DataFrame:
    """Every model's SV, AV and their ratio, and which sets it belongs to."""
    said = analysis.describe(data)
    found = {name: pl.Series(v) for name, v in parts(data, said["model"].to_list()).items()}
    sets = common_set.memberships({which: subset(data, which) for which in analysis.FILTERS})
    return analysis.frame(said.with_columns(**found, **sets).rows(named=True), MODELS)


def table(data: AnalysisData) -> pl.DataFrame:
    """Rho of each part and of the score with each outcome, over one set of models a filter.

    ``within`` enters with its sign changed, so that more should mean better; of the ratio less
    should. ``minus_reference`` is oriented rho minus STAMP's; that of the ratio is 0 and no test.
    """
    within = parts(data, data.scores["model"].to_list())["within"]
    if np.isnan(within).all():
        return analysis.nothing(TABLE, NO_PARTS)
    rows: list[dict[str, Any]] = []
    for which in analysis.FILTERS:
        chosen = subset(data, which)
        found = common_set.compare(chosen, DIRECTIONS, STAMP, data, twins=("ratio",))
        if chosen.reason and chosen.outcomes:
            found = [{**chosen.about, "reason": chosen.reason}]
        for row in found:
            variant = row.get("predictor")
            name = None if variant is None else TITLES[variant]
            rows.append({**row, "models": which, "variant": variant, "name": name})
    return analysis.frame(rows, TABLE) if rows else analysis.nothing(TABLE, analysis.NO_TARGETS)


def sentence(table: pl.DataFrame) -> str:
    """Rho of each part and of the score, for the mean of the targets or each of them."""
    if reason := analysis.why(table):
        return f"No ablation: {reason}."
    declared = table.filter(pl.col("models") == "declared")
    if declared["rho"].is_null().all():
        return f"No ablation: {declared['reason'][0]}."
    wanted = declared.filter(pl.col("outcome") == MEAN)
    rows = wanted if len(wanted) else declared
    first = rows.row(0, named=True)
    said = [f"Over one set of {first['n']} models (set {first['subset']})"]
    for (_,), own in rows.group_by("outcome", maintain_order=True):
        by_name = {row["variant"]: row for row in own.iter_rows(named=True)}
        texts = [_words(by_name[name]) for name in TITLES if name in by_name]
        said.append(f"{own['title'][0]}: {'; '.join(texts)}")
    return f"{said[0]}. {'. '.join(said[1:])}."


def _words(row: Mapping[str, Any]) -> str:
    text = (
        f"{RHO} of {row['name']} is {number(row['rho'])} ({number(row['low'])} to "
        f"{number(row['high'])}, {p_text(row['p'])})"
    )
    if row["variant"] in (STAMP, "ratio") or row["minus_reference"] is None:
        return text
    return (
        f"{text}, {number(row['minus_reference'])} from STAMP's ({number(row['minus_low'])} to "
        f"{number(row['minus_high'])})"
    )
