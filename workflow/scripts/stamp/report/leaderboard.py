"""The leaderboard: models by score, each with what a reader needs to trust or doubt it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
import polars as pl

from stamp.config.view_names import SOURCE
from stamp.report import flags
from stamp.report.outcomes import by_model, outcome_names, values
from stamp.report.scoreboard import OTHER, OTHER_PARTS

SAID = ("label", "family", "objective", "regime", "pretraining")
FIRST = ("model", *SAID, "stamp", "low", "high")
PARTS = ("eta2", "within", "total", "raw", "se_bootstrap", "temperature")
NUMBERS = ("n_semantic", "n_random", "n_units", "parameters")
BESIDE = ("source_low", "source_high", "source_no_skill")  # what the source metric is read with


def leaderboard(
    board: pl.DataFrame,
    tidy: pl.DataFrame,
    ranks: pl.DataFrame,
    models: Mapping[str, Mapping[str, str]],
    unavailable: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
) -> pl.DataFrame:
    """One row per model, best score first; degenerate and excluded models last, without a place.

    ``stamp``, ``low`` and ``high`` are by the study's ``estimator``; the other's score follows.
    ``source:<outcome>`` is the class-matched source metric, where that is not the plain one, and
    ``source_se:<outcome>`` its standard error. Models that can't be scored follow with the reason.
    The last columns are those that flags are raised by.
    """
    keys = board["model"].to_list()
    source = values(tidy, SOURCE, keys)
    described = pl.DataFrame([{"model": key, **models[key]} for key in keys])
    outcomes = {f"target:{name}": values(tidy, name, keys) for name in outcome_names(tidy)}
    matched = _matched_source(tidy, keys)
    table = (
        board.join(described, on="model", maintain_order="left")
        .join(
            ranks.rename({"rank": "rank_median", "low": "rank_low", "high": "rank_high"}),
            on="model",
            how="left",
            maintain_order="left",
        )
        .with_columns(
            flags=pl.Series(map(flags.words, board.iter_rows(named=True)), dtype=pl.String),
            source_metric=pl.Series(source),
            **{name: pl.Series(found) for name, found in (matched | outcomes).items()},
        )
        .with_columns(placed=~pl.col("degenerate") & pl.col("excluded").is_null())
        .sort("placed", "stamp", descending=[True, True], nulls_last=True)
    )
    place = pl.when("placed").then(pl.col("placed").cum_sum().cast(pl.Int64)).alias("place")
    chosen = table.select(place, *_shown(table.columns, [*matched, *outcomes]))
    rows = [
        {
            "model": key,
            **{part: texts[part] for part in SAID if part in texts},
            "flags": flags.words({"unavailable": texts["reason"]}),
            "unavailable": texts["reason"],
        }
        for key, texts in unavailable.items()
    ]
    whole = pl.concat([chosen, pl.DataFrame(rows)], how="diagonal") if rows else chosen
    return whole.with_columns(pl.col(pl.Float64).fill_nan(None))


def _matched_source(tidy: pl.DataFrame, keys: Sequence[str]) -> dict[str, np.ndarray]:
    """The class-matched source metric of each outcome that has one, and its standard error."""
    found = {}
    for outcome in outcome_names(tidy):
        rows = tidy.filter(pl.col("outcome") == f"{SOURCE}:{outcome}")
        if len(rows):
            found[f"{SOURCE}:{outcome}"] = by_model(rows, keys)
            found[f"{SOURCE}_se:{outcome}"] = by_model(rows, keys, "se")
    return found


def _shown(columns: Sequence[str], outcomes: Sequence[str]) -> list[str]:
    """The columns of a leaderboard in their order, as far as there are such."""
    ranked = ["rank_median", "rank_low", "rank_high", "source_metric"]
    others = [name for name in columns if name.startswith(("stamp_", "matched:"))]
    named = ["estimator", "kind", *(f"{name}_{part}" for name in OTHER for part in OTHER_PARTS)]
    beside = [[name for name in some if name in columns] for some in (BESIDE, named)]
    shown = [*(name for name in FIRST if name in columns), *ranked, *beside[0], *outcomes, "flags"]
    shown += [*beside[1], *others, *PARTS, *NUMBERS]
    return shown + [name for name in flags.COLUMNS if name in columns and name not in shown]
