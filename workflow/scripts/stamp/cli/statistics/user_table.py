"""A user's own table of models, scores and outcomes, read, checked and shaped like a study.

One row per model. ``model``, ``score`` and ``source_metric`` are required; ``label``, ``family``,
``objective``, ``regime``, ``parameters``, ``low``, ``high`` (an interval of the score),
``source_metric_se`` (the standard error of the source metric), ``pretraining``, ``source:<target>``
(the class-matched source metric of a target), ``source_se:<target>`` (its standard error) and
``excluded`` (why a model is excluded) may be there; every other column of numbers is a target.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from stamp.cli.statistics.chosen_columns import MATCHED, ColumnChoice, chosen
from stamp.config.study import NOT_SAID
from stamp.config.view_names import SOURCE
from stamp.core import shown_text
from stamp.core.errors import UserError, suggest
from stamp.metrics.value import COLUMNS as METRICS
from stamp.report.analysis import AnalysisData
from stamp.report.comparison.paired import CONTROL
from stamp.report.outcomes import MEAN, outcomes
from stamp.report.scoreboard import FLAGS, PARTS, RULES, TEXTS
from stamp.scoring.evaluate import AMONG
from stamp.scoring.score import N_PAIRS
from stamp.stats.correlations.correlation import FEWEST
from stamp.stats.ranks import mid_ranks

REQUIRED = ("model", "score", "source_metric")
PRETRAINING = "pretraining"
SAID = ("label", "family", "objective", "regime", PRETRAINING)
OPTIONAL = ("parameters", "low", "high")  # numbers; a cell may be empty
SOURCE_SE, MATCHED_SE = "source_metric_se", "source_se:"
RESERVED = (MEAN, SOURCE)
NO_CHOICE = ColumnChoice()
NAMED = {*REQUIRED, *SAID, *OPTIONAL, SOURCE_SE, "excluded"}


@dataclass(frozen=True, slots=True)
class UserTable:
    """A table that can be analysed: columns of numbers and of texts, one entry per model."""

    models: list[str]
    numbers: dict[str, list[float | None]]
    texts: dict[str, list[str]]
    targets: list[str]
    controls: list[str]
    ignored: list[str]

    @property
    def pretraining(self) -> dict[str, str]:
        """What each model was pretrained on, where that is not the same for all."""
        said = [text or NOT_SAID for text in self.texts.get(PRETRAINING, ())]
        found = dict(zip(self.models, said, strict=False))  # none where there is no column
        return found if len(set(said)) > 1 else {}


def read(
    path: str | Path, controls: Sequence[str] = (), choice: ColumnChoice = NO_CHOICE
) -> UserTable:
    """The user's table; the first mistake in it is raised, with its line and column."""
    header, rows = chosen(path, *_cells(Path(path)), choice)
    for name in REQUIRED:
        if name not in header:
            known = [one for one in header if one not in REQUIRED]
            raise UserError(f"{path}: the column '{name}' is missing: {suggest(name, known)}")
    columns = {name: [row[at] for row in rows] for at, name in enumerate(header)}
    _check_models(path, columns["model"])
    for name in controls:
        if name not in header or name in NAMED - {"parameters"}:
            others = [one for one in header if one not in NAMED]
            raise UserError(f"{path}: no column '{name}' to control for: {suggest(name, others)}")
    beside = [name for name in header if name.startswith((MATCHED, MATCHED_SE))]
    free = [name for name in header if name not in {*NAMED, *controls, *beside}]
    ignored = [
        name for name in free if not any(_is_number(cell.rstrip("%")) for cell in columns[name])
    ]
    targets = [name for name in free if name not in ignored]
    for name in targets:
        if name in RESERVED:
            raise UserError(f"{path}: a target can't have the reserved name '{name}'")
    if not targets:
        raise UserError(f"{path}: no target: every further column of numbers is one")
    _check_beside(path, beside, targets)
    whole = ["score", "source_metric", *targets, *(one for one in controls if one != "parameters")]
    whole += [name for name in beside if name.startswith(MATCHED)]
    numbers = {name: _numbers(path, name, columns, True) for name in whole}
    errors = [SOURCE_SE, *(name for name in beside if name.startswith(MATCHED_SE))]
    optional = [name for name in (*OPTIONAL, *errors) if name in columns]
    numbers |= {name: _numbers(path, name, columns, False) for name in optional}
    for name in errors:
        _check_errors(path, columns["model"], name, numbers.get(name, []))
    texts = {name: columns[name] for name in (*SAID, "excluded") if name in columns}
    shown_text.check([*targets, *columns["model"], *chain(*texts.values())], str(path))
    own = [name for name in controls if name != "parameters"]
    return UserTable(columns["model"], numbers, texts, targets, own, ignored)


def _cells(path: Path) -> tuple[list[str], list[list[str]]]:
    """The header and the rows of a CSV file, without blank lines."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = [[cell.strip() for cell in row] for row in csv.reader(file, strict=True)]
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path}: can't be read as CSV in UTF-8: {error}") from None
    if not lines or not any(lines[0]):
        raise UserError(f"{path}: the first line must name the columns")
    named = [place for place, name in enumerate(lines[0]) if name]  # row numbers have no name
    width, header = len(lines[0]), [lines[0][place] for place in named]
    for name in header:
        if header.count(name) > 1:
            raise UserError(f"{path}: the column '{name}' stands twice")
    for number, row in enumerate(lines[1:], start=2):
        if any(row) and len(row) != width:
            raise UserError(f"{path}, line {number}: {len(row)} cells, the header has {width}")
    return header, [[row[place] for place in named] for row in lines[1:] if any(row)]


def _check_models(path: str | Path, models: list[str]) -> None:
    for at, name in enumerate(models):
        if not name:
            raise UserError(f"{path}: model {at + 1} has no name")
        if name in models[:at]:
            raise UserError(f"{path}: model '{name}' stands twice")
    if len(models) < FEWEST:
        raise UserError(f"{path}: {len(models)} models, at least {FEWEST} are needed")


def _check_beside(path: str | Path, beside: Sequence[str], targets: Sequence[str]) -> None:
    """A class-matched source metric is of a target, and its error has a value beside it."""
    for name in beside:
        target = name.partition(":")[2]
        if target not in targets:
            raise UserError(
                f"{path}: column '{name}': no target '{target}': {suggest(target, targets)}"
            )
        if f"{MATCHED}{target}" not in beside:
            raise UserError(f"{path}: column '{name}' needs the column '{MATCHED}{target}'")


def _check_errors(
    path: str | Path, models: list[str], column: str, errors: list[float | None]
) -> None:
    for model, error in zip(models, errors, strict=False):  # none where there is no column
        if error is not None and error < 0:
            raise UserError(
                f"{path}: model '{model}', column '{column}': {error:g} is no standard error: "
                "it can't be below 0"
            )


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _numbers(
    path: str | Path, name: str, columns: dict[str, list[str]], whole: bool
) -> list[float | None]:
    """A column as numbers; ``whole``: an empty cell is a mistake."""
    found: list[float | None] = []
    for model, cell in zip(columns["model"], columns[name], strict=True):
        where = f"{path}: model '{model}', column '{name}'"
        if not cell and not whole:
            found.append(None)
            continue
        if not cell:
            raise UserError(f"{where}: no value, every model needs one")
        if cell.endswith("%") and _is_number(cell[:-1]):
            share = f"{float(cell[:-1]) / 100:g}"
            raise UserError(f"{where}: '{cell}' is percent: divide by 100 and write {share}")
        if not _is_number(cell):
            raise UserError(f"{where}: '{cell}' is not a number")
        if not math.isfinite(float(cell)):
            raise UserError(f"{where}: '{cell}' is not a finite number")
        found.append(float(cell))
    return found


def study(own: UserTable, title: str, settings: dict[str, Any], seed: int) -> AnalysisData:
    """The table as the data that analyses read; what it does not have is empty."""
    texts = {
        "title": title,
        "notice": "",
        "task": "multiclass",
        "level": settings["level"],
        "targets": {name: name for name in own.targets},
        "outcomes": dict.fromkeys(own.targets, "whole"),
        "matched": [],
        "relabelled": [],
        "pretraining": own.pretraining,
    }
    table = evaluations(own)
    unknown = {"n": pl.lit(None, dtype=pl.Int64)}
    return AnalysisData(
        scores=board(own),
        outcomes=outcomes(table, texts["outcomes"]).with_columns(**unknown),
        evaluations=table,
        n_pairs=pl.DataFrame(schema=N_PAIRS),
        calibrations={},
        metrics=pl.DataFrame(schema={"model": pl.String, **METRICS}),
        models={
            key: {
                name: own.texts[name][at]
                if name in own.texts and own.texts[name][at]
                else (key if name == "label" else "all models")
                for name in SAID
                if name != PRETRAINING or own.pretraining
            }
            for at, key in enumerate(own.models)
        },
        texts=texts,
        settings=settings,
        seed=seed,
    )


def board(own: UserTable) -> pl.DataFrame:
    """One row per model, as in a study's scores; columns that a table can't have are empty."""
    count = len(own.models)
    empty: list[Any] = [None] * count
    excluded = [text or None for text in own.texts.get("excluded", empty)]
    rules = ("excluded", *(f"excluded_{rule}" for rule in RULES))
    texts = {**dict.fromkeys(TEXTS, empty), **dict.fromkeys(rules, excluded)}
    numbers = {
        **dict.fromkeys((*PARTS, "temperature"), empty),
        **{name: own.numbers[name] for name in OPTIONAL if name in own.numbers},
        **{f"{CONTROL}{name}": own.numbers[name] for name in own.controls},
        **dict.fromkeys(("stamp", "raw"), own.numbers["score"]),
    }
    columns = {
        **{name: pl.Series(column, dtype=pl.Float64) for name, column in numbers.items()},
        **{name: pl.Series([False] * count) for name in FLAGS},
        **{name: pl.Series(column, dtype=pl.String) for name, column in texts.items()},
    }
    return pl.DataFrame({"model": own.models, **columns})


def evaluations(own: UserTable) -> pl.DataFrame:
    """The source metric, with its standard error where it is known, and every target."""
    rows = _evaluated(own, SOURCE, "all", "source_metric", SOURCE_SE)
    for name in own.targets:
        if f"{MATCHED}{name}" in own.numbers:
            column, error = f"{MATCHED}{name}", f"{MATCHED_SE}{name}"
            rows += _evaluated(own, SOURCE, f"{AMONG}{name}", column, error)
        rows += _evaluated(own, name, "all", name)
    return pl.DataFrame(rows, schema_overrides={"se": pl.Float64, "n": pl.Int64})


def _evaluated(
    own: UserTable, view: str, domain: str, column: str, error: str = ""
) -> list[dict[str, Any]]:
    """The rows of an evaluation from one column of the table."""
    metric = "metric" if view == SOURCE else "outcome"
    same = {"view": view, "domain": domain, "class": "top1", "metric": metric, "n": None}
    errors = own.numbers.get(error, [None] * len(own.models))
    return [
        {"model": model, **same, "value": value, "se": one}
        for model, value, one in zip(own.models, own.numbers[column], errors, strict=True)
    ]


def ranks(own: UserTable) -> pl.DataFrame:
    """Each model's rank by score, 1 the highest; a table without draws has no intervals of it."""
    found = mid_ranks(-np.array(own.numbers["score"], dtype=float))
    table = pl.DataFrame({"model": own.models, "rank": found})
    none = pl.lit(None, dtype=pl.Float64)
    return table.with_columns(low=none, high=none)
