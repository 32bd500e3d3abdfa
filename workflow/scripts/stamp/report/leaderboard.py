"""The leaderboard: models by score, each with what a reader needs to trust or doubt it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import polars as pl

from stamp.config.view_names import SOURCE
from stamp.report.outcomes import outcome_names, values
from stamp.report.scoreboard import FLAGS, OTHER, OTHER_PARTS

FIRST = ("model", "label", "family", "objective", "regime", "stamp", "low", "high")
PARTS = ("eta2", "within", "total", "raw", "se_bootstrap", "temperature")
NUMBERS = ("n_semantic", "n_random", "n_units", "parameters")


def flags(row: Mapping[str, Any]) -> str:
    """The health flags of a model in words, empty where there are none."""
    found = [name for name in FLAGS if row[name]]
    if row["contaminated"]:
        found.append(f"trained or selected on {row['contaminated']}")
    if row["missing"]:
        found.append(f"no output for {row['missing']}")
    if row["temperature_bound"]:
        found.append(f"temperature at its {row['temperature_bound']} bound")
    if row["excluded"]:
        found.append(f"excluded: {row['excluded']}")
    return "; ".join(found)


def leaderboard(
    board: pl.DataFrame,
    tidy: pl.DataFrame,
    ranks: pl.DataFrame,
    models: Mapping[str, Mapping[str, str]],
    unavailable: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
) -> pl.DataFrame:
    """One row per model, best score first; degenerate and excluded models last, without a place.

    ``stamp``, ``low`` and ``high`` are by the study's ``estimator``; the other's score follows.
    Models that can't be scored follow with the reason.
    """
    keys = board["model"].to_list()
    source = values(tidy, SOURCE, keys)
    described = pl.DataFrame([{"model": key, **models[key]} for key in keys])
    outcomes = {f"target:{name}": values(tidy, name, keys) for name in outcome_names(tidy)}
    table = (
        board.join(described, on="model", maintain_order="left")
        .join(
            ranks.rename({"rank": "rank_median", "low": "rank_low", "high": "rank_high"}),
            on="model",
            how="left",
            maintain_order="left",
        )
        .with_columns(
            flags=pl.Series([flags(row) for row in board.iter_rows(named=True)], dtype=pl.String),
            source_metric=pl.Series(source),
            **{name: pl.Series(found) for name, found in outcomes.items()},
        )
        .with_columns(placed=~pl.col("degenerate") & pl.col("excluded").is_null())
        .sort("placed", "stamp", descending=[True, True], nulls_last=True)
    )
    place = pl.when("placed").then(pl.col("placed").cum_sum().cast(pl.Int64)).alias("place")
    then = ["rank_median", "rank_low", "rank_high", "source_metric", *outcomes, "flags"]
    others = [name for name in table.columns if name.startswith(("stamp_", "matched:"))]
    named = ["estimator", "kind", *(f"{name}_{part}" for name in OTHER for part in OTHER_PARTS)]
    others = [*(name for name in named if name in table.columns), *others]
    chosen = table.select(place, *FIRST, *then, *others, *PARTS, *NUMBERS)
    rows = [
        {
            "model": key,
            **{part: texts[part] for part in ("label", "family", "objective", "regime")},
            "flags": f"not available: {texts['reason']}",
        }
        for key, texts in unavailable.items()
    ]
    whole = pl.concat([chosen, pl.DataFrame(rows)], how="diagonal") if rows else chosen
    return whole.with_columns(pl.col(pl.Float64).fill_nan(None))
