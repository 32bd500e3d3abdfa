"""Add a model to a study's zoo file, after a forward pass and a dry run."""

from __future__ import annotations

import argparse

from stamp.cli.arguments import at_least, mapping

HELP = "add a model to a zoo: its entry, checked by a forward pass, and what will be computed"


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the model is, and what tables say about it."""
    parser.add_argument("--study", required=True, help="the study that the model is for")
    parser.add_argument("--key", required=True, help="its short name, in files and commands")
    kinds = parser.add_argument_group("what it is, one of").add_mutually_exclusive_group(
        required=True
    )
    kinds.add_argument("--timm", metavar="NAME", help="timm's name with tag: resnet50.a1_in1k")
    kinds.add_argument("--torchxrayvision", metavar="WEIGHTS", help="densenet121-res224-all")
    kinds.add_argument("--checkpoint", metavar="FILE", help="weights of a timm architecture")
    kinds.add_argument("--torchscript", metavar="FILE", help="as torch.jit.save wrote it")
    kinds.add_argument("--onnx", metavar="FILE", help="run by onnxruntime")
    kinds.add_argument("--python", metavar="MODULE:FUNCTION", help="needs allow_code: true")
    kinds.add_argument("--logits", metavar="FILE", help="its outputs: Parquet, CSV or npy")
    texts = parser.add_argument_group("what tables and figures say about it")
    texts.add_argument("--label", help="its name (the key, if absent)")
    for name in ("family", "objective", "regime"):
        texts.add_argument(f"--{name}", required=True)
    texts.add_argument(
        "--trained-on", nargs="*", metavar="SPLIT", help="source splits it was trained on"
    )
    texts.add_argument(
        "--contamination", nargs="*", metavar="DATASET", help="target data it was trained on"
    )
    model = parser.add_argument_group("about the model")
    model.add_argument("--arch", help="timm architecture of --checkpoint")
    model.add_argument("--arch-args", "--args", type=mapping, metavar="YAML",
                       help="of the architecture or function: {layers: [1, 1, 1, 1]}")  # fmt: skip
    model.add_argument("--prefix", help="what the names of its weights in --checkpoint begin with")
    model.add_argument("--file", help="weights file of --timm, --torchxrayvision or --python")
    model.add_argument("--revision", help="commit of the hub's repository of --timm")
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
    parser.add_argument("--zoo", help="zoo file, where the study has several")
    parser.add_argument("--dry-run", action="store_true", help="write nothing")


def run(arguments: argparse.Namespace) -> None:
    """Show the entry, the check and the plan; write the entry unless it is a dry run."""
    from stamp.cli.add_model.load_block import BLOCKS, load_block
    from stamp.cli.add_model.zoo_entry import add, target_of, write

    kind = next(kind for kind in BLOCKS if getattr(arguments, kind) is not None)
    target = target_of(arguments.study, arguments.zoo)
    pixels = {
        "size": arguments.pixels_size,
        "channels": arguments.channels,
        "interpolation": arguments.interpolation,
        "crop": arguments.crop,
    }
    told = {key: value for key, value in pixels.items() if value is not None}
    names = (
        "arch", "arch_args", "prefix", "file", "revision", "output", "outputs", "parameters",
        "mean", "std",
    )  # fmt: skip
    given = {name: getattr(arguments, name) for name in names}
    given |= {"probabilities": arguments.probabilities, "preprocessing": told}
    if kind in ("timm", "python"):
        given["args"] = given.pop("arch_args")
    block = load_block(kind, getattr(arguments, kind), given, target.document["preprocessing"])
    texts = {name: getattr(arguments, name) for name in ("family", "objective", "regime")}
    entry = {"label": arguments.label or arguments.key, **texts}
    if arguments.trained_on is not None:  # without a split: it has seen none of them
        entry["trained_on"] = arguments.trained_on
    if arguments.contamination:
        entry["contamination"] = arguments.contamination
    addition = add(target, arguments.key, {**entry, "load": block})
    print(addition.entry)
    for line in addition.checked:
        print(line)
    print("what will be computed:")
    for line in addition.planned:
        print(f"  {line}")
    if arguments.dry_run:
        print(f"nothing was written ({target.file})")
        return
    write(target, addition)
    print(f"written to {target.file}; `snakemake --cores 8 --resources gpu=1` runs it")
