"""Add models to a study's zoo file, after a forward pass of each and a dry run.

A folder of ONNX, TorchScript or checkpoint files, a folder, `.npz` or table of outputs of many
models, and a list of names of timm or of the Hugging Face hub add all of them at once.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from stamp.cli.terminal.arguments import Place, at_least, mapping

if TYPE_CHECKING:
    from stamp.cli.add_model.zoo_entry import Addition

HELP = "add models to a zoo, checked by a forward pass, and say what will be computed"
EXAMPLE = (
    "add-model --study clinic --onnx models/ --mean 0.5 --std 0.25 "
    "--family CNN --objective supervised --regime plain"
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the model is, and what tables say about it."""
    parser.usage = "%(prog)s --study NAME --<kind> WHAT ... [options]"
    parser.add_argument("--study", required=True, help="the study that the model is for")
    parser.add_argument("--key", help="its short name, in files and commands (the file's)")
    kinds = parser.add_argument_group("what it is, one of").add_mutually_exclusive_group(
        required=True
    )
    kinds.add_argument("--timm", metavar="NAME", nargs="+", type=Place,
                       help="timm's names with tags (resnet50.a1_in1k), or a file")  # fmt: skip
    kinds.add_argument("--hf", metavar="REPO", nargs="+", type=Place,
                       help="classifiers of the Hugging Face hub (google/vit-base-patch16-224, "
                       "with @ and a commit if wanted), or a file of them")  # fmt: skip
    kinds.add_argument("--torchxrayvision", metavar="WEIGHTS", help="densenet121-res224-all")
    kinds.add_argument("--checkpoint", metavar="FILE", type=Place,
                       help="weights of a timm architecture, or a folder of them")  # fmt: skip
    kinds.add_argument("--torchscript", metavar="FILE", type=Place,
                       help="as torch.jit.save wrote it, or a folder of them")  # fmt: skip
    kinds.add_argument("--onnx", metavar="FILE", type=Place,
                       help="run by onnxruntime, or a folder of them")  # fmt: skip
    kinds.add_argument("--python", metavar="MODULE:FUNCTION", help="needs allow_code: true")
    kinds.add_argument("--logits", metavar="FILE", type=Place,
                       help="outputs: Parquet, CSV or npy; of many models: a folder, an npz, or a "
                       "table with a column 'model'")  # fmt: skip
    _texts(parser)
    _about_the_model(parser)
    parser.add_argument("--zoo", help="zoo file, where the study has several")
    parser.add_argument("--dry-run", action="store_true", help="write nothing")


def _texts(parser: argparse.ArgumentParser) -> None:
    texts = parser.add_argument_group("what tables and figures say about it")
    texts.add_argument("--label", help="its name (the key, if absent)")
    for name in ("family", "objective", "regime"):
        texts.add_argument(f"--{name}", metavar="NAME")
    texts.add_argument("--about", metavar="TABLE", type=Place,
                       help="CSV with the columns model, family, objective, regime, label, or some "
                       "of them, for many models")  # fmt: skip
    texts.add_argument(
        "--trained-on", nargs="*", metavar="SPLIT", help="source splits it was trained on"
    )
    texts.add_argument(
        "--contamination", nargs="*", metavar="DATASET", help="target data it was trained on"
    )


def _about_the_model(parser: argparse.ArgumentParser) -> None:
    model = parser.add_argument_group("about the model")
    model.add_argument("--arch", help="timm architecture of --checkpoint")
    model.add_argument("--arch-args", "--args", type=mapping, metavar="YAML",
                       help="of the architecture or function: {layers: [1, 1, 1, 1]}")  # fmt: skip
    model.add_argument("--prefix", help="what the names of its weights in --checkpoint begin with")
    model.add_argument(
        "--file", type=Place, help="weights file of --timm, --torchxrayvision or --python"
    )
    model.add_argument("--revision", help="commit of the hub's repository of --timm or --hf")
    model.add_argument("--labels", type=mapping, metavar="YAML",
                       help="classes of the study by the names in the id2label of --hf, where they "
                       "differ: {Golden Retriever: dog}")  # fmt: skip
    model.add_argument("--output", metavar="NAME", help="of --onnx, where it has several")
    model.add_argument("--outputs", nargs="+", metavar="CLASS", help="its outputs, in order")
    model.add_argument("--probabilities", action=argparse.BooleanOptionalAction,
                       help="whether it ends in softmax or sigmoid")  # fmt: skip
    model.add_argument("--parameters", type=at_least(1), help="how many, where a file doesn't tell")
    pixels = parser.add_argument_group("pixels, where they are not timm's or the study's")
    pixels.add_argument("--pixels-size", type=at_least(1), metavar="N")
    pixels.add_argument("--channels", type=int, choices=(1, 3))
    pixels.add_argument("--interpolation", choices=("nearest", "bilinear", "bicubic", "lanczos"))
    pixels.add_argument("--crop", type=float, metavar="SHARE")
    pixels.add_argument("--mean", nargs="+", type=float)
    pixels.add_argument("--std", nargs="+", type=float)


def run(arguments: argparse.Namespace) -> None:
    """Show the entries, the checks and the plan; write the entries unless it is a dry run."""
    from stamp.cli.add_model.load_block import BLOCKS, load_block
    from stamp.cli.add_model.several import key_of, named_models, separated
    from stamp.cli.add_model.zoo_entry import add, target_of, write
    from stamp.cli.add_model.zoo_texts import entry_texts
    from stamp.core.errors import UserError
    from stamp.report.card import making

    kind = next(kind for kind in BLOCKS if getattr(arguments, kind) is not None)
    target = target_of(arguments.study, arguments.zoo)
    given = _given(arguments, kind)
    with separated(kind, getattr(arguments, kind), arguments.dry_run) as values:
        if len(values) == 1:
            models = {arguments.key or key_of(values[0]): values[0]}
        elif arguments.key or arguments.label:
            raise UserError(
                f"--key and --label are for one model, but --{kind} names {len(values)}: their "
                "keys are the names of the files; give labels by --about"
            )
        else:
            models = named_models(values)
        texts = entry_texts(arguments, list(models))
        pixels = target.document["preprocessing"]
        entries = {
            key: {**texts[key], "load": load_block(kind, value, dict(given), pixels)}
            for key, value in models.items()
        }
        addition = add(target, entries)
        _tell(addition, arguments.dry_run)
        if arguments.dry_run:
            print(f"nothing was written ({target.file})")
            return
        write(target, addition)
    print(f"written to {target.file}; this runs it:\n    {making(target.study)}")


def _given(arguments: argparse.Namespace, kind: str) -> dict[str, Any]:
    """What the command line says of the models' load blocks."""
    pixels = {
        "size": arguments.pixels_size,
        "channels": arguments.channels,
        "interpolation": arguments.interpolation,
        "crop": arguments.crop,
    }
    told = {key: value for key, value in pixels.items() if value is not None}
    names = (
        "arch", "arch_args", "prefix", "file", "revision", "labels", "output", "outputs",
        "parameters", "mean", "std",
    )  # fmt: skip
    given: dict[str, Any] = {name: getattr(arguments, name) for name in names}
    given |= {"probabilities": arguments.probabilities, "preprocessing": told}
    if kind in ("timm", "python"):
        given["args"] = given.pop("arch_args")
    return given


def _tell(addition: Addition, dry_run: bool) -> None:
    """One model's entry whole; of several, what the check of each showed."""
    single = len(addition.checked) == 1
    if single or dry_run:
        print(addition.entries)
    for key, lines in addition.checked.items():
        for line in lines:
            print(line if single else f"{key}: {line}")
    print("what will be computed:")
    for line in addition.planned:
        print(f"  {line}")
