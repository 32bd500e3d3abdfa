"""How much the score depends on which pairs were drawn, beside its bootstrap interval."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from stamp.report import analysis
from stamp.report.analyses.seeds.profile import REDRAWN
from stamp.report.analysis import AnalysisData
from stamp.report.main_table import target_title
from stamp.report.outcomes import MEAN, by_model, shown_outcomes, values
from stamp.report.wording import RHO, number
from stamp.stats.correlations.correlation import FEWEST
from stamp.stats.ranks import spearman

TABLE = {
    "models": pl.String,
    "redrawn": pl.String,
    "draws": pl.Int64,
    "n": pl.Int64,
    "mean_sd": pl.Float64,
    "largest_sd": pl.Float64,
    "mean_se_bootstrap": pl.Float64,
    "mean_half_width": pl.Float64,
    "rank_mean": pl.Float64,
    "rank_lowest": pl.Float64,
    "outcome": pl.String,
    "title": pl.String,
    "rho": pl.Float64,
    "rho_mean": pl.Float64,
    "rho_lowest": pl.Float64,
    "rho_highest": pl.Float64,
    "reason": pl.String,
}
MODELS = {
    **analysis.DESCRIBED,
    **{f"sd_{name}": pl.Float64 for name in REDRAWN},
    "mean_both": pl.Float64,
    "se_bootstrap": pl.Float64,
    "half_width": pl.Float64,
    "reason": pl.String,
}
NOTHING = "no model has a score that could be drawn anew"


def draws(data: AnalysisData, redrawn: str, keys: list[str]) -> np.ndarray:
    """Scores over draws, [models, draws]; a model without them has NaN throughout."""
    rows = data.profiles.filter(
        (pl.col("quantity") == redrawn) & pl.col("part").is_not_null()
    ).with_columns(at=pl.col("part").cast(pl.Int64))
    found = np.full((len(keys), rows["at"].n_unique()), np.nan)
    place = {key: at for at, key in enumerate(keys)}
    known = rows.filter(pl.col("model").is_in(keys))
    found[[place[key] for key in known["model"]], known["at"].to_numpy()] = known["value"]
    return found


def models(data: AnalysisData) -> pl.DataFrame:
    """Every model's standard deviation over draws by what was drawn anew, and its bootstrap's."""
    found = analysis.describe(data)
    keys = found["model"].to_list()
    for name in REDRAWN:
        spread = draws(data, name, keys)
        sd = spread.std(axis=1, ddof=1) if spread.shape[1] > 1 else np.full(len(keys), np.nan)
        found = found.with_columns(pl.Series(f"sd_{name}", sd))
    both = draws(data, "both", keys)
    mean = both.mean(axis=1) if both.shape[1] else np.full(len(keys), np.nan)
    reasons = dict(
        data.profiles.filter(pl.col("reason").is_not_null())
        .unique("model", maintain_order=True)
        .select("model", "reason")
        .iter_rows()
    )
    board = data.scores.select(
        "model", "se_bootstrap", half_width=(pl.col("high") - pl.col("low")) / 2
    )
    found = found.with_columns(
        mean_both=pl.Series(mean),
        reason=pl.Series([reasons.get(key) for key in keys], dtype=pl.String),
    ).join(board, on="model", how="left", maintain_order="left")
    return analysis.frame(found.rows(named=True), MODELS)


def table(data: AnalysisData) -> pl.DataFrame:
    """Spread of the score over draws, how stable its ranking is, and what rho does.

    ``mean_sd`` and ``largest_sd`` are over models; ``mean_se_bootstrap`` and ``mean_half_width``
    are of the score's own interval, which also counts that other images could have been met.
    ``rank_mean`` and ``rank_lowest`` are Spearman's rho of the models by a draw's score and by the
    study's, over draws; ``rho_`` the same of a draw's score with an outcome.
    """
    names = shown_outcomes(data.outcomes) or [""]
    rows = [
        _row(data, which, redrawn, outcome)
        for which in analysis.filters(data)
        for redrawn in REDRAWN
        for outcome in names
    ]
    if all(row["draws"] == 0 for row in rows):
        return analysis.nothing(TABLE, NOTHING)
    return analysis.frame(rows, TABLE)


def _row(data: AnalysisData, which: str, redrawn: str, outcome: str) -> dict[str, Any]:
    board = analysis.kept(data, which, outcome or MEAN)
    own = draws(data, redrawn, board["model"].to_list())
    known = ~np.isnan(own).any(axis=1) if own.shape[1] else np.zeros(len(own), dtype=bool)
    keys = board.filter(pl.Series(known))["model"].to_list()
    scores, study = own[known].T, board.filter(pl.Series(known))["score"].to_numpy()
    low, high, se = (by_model(data.scores, keys, name) for name in ("low", "high", "se_bootstrap"))
    row: dict[str, Any] = {
        "models": which,
        "redrawn": redrawn,
        "draws": len(scores),
        "n": len(keys),
        "reason": None if outcome else analysis.NO_TARGETS,
    }
    if outcome:
        row |= {"outcome": outcome, "title": target_title(outcome, data.texts)}
    if len(scores) < 2 or not keys:
        return {**row, "reason": NOTHING}
    sd = scores.std(axis=0, ddof=1)
    row |= {
        "mean_sd": float(sd.mean()),
        "largest_sd": float(sd.max()),
        "mean_se_bootstrap": float(se.mean()),
        "mean_half_width": float((high - low).mean() / 2),
    }
    if len(keys) < FEWEST:
        return {**row, "reason": f"{len(keys)} models are too few: at least {FEWEST} are needed"}
    ranks = spearman(scores, study)
    row |= {"rank_mean": float(ranks.mean()), "rank_lowest": float(ranks.min())}
    if not outcome:
        return row
    truth = values(data.outcomes, outcome, keys)
    there = ~np.isnan(truth)
    row["rho"] = analysis.rank_correlation(study, truth)
    if there.sum() < FEWEST:
        return {**row, "reason": f"{there.sum()} models have the outcome"}
    rho = spearman(scores[:, there], truth[there])
    return row | {
        "rho_mean": float(rho.mean()),
        "rho_lowest": float(rho.min()),
        "rho_highest": float(rho.max()),
    }


def sentence(table: pl.DataFrame) -> str:
    """The spread over draws beside the bootstrap's, and the range of rho."""
    if reason := analysis.why(table):
        return f"No analysis of other draws of pairs: {reason}."
    rows = table.filter(pl.col("models") == "declared")
    mean = rows.filter(pl.col("outcome") == MEAN)
    shown = mean if len(mean) else rows.unique("redrawn", keep="first", maintain_order=True)
    by_kind = {row["redrawn"]: row for row in shown.iter_rows(named=True)}
    both = by_kind["both"]
    if both["mean_sd"] is None:
        return "No analysis of other draws of pairs: no model that counts has any."
    words = (
        f"Over {both['draws']} draws of pairs from the same outputs a score's standard deviation "
        f"is {number(both['mean_sd'])} in the mean of {both['n']} models and at most "
        f"{number(both['largest_sd'])} ({number(by_kind['semantic']['mean_sd'])} where only "
        f"semantic pairs are drawn anew, {number(by_kind['random']['mean_sd'])} where only random "
        f"ones); the bootstrap's standard error is {number(both['mean_se_bootstrap'])}, half its "
        f"interval {number(both['mean_half_width'])}. The rank correlation with the study's own "
        f"score is at least {number(both['rank_lowest'])}."
    )
    if both["rho_lowest"] is not None:
        words += (
            f" {both['title']}: {RHO} is {number(both['rho'])}, over draws "
            f"{number(both['rho_lowest'])} to {number(both['rho_highest'])}."
        )
    return words
