"""How well the score predicts each stratum of a target, and the gap between the last and the first.

Strata are the domains ``kind-1`` to ``kind-k`` of a target, such as ``income-1`` to ``income-4``. A
target with several kinds, such as corruptions by severity, has one stratum per number: the mean
over its kinds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from stamp.report import analysis
from stamp.report.analysis import AnalysisData
from stamp.report.main_table import target_title
from stamp.report.outcomes import by_model
from stamp.report.wording import RHO, number, p_text

TABLE = {
    "models": pl.String,
    "target": pl.String,
    "title": pl.String,
    "what": pl.String,
    "stratum": pl.Int64,
    "label": pl.String,
    "value": pl.Float64,
    **analysis.AGREEMENT,
    "reason": pl.String,
}
MODELS = {
    **analysis.DESCRIBED,
    "target": pl.String,
    "stratum": pl.Int64,
    "metric": pl.String,
    "value": pl.Float64,
    "images": pl.Int64,
    "absolute_gap": pl.Float64,
    "relative_gap": pl.Float64,
    "reason": pl.String,
}
NOTHING = "no target has two or more strata: domains named kind-1 to kind-k, as income-1"
GAPS = ("absolute", "relative")


@dataclass(frozen=True, slots=True)
class Strata:
    """A target's strata: their numbers in order, their labels, and the models' values on them."""

    target: str
    numbers: list[int]
    labels: list[str]
    values: pl.DataFrame

    def of(self, stratum: int, models: pl.Series) -> np.ndarray:
        """The models' values on one stratum, NaN where there is none."""
        return by_model(self.values.filter(pl.col("number") == stratum), models)

    def gap(self, which: str, models: pl.Series) -> np.ndarray:
        """The last stratum's value minus the first's; ``relative``: divided by the last's."""
        first, last = (self.of(self.numbers[end], models) for end in (0, -1))
        if which == "absolute":
            return last - first
        return (last - first) / np.where(last == 0, np.nan, last)


def strata(data: AnalysisData) -> Iterator[Strata]:
    """The strata of every target that has them: the numbers that all of its kinds have."""
    for (target,), rows in analysis.numbered(data).group_by("target", maintain_order=True):
        kinds = rows["kind"].unique(maintain_order=True).to_list()
        shared = (
            rows.group_by("number")
            .agg(pl.col("kind").n_unique())
            .filter(pl.col("kind") == len(kinds))
        )
        numbers = shared["number"].sort().to_list()
        if len(numbers) < 2:
            continue
        values = (
            rows.filter(pl.col("number").is_in(numbers))
            .group_by("model", "number", maintain_order=True)
            .agg(analysis.whole_mean(), pl.col("metric").first(), images=pl.col("n").sum())
        )
        kind = f"{kinds[0]}-" if len(kinds) == 1 else "level "
        yield Strata(str(target), numbers, [f"{kind}{one}" for one in numbers], values)


def models(data: AnalysisData) -> pl.DataFrame:
    """Every model's value on each stratum, and its gaps."""
    rows = []
    for one in strata(data):
        said = analysis.describe(data)
        gaps = {f"{which}_gap": one.gap(which, said["model"]) for which in GAPS}
        found = one.values.rename({"number": "stratum"}).sort("stratum")
        joined = said.with_columns(**{name: pl.Series(gap) for name, gap in gaps.items()}).join(
            found, on="model", maintain_order="left_right"
        )
        rows += [{**row, "target": one.target} for row in joined.iter_rows(named=True)]
    return analysis.frame(rows, MODELS) if rows else analysis.nothing(MODELS, NOTHING)


def table(data: AnalysisData) -> pl.DataFrame:
    """Rho of the score with each stratum's result and with the gaps, over models.

    ``value`` is the mean over the row's models of what it is about. The absolute gap is value(last)
    - value(first), the relative gap is that divided by value(last).
    """
    rows = []
    for which in analysis.filters(data):
        for one in strata(data):
            board = analysis.kept(data, which, one.target)
            keys, score = board["model"], board["score"].to_numpy()
            common = {
                "models": which,
                "target": one.target,
                "title": target_title(one.target, data.texts),
            }
            ends = f"{one.labels[-1]} minus {one.labels[0]}"
            results: list[tuple[dict[str, Any], np.ndarray]] = [
                ({"what": "stratum", "stratum": at, "label": label}, one.of(at, keys))
                for at, label in zip(one.numbers, one.labels, strict=True)
            ]
            results += [
                ({"what": f"{gap} gap", "label": ends + suffix}, one.gap(gap, keys))
                for gap, suffix in (("absolute", ""), ("relative", f", over {one.labels[-1]}"))
            ]
            for about, truth in results:
                about["value"] = analysis.mean_known(np.where(np.isnan(score), np.nan, truth))
                found = analysis.agreement(data, one.target, keys.to_list(), score, truth)
                rows.append({**common, **about, **found})
    return analysis.frame(rows, TABLE) if rows else analysis.nothing(TABLE, NOTHING)


def sentence(table: pl.DataFrame) -> str:
    """Rho of the first and the last stratum and of the two gaps, for each target."""
    if reason := analysis.why(table):
        return f"No strata: {reason}."
    parts = []
    declared = table.filter(pl.col("models") == "declared")
    for (_,), rows in declared.group_by("target", maintain_order=True):
        own = rows.filter(pl.col("what") == "stratum").rows(named=True)
        first, last = own[0], own[-1]
        gaps = {row["what"]: row for row in rows.iter_rows(named=True)}
        absolute, relative = gaps["absolute gap"], gaps["relative gap"]
        parts.append(
            f"{first['title']}: {RHO} of STAMP with the models' results is {number(first['rho'])} "
            f"in {first['label']} and {number(last['rho'])} in {last['label']} "
            f"(n = {last['n']}); with the absolute gap, {absolute['label']}, it is "
            f"{number(absolute['rho'])} ({p_text(absolute['p'])}), with the relative gap "
            f"{number(relative['rho'])} ({p_text(relative['p'])})."
        )
    return " ".join(parts)
