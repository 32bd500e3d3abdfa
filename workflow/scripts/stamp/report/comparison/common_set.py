"""Several predictors with several outcomes over one set of models: `ablation` and `kinds` share it.

A predictor or an outcome that no model has is left out; the set is then the models that have all
others. It has an id, the first letters of a digest of the models' keys, so that a reader sees which
numbers are of the same models.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from stamp.core.artifacts import ids_digest
from stamp.report import analysis
from stamp.report.analysis import AnalysisData
from stamp.report.main_table import target_title
from stamp.report.outcomes import shown_outcomes, values
from stamp.stats.correlations.correlation import (
    FEWEST,
    bonett_wright_interval,
    metric_difference,
    paired_bootstrap,
    permutation_p,
)
from stamp.stats.multiple_testing import max_t

SUBSET = {"subset": pl.String, "n": pl.Int64}
MEMBERSHIPS: dict[str, Any] = {
    **{f"in_{which}": pl.Boolean for which in analysis.FILTERS},
    **{f"subset_{which}": pl.String for which in analysis.FILTERS},
}
COMPARED = {
    "rho": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "p": pl.Float64,
    "oriented": pl.Float64,
    "minus_reference": pl.Float64,
    "minus_low": pl.Float64,
    "minus_high": pl.Float64,
    "minus_p": pl.Float64,
    "minus_adjusted": pl.Float64,
}


@dataclass(frozen=True, slots=True)
class Subset:
    """The models that have every predictor [predictors, n] and every outcome [outcomes, n]."""

    keys: list[str]
    predictors: dict[str, np.ndarray]
    outcomes: dict[str, np.ndarray]

    @property
    def id(self) -> str:
        """A name for the set, the same wherever it is the same models."""
        return ids_digest(sorted(self.keys))[:8]

    @property
    def about(self) -> dict[str, Any]:
        """The columns of ``SUBSET``."""
        return {"subset": self.id, "n": len(self.keys)}

    @property
    def reason(self) -> str | None:
        """Why nothing can be compared over it, if so."""
        if len(self.keys) < FEWEST:
            return f"models with every score and outcome: {len(self.keys)}, and {FEWEST} are needed"
        return None


def common(data: AnalysisData, keys: Sequence[str], predictors: Mapping[str, np.ndarray]) -> Subset:
    """The models of ``keys`` that have all predictors, one number per key, and all outcomes."""
    truths = {
        name: values(data.outcomes, name, list(keys)) for name in shown_outcomes(data.outcomes)
    }
    kept = [
        {name: found for name, found in each.items() if not len(keys) or not np.isnan(found).all()}
        for each in (predictors, truths)
    ]
    known = np.ones(len(keys), dtype=bool)
    for found in (*kept[0].values(), *kept[1].values()):
        known &= ~np.isnan(found)
    chosen = [key for key, one in zip(keys, known, strict=True) if one]
    cut = [{name: found[known] for name, found in each.items()} for each in kept]
    return Subset(chosen, cut[0], cut[1])


def memberships(sets: Mapping[str, Subset]) -> dict[str, pl.Expr]:
    """The columns of ``MEMBERSHIPS``: whether a model is in the set of a filter, and its id."""
    inside = {f"in_{which}": pl.col("model").is_in(one.keys) for which, one in sets.items()}
    return inside | {f"subset_{which}": pl.lit(one.id) for which, one in sets.items()}


def compare(
    subset: Subset,
    directions: Mapping[str, int],
    reference: str,
    data: AnalysisData,
    twins: Collection[str] = (),
) -> list[dict[str, Any]]:
    """Each predictor with each outcome: rho, interval, p, and what sets it apart from another.

    ``oriented`` is rho times the direction in which the predictor should point. ``minus_reference``
    is oriented rho minus that of the reference, with percentile interval and p of a bootstrap that
    draws the models jointly; ``minus_adjusted`` is that p corrected for all of the rows by the
    largest difference of each resample (``multiple_testing.max_t``). Bonett and Wright's interval.
    ``twins`` order the models as the reference does by construction: there is nothing to test.
    """
    if subset.reason or not subset.outcomes or not subset.predictors:
        return []
    settings, n = data.settings, len(subset.keys)
    names, outcomes = list(subset.predictors), list(subset.outcomes)
    truths = np.stack(list(subset.outcomes.values()))
    signs = np.array([directions[name] for name in names], dtype=np.float64)
    scores = np.stack(list(subset.predictors.values()))
    drawn = paired_bootstrap(signs[:, None] * scores, truths, settings["resamples"], data.seed)
    rows = []
    for place, name in enumerate(names):
        test = permutation_p(scores[place], truths.T, settings["permutations"], data.seed)
        interval = bonett_wright_interval(test.rho, n, settings["level"])
        gap = None
        if name != reference and reference in names:
            gap = metric_difference(drawn, place, names.index(reference), settings["level"])
        for at, outcome in enumerate(outcomes):
            row: dict[str, Any] = {"outcome": outcome, "title": target_title(outcome, data.texts)}
            row |= {"predictor": name, "direction": directions[name], **subset.about}
            row |= {"rho": test.rho[at], "p": test.p[at], "oriented": drawn.rho[place, at]}
            row |= {"low": interval.low[at], "high": interval.high[at]}
            if gap is not None:
                row |= {"minus_reference": gap.difference[at]}
                if name not in twins:
                    row |= {"minus_p": gap.p[at], "minus_draws": gap.draws[:, at]}
                row |= {"minus_low": gap.low[at], "minus_high": gap.high[at]}
            rows.append(row)
    adjust(rows, "minus_reference", "minus")
    return rows


def adjust(rows: Sequence[dict[str, Any]], difference: str, name: str) -> None:
    """Put ``<name>_adjusted`` beside ``<name>_p`` into the rows, from ``<name>_draws``.

    No corrected p is below the plain one, whose statistic is another.
    """
    tested = [row for row in rows if f"{name}_p" in row]
    if tested:
        draws = np.stack([row.pop(f"{name}_draws") for row in tested], axis=1)
        found = max_t(np.array([row[difference] for row in tested]), draws)
        for row, corrected in zip(tested, found, strict=True):
            row[f"{name}_adjusted"] = max(corrected, row[f"{name}_p"])
