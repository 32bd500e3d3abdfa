"""One row per model: every score, its parts, interval and health flags."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from stamp.report.comparison.no_skill import source_metric
from stamp.report.outcomes import MEAN

PARTS = (
    "raw",
    "low",
    "high",
    "se_bootstrap",
    "se_units",
    "se_analytic",
    "eta2",
    "within",
    "total",
    "n_semantic",
    "n_random",
    "n_units",
    "parameters",
    "degenerate",
    "saturated",
    "leakage",
    "missing",
    "spread",
    "hard",
    "groups",
    "images",
    "fingerprint",
)
SAME_OUTPUTS = 1e-5  # fingerprints that differ by less are those of one model
NO_SPLIT = "none of the source's splits"
FLAGS = ("degenerate", "saturated", "leakage")
RULES = ("temperature", "chance")
# What the estimator that is not the headline's gives stands under its name.
OTHER = {"exact": "sampled", "sampled": "exact"}
OTHER_PARTS = ("stamp", "eta2")
OTHER_SCORES = tuple(f"{name}_stamp" for name in OTHER)
TEXTS = ("excluded", "temperature_bound", "missing", "contaminated")


@dataclass(frozen=True, slots=True)
class Declared:
    """What the configuration says of a model, and at which level intervals are."""

    exclude: str  # the study's rule
    level: float
    contaminated: Sequence[str] = ()  # targets that the model was trained or selected on
    trained_on: Sequence[str] | None = None  # splits of the source; None where nobody said
    for_reference: str | None = None  # why it is shown but not counted, whatever the rules say


def model_row(
    scores: pl.DataFrame,
    calibration: Mapping[str, Any],
    matched: pl.DataFrame,
    evaluation: pl.DataFrame,
    declared: Declared,
) -> dict[str, Any]:
    """A model's row from its own files; the first score is the headline.

    ``evaluation`` is the one on the source.
    """
    headline = scores.row(0, named=True)
    row: dict[str, Any] = {"model": headline["model"], "stamp": headline["stamp"]}
    row |= {part: headline[part] for part in PARTS}
    other = OTHER[headline["estimator"]]
    row |= {f"{other}_{part}": headline[f"{other}_{part}"] for part in OTHER_PARTS}
    row |= {"estimator": headline["estimator"], "kind": headline["kind"]}
    for further in scores[1:].iter_rows(named=True):
        row[predictor_name(further, headline)] = further["stamp"]
        if further["kind"] != headline["kind"]:
            row[f"within_{further['kind']}"] = further["within"]
    for one in matched.iter_rows(named=True):
        outcome = one["target"] if one["domain"] == "all" else f"{one['target']}/{one['domain']}"
        row[f"matched:{outcome}"] = one["stamp"]
    row |= {"temperature": calibration["value"], "temperature_bound": calibration["bound"]}
    row |= {f"excluded_{rule}": calibration["excluded"][rule] for rule in RULES}
    row["excluded"] = calibration["excluded"][declared.exclude] or declared.for_reference
    row["contaminated"] = ", ".join(declared.contaminated) or None
    seen = declared.trained_on
    row["trained_on"] = None if seen is None else ", ".join(seen) or NO_SPLIT
    return row | source_metric(evaluation, declared.level)


def predictor_name(score: Mapping[str, Any], headline: Mapping[str, Any]) -> str:
    """The column of a score that is not the headline: by its pairs, or by its temperature."""
    if score["kind"] != headline["kind"]:
        return f"stamp_{score['kind']}"
    return "stamp_scaled" if score["scaled"] else "stamp_unscaled"


def scoreboard(rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """All models' rows as a table; text columns stay text where every entry is empty.

    ``identical_to`` names the other models with the same outputs.
    """
    table = pl.DataFrame(list(rows), infer_schema_length=None)
    empty = [name for name, kind in table.schema.items() if kind == pl.Null]
    texts = [name for name in empty if name.startswith((*TEXTS, "trained_on", "source_reason"))]
    numbers = [name for name in empty if name not in texts]
    table = table.with_columns(
        *(pl.col(name).cast(pl.String) for name in texts),
        *(pl.col(name).cast(pl.Float64) for name in numbers),
    )
    same = identical(table["model"].to_list(), table["fingerprint"].to_list())
    names = [", ".join(same.get(key, [])) or None for key in table["model"]]
    return table.with_columns(identical_to=pl.Series(names, dtype=pl.String))


def identical(
    models: Sequence[str], fingerprints: Sequence[Sequence[float]]
) -> dict[str, list[str]]:
    """For each model that has the same outputs as others, the others."""
    prints = np.asarray(fingerprints, dtype=float)
    found: dict[str, list[str]] = {}
    for key, own in zip(models, prints, strict=True):
        near = np.flatnonzero(np.abs(prints - own).max(axis=1) < SAME_OUTPUTS)
        if others := [models[int(at)] for at in near if models[int(at)] != key]:
            found[key] = others
    return found


def counted_twice(board: pl.DataFrame) -> list[str]:
    """A warning for each set of models with the same outputs."""
    twice = board.filter(pl.col("identical_to").is_not_null()).select("model", "identical_to")
    sets = {tuple(sorted([key, *others.split(", ")])) for key, others in twice.iter_rows()}
    return [
        f"models {', '.join(names)} have the same outputs and are counted {len(names)} times: "
        "keep one of them"
        for names in sorted(sets)
    ]


def predictors(columns: Sequence[str]) -> list[str]:
    """The columns of a scoreboard that predict outcomes: the headline, then the other estimator."""
    others = [name for name in columns if name in OTHER_SCORES or name.startswith("stamp_")]
    return ["stamp", *sorted(others, key=lambda name: name not in OTHER_SCORES)]


def keeps(board: pl.DataFrame) -> dict[str, pl.Series]:
    """Which models stay under each filter.

    ``all`` keeps every model, degenerate ones at their raw value; ``declared`` leaves out
    degenerate models and those that the study's own rule excludes; ``temperature`` and
    ``chance`` do the same under that rule, whichever the study declares.
    """
    sound = ~board["degenerate"]
    return {
        "all": pl.Series([True] * len(board)),
        "declared": sound & board["excluded"].is_null(),
        **{rule: sound & board[f"excluded_{rule}"].is_null() for rule in RULES},
    }


def uncontaminated(board: pl.DataFrame, outcome: str) -> pl.Series:
    """Which models stay under the filter ``uncontaminated``, for one outcome.

    As ``declared``, without the models that were trained or selected on the outcome's target; for
    the mean over targets, on any of them.
    """
    target = outcome.partition("/")[0]
    met = board["contaminated"].fill_null("").str.split(", ")
    hit = met.list.contains(target) if outcome != MEAN else board["contaminated"].is_not_null()
    return keeps(board)["declared"] & ~hit
