"""Negative controls: augmentation, visits, changed labels, strangers should move outputs in order.

B (an image and its augmented self) <= A (one group, same label) <= C (one group, another label) <=
D (two groups). One order of four is right by chance in 1 of 24; where random pairs are the farthest
apart anyway, the order of the other three, right in 1 of 6, is the fairer comparison.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from scipy.stats import binomtest, page_trend_test

from stamp.report import analysis
from stamp.report.analyses.ordering.profile import ORDER, STEPS
from stamp.report.analysis import AnalysisData
from stamp.report.outcomes import MEAN
from stamp.report.profiles import associations
from stamp.report.wording import number, p_text

FULL, LAST, PAGE = "B <= A <= C <= D", "B <= A <= C, where D is the largest", "Page's L"
FEWEST = 3  # models below which there is no trend test
TABLE = {
    "models": pl.String,
    "what": pl.String,
    "n": pl.Int64,
    "count": pl.Int64,
    "share": pl.Float64,
    "chance": pl.Float64,
    "p": pl.Float64,
    "probability": pl.Float64,
    "statistic": pl.Float64,
    "reason": pl.String,
}
MODELS = {
    **analysis.DESCRIBED,
    **dict.fromkeys(ORDER, pl.Float64),
    **{f"n_{name}": pl.Int64 for name in ORDER},
    "order": pl.Boolean,
    "found": pl.String,
    **{f"probability {name}": pl.Float64 for name in (*STEPS, "all")},
    "reason": pl.String,
}


def distances(data: AnalysisData, keys: list[str]) -> np.ndarray:
    """Mean squared distances of the four kinds of pairs, [models, 4]."""
    return np.stack([associations.quantity(data, name).of(keys) for name in ORDER], axis=1)


def models(data: AnalysisData) -> pl.DataFrame:
    """Every model's four mean distances, the order that they have, and bootstrap probabilities."""
    found = analysis.describe(data).rows(named=True)
    counts = dict(
        data.profiles.filter(pl.col("quantity").is_in(ORDER))
        .select(pl.struct("model", "quantity").alias("key"), "n")
        .select(pl.concat_str(pl.col("key").struct.unnest(), separator="\0"), "n")
        .iter_rows()
    )
    keys = [row["model"] for row in found]
    known = distances(data, keys)
    chances = {part: associations.quantity(data, "probability", part) for part in (*STEPS, "all")}
    reasons = dict(
        data.profiles.filter(pl.col("quantity") == "order").select("model", "reason").iter_rows()
    )
    for row, own in zip(found, known, strict=True):
        key = row["model"]
        row |= dict(zip(ORDER, own.tolist(), strict=True))
        row |= {f"n_{name}": counts.get(f"{key}\0{name}") for name in ORDER}
        row |= {f"probability {part}": one.values.get(key) for part, one in chances.items()}
        row["reason"] = reasons.get(key)
        if not np.isnan(own).any():
            row["order"] = bool(np.all(np.diff(own) >= 0))
            row["found"] = " < ".join(ORDER[at] for at in np.argsort(own, kind="stable"))
    return analysis.frame(found, MODELS)


def table(data: AnalysisData) -> pl.DataFrame:
    """How many models have each step and the full order, against chance, and Page's trend test.

    ``p`` of a count is the exact binomial one of at least so many by chance, as if models were
    independent, which models of one family are not. ``probability`` is the mean over models of the
    bootstrap's. Page's L tests the null hypothesis of no order within models against B <= A <= C <=
    D with at least one strict step (Page 1963).
    """
    return analysis.frame(
        [row for which in analysis.filters(data) for row in _rows(data, which)], TABLE
    )


def _rows(data: AnalysisData, which: str) -> list[dict[str, Any]]:
    keys = analysis.kept(data, which, MEAN)["model"].to_list()
    known = distances(data, keys)
    there = ~np.isnan(known).any(axis=1)
    keys = [key for key, has in zip(keys, there, strict=True) if has]
    known = known[there]
    if not keys:
        reason = associations.quantity(data, "order").reason or "no model is counted"
        return [{"models": which, "what": FULL, "n": 0, "reason": reason}]
    steps = np.diff(known, axis=1) >= 0
    rows = [
        _count(which, FULL, steps.all(axis=1), 1 / 24, _mean(data, "all", keys)),
        _count(which, LAST, steps[:, :2].all(axis=1)[known.argmax(axis=1) == 3], 1 / 6, None),
        *(
            _count(which, name, steps[:, at], 1 / 2, _mean(data, name, keys))
            for at, name in enumerate(STEPS)
        ),
    ]
    return [*rows, _page(which, known)]


def _mean(data: AnalysisData, part: str, keys: list[str]) -> float:
    return float(np.nanmean(associations.quantity(data, "probability", part).of(keys)))


def _count(
    which: str, what: str, holds: np.ndarray, chance: float, probability: float | None
) -> dict[str, Any]:
    row: dict[str, Any] = {"models": which, "what": what, "n": len(holds), "chance": chance}
    if not len(holds):
        return {**row, "reason": "no model is of this kind"}
    count = int(holds.sum())
    p = binomtest(count, len(holds), chance, alternative="greater").pvalue
    share = count / len(holds)
    return {**row, "count": count, "share": share, "p": float(p), "probability": probability}


def _page(which: str, known: np.ndarray) -> dict[str, Any]:
    row = {"models": which, "what": PAGE, "n": len(known)}
    if len(known) < FEWEST:
        return {**row, "reason": f"{len(known)} models are too few: at least {FEWEST} are needed"}
    found = page_trend_test(known)
    return {**row, "statistic": float(found.statistic), "p": float(found.pvalue)}


def sentence(table: pl.DataFrame) -> str:
    """How many models have the full order, against chance, and the step that fails most."""
    rows = {row["what"]: row for row in table.filter(pl.col("models") == "declared").to_dicts()}
    full = rows[FULL]
    if not full["n"]:
        return f"No negative controls: {full['reason']}."
    words = (
        f"{full['count']} of {full['n']} models have the full order {FULL}; chance alone gives "
        f"{number(full['n'] * full['chance'])} ({p_text(full['p'])}, as if models were "
        "independent)."
    )
    last = rows[LAST]
    if last["count"] is not None:
        words += (
            f" Of the {last['n']} models in which random pairs are the farthest apart "
            f"{last['count']} have the other three in order, where chance gives "
            f"{number(last['n'] / 6)} ({p_text(last['p'])})."
        )
    worst = min((rows[name] for name in STEPS), key=lambda row: row["count"])
    words += f" The step that holds in the fewest is {worst['what']}: {worst['count']}."
    if rows[PAGE]["p"] is not None:
        words += f" Page's L = {rows[PAGE]['statistic']:.0f} ({p_text(rows[PAGE]['p'])})."
    return words
