"""Score one model on one data set without Snakemake, and print its card.

With --study, pairs, classes and all settings are those of the study, and the numbers are those that
the workflow would give. Otherwise they are given here. With --study and --model alone the card is
that of a model of the study's zoo, from what the workflow has. Nothing is written, except by --out.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stamp.cli.terminal.arguments import Place, at_least, mapping

HELP = "score one model on one data set without Snakemake, and print its card"
EXAMPLE = "audit-model --study phantom --model resnet-plain"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Which images, which model, how it is scored, what is printed."""
    _images(parser.add_argument_group("images").add_argument)
    _model(parser.add_argument_group("model").add_argument)
    _scoring(parser.add_argument_group("scoring").add_argument)
    add = parser.add_argument_group("card").add_argument
    add("--among", type=Path, metavar="LEADERBOARD", help="a leaderboard.csv to compare with")
    add("--json", action="store_true", help="print the card as JSON")
    add("--out", type=Path, help="write the card as JSON to this file too")


def _images(add: Callable[..., Any]) -> None:
    add("--study", help="take data, classes, pairs and all other settings from this study")
    add("--data", type=Place, help="a table, a folder, or a data set's key")
    how = "an option of the table or folder, as in config/datasets.yaml"
    add("--option", "-o", action="append", default=[], metavar="KEY=VALUE", help=how)
    add("--task", choices=["multilabel", "multiclass"], help="sigmoids, or a softmax")
    add("--classes", help="names of the model's outputs, in order, between commas")


def _model(add: Callable[..., Any]) -> None:
    add("--load", type=Path, help="YAML: a load block, or a zoo's file with --model")
    add("--model", help="the model of the zoo's file or of the study, or a name for the card")
    add("--timm", metavar="NAME", help="a timm architecture, with --file or the hub's weights")
    add("--hf", metavar="REPO", help="a classifier of the Hugging Face hub, with @ and a commit")
    add("--checkpoint", metavar="FILE", type=Place, help="weights of the timm architecture --arch")
    add(
        "--torchscript",
        metavar="FILE",
        type=Place,
        help="as torch.jit.save wrote it, with --mean and --std",
    )
    add("--onnx", metavar="FILE", type=Place, help="run by onnxruntime, with --mean and --std")
    add("--logits", type=Path, help="a file of its outputs, by image id: nothing is run")
    add("--probabilities", action=argparse.BooleanOptionalAction,
        help="whether its outputs are probabilities (asked where they look so)")  # fmt: skip
    add("--arch", help="timm architecture of --checkpoint")
    add("--arch-args", type=mapping, metavar="YAML", help="{layers: [1, 1, 1, 1]}")
    add("--mean", nargs="+", type=float, help="of pixels in [0, 1], one number per channel")
    add("--std", nargs="+", type=float)
    add("--file", type=Path, help="weights, safetensors or plain tensors")
    add("--size", type=at_least(1), help="height and width of the model's pixels")
    add("--channels", type=int, choices=[1, 3], help="1 for gray, 3 for colour (default: 3)")
    add("--trained-on", nargs="*", metavar="SPLIT",
        help="splits of the data it was trained on; nothing behind it: none of them")  # fmt: skip
    add("--trained-on-list", type=Path, metavar="FILE",
        help="images or groups it was trained on: one per line, or a table's column")  # fmt: skip
    add("--trained-on-column", metavar="COLUMN",
        help="column of the data's table that is 1 for images it was trained on")  # fmt: skip


def _scoring(add: Callable[..., Any]) -> None:
    add("--semantic", choices=["temporal", "labeled", "changed", "class"],
        help="kind of pairs (default: temporal where groups have visits, else class)")  # fmt: skip
    add("--split", help="split that pairs are drawn from (default: test)")
    add("--pairs", type=at_least(1), help="how many (default: all, up to 2,000)")
    add("--calibration", metavar="SPLIT", help="of calibration images (default: calibration)")
    add("--calibration-count", type=at_least(1), help="how many (default: all, up to 500)")
    add("--scale", action="store_true", default=None,
        help="score with the fitted temperature (STAMP-TS)")  # fmt: skip
    add("--exclude", choices=["temperature", "chance", "none"],
        help="rule by which models are excluded (default: none)")  # fmt: skip
    add("--resamples", type=at_least(1), help="of the bootstrap (default: 10,000)")
    add("--seed", type=at_least(0), help="default: that of config.yaml, or 0")
    add("--device", choices=["auto", "cuda", "cpu"], default="auto")
    add("--threads", type=at_least(1), default=1, help="CPU threads of the model (default: 1)")


def run(arguments: argparse.Namespace) -> None:
    """Score the model, print the card."""
    import json

    from stamp.cli.audit_model import card_text
    from stamp.cli.audit_model.from_arguments import of_zoo
    from stamp.cli.audit_model.scored import scored_here, scored_in_study
    from stamp.config.plan import read_project
    from stamp.core.artifacts import write_json

    card_of = scored_in_study if of_zoo(arguments) else scored_here
    about = card_of(arguments, read_project())
    print(json.dumps(about, indent=2, sort_keys=True) if arguments.json else card_text.text(about))
    if arguments.out:
        write_json(arguments.out, about)
