"""The card of a model that is scored here, and of one that the workflow has scored."""

from __future__ import annotations

import argparse
import hashlib
import shlex
import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import polars as pl

from stamp.cli.audit_model.from_arguments import candidate, doubts, scored_study
from stamp.cli.audit_model.standing import reference, same_outputs, standing
from stamp.cli.one_model import Audit, RunOptions, audit, eligible_pairs, weights_file
from stamp.cli.terminal.help_text import program
from stamp.config.plan import Plan
from stamp.config.study import Study
from stamp.config.view_names import SOURCE
from stamp.core.artifacts import array_metadata, read_arrays, read_json, read_table
from stamp.core.device import choose
from stamp.core.errors import UserError, suggest
from stamp.report import card
from stamp.report.analyses.robustness import table as robustness
from stamp.report.scoreboard import Declared, model_row

TARGET = "target:"


def scored_here(arguments: argparse.Namespace, project: Plan) -> dict[str, Any]:
    """Run a model, or read its outputs, and give its card."""
    seed = project.seed if arguments.seed is None else arguments.seed
    named, study = scored_study(arguments, project, seed)
    model = candidate(arguments, named.index)
    for line in doubts(arguments, named, model):
        print(line, file=sys.stderr)
    weights = weights_file(model, arguments.file)
    device = choose(arguments.device)
    among = _among(arguments, project)
    if among:
        reference(among)  # a mistake in it is reported before the work
    how = RunOptions(seed, weights, device, arguments.threads, project.allow_code)
    found = audit(named, model, study, how)
    if among and (same := same_outputs(found, model.key, among.parent)):
        found = replace(found, row={**found.row, "identical_to": ", ".join(same)})
    made = card.origin(
        _digested(found.metadata, weights), f"{program()} {shlex.join(arguments.line)}"
    )
    return _card(found, study, made, among)


def scored_in_study(arguments: argparse.Namespace, project: Plan) -> dict[str, Any]:
    """The card of a model of a study's zoo, from the files that the workflow has written."""
    study = project.read_study(arguments.study)
    key, folder = arguments.model, Path(project.results) / study.name
    if key in study.unavailable:
        raise UserError(f"model '{key}' is not available: {study.unavailable[key]['reason']}")
    if key not in study.models:
        raise UserError(f"study '{study.name}' has no model '{key}': {suggest(key, study.models)}")
    files = {
        "scores": folder / "scores" / f"{key}.parquet",
        "draws": folder / "scores" / f"{key}.draws.safetensors",
        "calibration": folder / "calibration" / f"{key}.json",
        "evaluation": folder / "evaluations" / SOURCE / f"{key}.parquet",
        "pairs": folder / "pairs.parquet",
        "logits": folder / "logits" / SOURCE / f"{key}.safetensors",
    }
    if absent := [str(file) for file in files.values() if not file.is_file()]:
        command = card.making(study.name, absent)
        raise UserError(f"the workflow has no {absent[0]} yet: run `{command}` first")
    command = card.repeat(study.name, key, project.results)
    found = stored(study, key, files, project.seed)
    index = Path(project.results) / "datasets" / study.source.dataset / "index.parquet"
    if index.is_file():
        found = replace(found, eligible=eligible_pairs(read_table(index), study))
    trained = folder / "trained" / f"{key}.safetensors"
    metadata = _digested(found.metadata, trained if trained.is_file() else None)
    told = _card(found, study, card.origin(metadata, command), _among(arguments, project))
    tests = folder / "analyses" / "robustness_models.csv"
    return told | {"worst_changes": _worst_changes(tests, key, study.statistics.level)}


def _worst_changes(file: Path, key: str, level: float) -> list[str]:
    """The stress tests that cost a model the most, in words; none where the study has none."""
    if not file.is_file():
        return []
    return robustness.worst_changes(pl.read_csv(file, schema=robustness.MODELS), key, level)


def stored(study: Study, key: str, files: dict[str, Path], seed: int) -> Audit:
    """What the workflow knows of a model: its own files, and its row of the leaderboard."""
    scores = read_table(files["scores"], model=key, study=study.name)
    evaluation = read_table(files["evaluation"])
    seen = study.trained_on[key]
    declared = Declared(
        study.calibration.exclude,
        study.statistics.level,
        study.contaminated.get(key, ()),
        seen,
    )
    nothing = pl.DataFrame(schema={"model": pl.String})
    row = model_row(scores, read_json(files["calibration"]), nothing, evaluation, declared)
    listed = _listed(files["pairs"].parent / "leaderboard.parquet", row)
    names = [name for name in listed if name.startswith(TARGET) and listed[name] is not None]
    return Audit(
        row={**row, "identical_to": listed.get("identical_to")},
        scores=scores,
        evaluation=evaluation,
        pairs=read_table(files["pairs"], study=study.name),
        draws=read_arrays(files["draws"], model=key, study=study.name)["stamp"],
        seed=seed,
        metadata=array_metadata(files["logits"]),
        targets={name.removeprefix(TARGET): listed[name] for name in names},
    )


def _listed(file: Path, row: dict[str, Any]) -> dict[str, Any]:
    """The model's row of the leaderboard; empty where there is none, or one of another score."""
    if not file.is_file():
        return {}
    rows = read_table(file).filter(pl.col("model") == row["model"]).rows(named=True)
    return rows[0] if rows and rows[0]["raw"] == row["raw"] else {}


def _card(found: Audit, study: Study, made: card.Origin, among: Path | None) -> dict[str, Any]:
    how = card.Scoring(
        data=study.name,
        task=study.task,
        classes=study.classes,
        semantic=study.pairs.semantic,
        split=study.pairs.split,
        seed=found.seed,
        level=study.statistics.level,
        scaled=study.calibration.scale,
        eligible=found.eligible,
    )
    key = found.row["model"]
    place = standing(found, key, study.statistics.level, among) if among else None
    where = None if place is None else asdict(place)
    return card.card(found.row, how, made, found.targets, where)


def _among(arguments: argparse.Namespace, project: Plan) -> Path | None:
    """The leaderboard to compare with: the one that is given, or the study's own."""
    if arguments.among or not arguments.study:
        return arguments.among
    own = Path(project.results) / arguments.study / "leaderboard.csv"
    return own if own.is_file() else None


def _digested(metadata: Mapping[str, str], weights: Path | None) -> dict[str, str]:
    """The metadata with the file of weights and its digest, where nothing says them yet."""
    if weights is None or any(key.startswith("weights_") for key in metadata):
        return dict(metadata)
    with open(weights, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {**metadata, "weights_file": str(weights), "weights_sha256": digest}
