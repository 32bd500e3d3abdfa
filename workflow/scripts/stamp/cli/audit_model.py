"""Score one model on one data set without Snakemake, and print its card.

With --study, pairs, classes and all settings are those of the study, and the numbers are those that
the workflow would give. Otherwise they are given here. Nothing is written, except by --out.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stamp.cli.arguments import at_least, mapping

if TYPE_CHECKING:
    from stamp.cli.data_argument import Named
    from stamp.cli.one_model import Candidate
    from stamp.config.plan import Plan
    from stamp.config.study import Study

HELP = "score one model on one data set without Snakemake, and print its card"
OF_STUDY = (  # what a study says itself
    "data", "task", "classes", "semantic", "split", "pairs", "calibration", "calibration_count",
    "scale", "exclude", "resamples",
)  # fmt: skip
# What each way to name the model has no use for.
IDLE = {
    "load": ("probabilities", "arch", "arch_args", "mean", "std"),
    "timm": ("probabilities", "arch", "arch_args", "mean", "std"),
    "logits": ("file", "size", "channels", "arch", "arch_args", "mean", "std"),
    "checkpoint": ("file", "probabilities"),
    "torchscript": ("file", "arch", "arch_args"),
    "onnx": ("file", "arch", "arch_args"),
}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Which images, which model, how it is scored, what comes out."""
    add = parser.add_argument_group("images").add_argument
    add("--study", help="take data, classes, pairs and all other settings from this study")
    add("--data", help="a table, a folder, or a data set's key")
    how = "an option of the table or folder, as in config/datasets.yaml"
    add("--option", "-o", action="append", default=[], metavar="KEY=VALUE", help=how)
    add("--task", choices=["multilabel", "multiclass"], help="sigmoids, or a softmax")
    add("--classes", help="names of the model's outputs, in order, between commas")
    add = parser.add_argument_group("model").add_argument
    add("--load", type=Path, help="YAML: a load block, or a zoo's file with --model")
    add("--model", help="the model of the zoo's file, or a name for the card")
    add("--timm", metavar="NAME", help="a timm architecture, with --file or the hub's weights")
    add("--checkpoint", metavar="FILE", help="weights of the timm architecture --arch")
    add("--torchscript", metavar="FILE", help="as torch.jit.save wrote it, with --mean and --std")
    add("--onnx", metavar="FILE", help="run by onnxruntime, with --mean and --std")
    add("--logits", type=Path, help="a file of its outputs, by image id: nothing is run")
    add("--probabilities", action=argparse.BooleanOptionalAction,
        help="whether its outputs are probabilities (asked where they look so)")  # fmt: skip
    add("--arch", help="timm architecture of --checkpoint")
    add("--arch-args", type=mapping, metavar="YAML", help="{layers: [1, 1, 1, 1]}")
    add("--mean", nargs="+", type=float, help="of pixels on [0, 1], a number a channel")
    add("--std", nargs="+", type=float)
    add("--file", type=Path, help="weights, safetensors or plain tensors")
    add("--size", type=at_least(1), help="height and width of the model's pixels")
    add("--channels", type=int, choices=[1, 3], help="1 for gray, 3 for colour (default: 3)")
    add = parser.add_argument_group("scoring").add_argument
    add("--semantic", choices=["temporal", "labeled", "changed", "class"],
        help="kind of pairs (default: temporal for multilabel, class for multiclass)")  # fmt: skip
    add("--split", help="split that pairs are drawn from (default: test)")
    add("--pairs", type=at_least(1), help="how many (default: all, up to 2,000)")
    add("--calibration", metavar="SPLIT", help="of calibration images (default: calibration)")
    add("--calibration-count", type=at_least(1), help="how many (default: all, up to 500)")
    add("--scale", action="store_true", default=None,
        help="score with the fitted temperature (STAMP-TS)")  # fmt: skip
    add("--exclude", choices=["temperature", "chance", "none"],
        help="rule that sets models apart (default: none)")  # fmt: skip
    add("--resamples", type=at_least(1), help="of the bootstrap (default: 10,000)")
    add("--seed", type=at_least(0), help="default: that of config.yaml, or 0")
    add("--device", choices=["auto", "cuda", "cpu"], default="auto")
    add("--threads", type=at_least(1), default=1, help="CPU threads of the model (default: 1)")
    add = parser.add_argument_group("card").add_argument
    add("--among", type=Path, metavar="LEADERBOARD", help="a leaderboard.csv to stand among")
    add("--json", action="store_true", help="print the card as JSON")
    add("--out", type=Path, help="write the card as JSON to this file too")


def run(arguments: argparse.Namespace) -> None:
    """Score the model, print the card."""
    import json

    from stamp.cli import card
    from stamp.cli.one_model import Run, audit, weights_file
    from stamp.config.plan import read_project
    from stamp.core.artifacts import write_json
    from stamp.core.device import choose

    project = read_project()
    seed = project.seed if arguments.seed is None else arguments.seed
    named, study = _study(arguments, project, seed)
    model = _candidate(arguments)
    weights = weights_file(model, arguments.file)
    device = choose(arguments.device)
    among = arguments.among
    board = Path(project.results) / (arguments.study or "") / "leaderboard.csv"
    if among is None and arguments.study and board.is_file():
        among = board
    if among:
        card.reference(among)  # what is wrong with it is said before the work
    found = audit(
        named, model, study, Run(seed, weights, device, arguments.threads, project.allow_code)
    )
    level = study.statistics.level
    place = card.standing(found, model.key, level, among) if among else None
    about = card.record(found, study, model.key, place)
    print(json.dumps(about, indent=2, sort_keys=True) if arguments.json else card.text(about))
    if arguments.out:
        write_json(arguments.out, about)


def _study(arguments: argparse.Namespace, project: Plan, seed: int) -> tuple[Named, Study]:
    """The images and how a model is scored on them: by a study, or by the arguments."""
    from stamp.cli.data_argument import of_argument, read_options
    from stamp.cli.one_model import own_study
    from stamp.cli.readiness import class_names
    from stamp.core.errors import UserError

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
    pairs: dict[str, Any] = {
        "split": [arguments.split or "test"],
        "semantic": arguments.semantic or {"multilabel": "temporal"}.get(task, "class"),
    }
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
    names = classes or class_names(named.index)
    return named, own_study(named, task, names, pairs, held_out, more)


def _without(arguments: argparse.Namespace, names: Iterable[str], given: str) -> None:
    """Refuse arguments that would be passed over beside another."""
    from stamp.core.errors import UserError

    for name in names:
        if getattr(arguments, name) is not None:
            raise UserError(f"--{name.replace('_', '-')} has no use beside {given}: leave it out")


def _candidate(arguments: argparse.Namespace) -> Candidate:
    """The model: by its block in YAML, by its name, by its file, or by a file of outputs."""
    from stamp.cli.one_model import Candidate, read_candidate
    from stamp.core.errors import UserError

    ways = [way for way in IDLE if getattr(arguments, way) is not None]
    if len(ways) != 1:
        named = ", ".join(f"--{way}" for way in IDLE)
        raise UserError(f"one model is scored: give one of {named}")
    _without(arguments, IDLE[ways[0]], f"--{ways[0]}")
    if arguments.logits is not None:
        if not arguments.logits.is_file():
            raise UserError(f"no such file '{arguments.logits}'")
        block: dict[str, Any] = {"source": "logits", "file": str(arguments.logits)}
        if arguments.probabilities is not None:
            block["probabilities"] = arguments.probabilities
        return Candidate(arguments.model or arguments.logits.stem, block)
    if arguments.load is not None:
        found = read_candidate(arguments.load, arguments.model)
        given = {"size": arguments.size, "channels": arguments.channels}
        pixels = {key: value for key, value in given.items() if value is not None}
        if not pixels:
            return found
        block = {**found.load, "preprocessing": {**found.load.get("preprocessing", {}), **pixels}}
        return Candidate(found.key, block, found.trained_on)
    if arguments.timm is None:
        return _in_file(arguments, ways[0])
    if arguments.size is None:
        raise UserError("--timm needs --size, the height and width of its pixels")
    pixels = {"size": arguments.size, "channels": arguments.channels or 3}
    block = {"source": "timm", "name": arguments.timm, "preprocessing": pixels}
    if arguments.file is not None:
        block["file"] = str(arguments.file)
    return Candidate(arguments.model or arguments.timm, block)


def _in_file(arguments: argparse.Namespace, kind: str) -> Candidate:
    """A model in a file, by the block that `add-model` would write of it."""
    from stamp.cli.model_entry import load_block
    from stamp.cli.one_model import Candidate, checked
    from stamp.core.errors import UserError

    file = getattr(arguments, kind)
    given = {name: getattr(arguments, name) for name in ("arch", "arch_args", "mean", "std")}
    given["probabilities"] = arguments.probabilities
    given["preprocessing"] = {} if arguments.size is None else {"size": arguments.size}
    channels = arguments.channels or (1 if len(arguments.mean or ()) == 1 else 3)
    block = load_block(kind, file, given, {})
    pixels = {"channels": channels, **block.get("preprocessing", {})}
    if pixels.get("size") is None:
        raise UserError(f"--{kind} needs --size, the height and width of its pixels")
    checked_block = checked({**block, "preprocessing": pixels}, f"--{kind}")
    return Candidate(arguments.model or Path(file).stem, checked_block)
