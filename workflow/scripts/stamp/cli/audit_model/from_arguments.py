"""The images, settings and model that the arguments of ``audit-model`` name."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from stamp.cli import one_model, trained_on
from stamp.cli.add_model.load_block import load_block
from stamp.cli.add_model.several import key_of
from stamp.cli.check_data.description import class_names
from stamp.cli.check_data.labels import check_columns
from stamp.cli.data_argument import Named, of_argument, read_options
from stamp.cli.one_model import Candidate
from stamp.cli.terminal.report_lines import Report
from stamp.cli.trained_on import TrainedOn
from stamp.config.plan import Plan
from stamp.config.study import Study
from stamp.core import shown_text
from stamp.core.errors import UserError, suggest
from stamp.data.pairs import default_kind

# Arguments that a study takes the place of.
OF_STUDY = (
    "data", "task", "classes", "semantic", "split", "pairs", "calibration", "calibration_count",
    "scale", "exclude", "resamples",
)  # fmt: skip


TRAINED = ("trained_on", "trained_on_list", "trained_on_column")
# Arguments that a model which the workflow has scored already has no use for.
OF_RUN = ("file", "size", "channels", "probabilities", "arch", "arch_args", "mean", "std", "seed",
          *TRAINED)  # fmt: skip
# The arguments that each way to name the model has no use for.
UNUSED = {
    "load": ("probabilities", "arch", "arch_args", "mean", "std"),
    "timm": ("probabilities", "arch", "arch_args", "mean", "std"),
    "hf": ("file", "size", "channels", "probabilities", "arch", "arch_args", "mean", "std"),
    "logits": ("file", "size", "channels", "arch", "arch_args", "mean", "std"),
    "checkpoint": ("file", "probabilities"),
    "torchscript": ("file", "arch", "arch_args"),
    "onnx": ("file", "arch", "arch_args"),
}


def of_zoo(arguments: argparse.Namespace) -> bool:
    """Whether the model is one of the study's zoo, which the workflow has scored."""
    given = any(getattr(arguments, way) is not None for way in UNUSED)
    if given or not (arguments.study and arguments.model):
        return False
    _without(arguments, (*OF_STUDY, *OF_RUN), "--study and --model, for which nothing is run")
    return True


def _way(arguments: argparse.Namespace) -> str:
    """How the model is named."""
    ways = [way for way in UNUSED if getattr(arguments, way) is not None]
    if len(ways) != 1:
        named = ", ".join(f"--{way}" for way in UNUSED)
        raise UserError(
            f"one model is scored: give one of {named}, or --study and --model for one of a study"
        )
    _without(arguments, UNUSED[ways[0]], f"--{ways[0]}")
    return ways[0]


def scored_study(arguments: argparse.Namespace, project: Plan, seed: int) -> tuple[Named, Study]:
    """The images, and how a model is scored on them: as a study or as the arguments say."""
    options = read_options(arguments.option)
    if arguments.study:
        _without(arguments, OF_STUDY, f"--study {arguments.study}")
        study = project.read_study(arguments.study)
        return of_argument(study.source.dataset, project, options, seed), study
    if not arguments.data:
        raise UserError("nothing to score on: give --data or --study")
    named = of_argument(arguments.data, project, options, seed)
    task = arguments.task or ("multiclass" if "label" in named.index.columns else "multilabel")
    classes = [name.strip() for name in (arguments.classes or "").split(",") if name.strip()]
    if twice := next((name for name in classes if classes.count(name) > 1), None):
        raise UserError(f"--classes names '{twice}' twice")
    found = [name for name in class_names(named.index) if name != arguments.trained_on_column]
    names = classes or found
    shown_text.check(names, f"{named.name}: class")
    kind = arguments.semantic or default_kind(named.index, task, names)
    pairs: dict[str, Any] = {"split": [arguments.split or "test"], "semantic": kind}
    held_out: dict[str, Any] = {
        "split": arguments.calibration or "calibration",
        "scale": bool(arguments.scale),
        "exclude": arguments.exclude or "none",
    }
    if arguments.pairs is not None:
        pairs["max_pairs"] = arguments.pairs
    if arguments.calibration_count is not None:
        held_out["n_images"] = arguments.calibration_count
    more = {} if arguments.resamples is None else {"resamples": arguments.resamples}
    return named, one_model.own_study(named, task, names, pairs, held_out, more)


def _without(arguments: argparse.Namespace, names: Iterable[str], given: str) -> None:
    """Refuse arguments that would be ignored beside another."""
    for name in names:
        if getattr(arguments, name) is not None:
            raise UserError(f"--{name.replace('_', '-')} has no use beside {given}: leave it out")


def candidate(arguments: argparse.Namespace, index: pl.DataFrame) -> Candidate:
    """The model that the arguments name, and what it was trained on."""
    found, seen = _model(arguments, _way(arguments)), training(arguments, index)
    shown_text.check([found.key], "--model")
    return found if seen == TrainedOn() else replace(found, trained_on=seen)


def training(arguments: argparse.Namespace, index: pl.DataFrame) -> TrainedOn:
    """What the arguments say that the model was trained on."""
    splits, file, column = (getattr(arguments, name) for name in TRAINED)
    if file is not None and column is not None:
        raise UserError("--trained-on-list and --trained-on-column exclude each other")
    told = None if splits is None else tuple(splits)
    if file is not None:
        return TrainedOn(told, trained_on.listed(file), str(file))
    if column is not None:
        return TrainedOn(told, trained_on.marked(index, column), f"column {column}")
    return TrainedOn(told)


def doubts(arguments: argparse.Namespace, named: Named, model: Candidate) -> list[str]:
    """What a reader should know before the card: columns that are no classes, unknown splits."""
    report = Report()
    guessed = arguments.study is None and arguments.classes is None
    if guessed and "label" not in named.index.columns:
        check_columns(report, named.index)
    found = [f"{level}: {line}" for level, line in report.findings]
    return [*found, *unknown_splits(model, named.index)]


def unknown_splits(model: Candidate, index: pl.DataFrame) -> list[str]:
    """A note for each split it was trained on that the data do not have: it has no effect."""
    known = index["split"].drop_nulls().unique().to_list()
    return [
        f"note: --trained-on: the data have no split '{one}': {suggest(one, known)}"
        for one in model.trained_on.splits or ()
        if one not in known
    ]


def _model(arguments: argparse.Namespace, kind: str) -> Candidate:
    """The model: a block in YAML, a timm name, a file of weights, or a file of outputs."""
    if arguments.logits is not None:
        if not arguments.logits.is_file():
            raise UserError(f"no such file '{arguments.logits}'")
        block: dict[str, Any] = {"source": "logits", "file": str(arguments.logits)}
        if arguments.probabilities is not None:
            block["probabilities"] = arguments.probabilities
        return Candidate(arguments.model or arguments.logits.stem, block)
    if arguments.load is not None:
        found = one_model.read_candidate(arguments.load, arguments.model)
        given = {"size": arguments.size, "channels": arguments.channels}
        pixels = {key: value for key, value in given.items() if value is not None}
        if not pixels:
            return found
        block = {**found.load, "preprocessing": {**found.load.get("preprocessing", {}), **pixels}}
        return Candidate(found.key, block, found.trained_on)
    if arguments.hf is not None:
        block = load_block("hf", arguments.hf, {}, {})
        return Candidate(arguments.model or key_of(arguments.hf), block)
    if arguments.timm is None:
        return _in_file(arguments, kind)
    if arguments.size is None:
        raise UserError("--timm needs --size, the height and width of its pixels")
    pixels = {"size": arguments.size, "channels": arguments.channels or 3}
    block = {"source": "timm", "name": arguments.timm, "preprocessing": pixels}
    if arguments.file is not None:
        block["file"] = str(arguments.file)
    return Candidate(arguments.model or arguments.timm, block)


def _in_file(arguments: argparse.Namespace, kind: str) -> Candidate:
    """A model in a file, with the block that `add-model` would write for it."""
    file = getattr(arguments, kind)
    given = {name: getattr(arguments, name) for name in ("arch", "arch_args", "mean", "std")}
    given["probabilities"] = arguments.probabilities
    given["preprocessing"] = {} if arguments.size is None else {"size": arguments.size}
    channels = arguments.channels or (1 if len(arguments.mean or ()) == 1 else 3)
    block = load_block(kind, file, given, {})
    pixels = {"channels": channels, **block.get("preprocessing", {})}
    if pixels.get("size") is None:
        raise UserError(f"--{kind} needs --size, the height and width of its pixels")
    checked_block = one_model.checked({**block, "preprocessing": pixels}, f"--{kind}")
    return Candidate(arguments.model or Path(file).stem, checked_block)
