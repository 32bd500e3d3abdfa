"""Every model's scores and outcomes in two tables, from the files that its own jobs wrote."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from stamp.config.view_names import SOURCE
from stamp.core.artifacts import read_json, read_table
from stamp.inference.provenance import same_weights
from stamp.report.outcomes import outcomes
from stamp.report.scoreboard import Declared, counted_twice, model_row, scoreboard
from stamp.scoring.evaluate import INFLUENCE


@dataclass(frozen=True, slots=True)
class Collected:
    """The scoreboard, the outcomes, all evaluations, and what a user should be warned of."""

    scores: pl.DataFrame
    outcomes: pl.DataFrame
    evaluations: pl.DataFrame
    warnings: list[str]


def collect(files: Any, params: Any, study: str) -> Collected:
    """What the models of a study reached; ``files`` and ``params`` are those of the rule.

    A row never mixes one model's numbers with those of the model that took its place.
    """
    own: dict[str, list[str]] = {model: [] for model in params.models}
    for path in (*files.scores, *files.calibrations, *files.matched, *files.evaluations):
        own[Path(path).stem].append(path)
    for paths in own.values():
        same_weights(paths)
    parts = [read_table(path) for path in files.evaluations]
    evaluations = pl.concat(parts, how="diagonal")  # only the source's have influences
    matched = [read_table(path) for path in files.matched]
    none = pl.DataFrame(schema={"model": pl.String})
    of_target = _by_model(pl.concat(matched)) if matched else {}
    at_home = _by_model(evaluations.filter(pl.col("view") == SOURCE))
    rows = [
        model_row(
            read_table(scores, model=model, study=study),
            read_json(calibration),
            of_target.get(model, none),
            at_home[model],
            _declared(params, model),
        )
        for model, scores, calibration in zip(
            params.models, files.scores, files.calibrations, strict=True
        )
    ]
    board = scoreboard(rows)
    table = outcomes(evaluations, params.outcomes, params.relabelled, params.class_mix)
    return Collected(board, table, evaluations.drop(*INFLUENCE), list(counted_twice(board)))


def _by_model(table: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """The rows of each model, in their order."""
    return {str(rows["model"][0]): rows for rows in table.partition_by("model")}


def _declared(params: Any, model: str) -> Declared:
    met: Iterable[str] = params.contaminated.get(model, ())
    return Declared(
        exclude=params.exclude,
        level=params.level,
        contaminated=tuple(met),
        trained_on=params.trained_on[model],
        for_reference=params.for_reference.get(model),
    )
