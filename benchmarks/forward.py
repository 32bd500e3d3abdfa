"""The forward stage against a bare loop over normalised batches that are already in memory."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import torch
import yaml

from benchmarks import ROOT
from benchmarks.child import python
from benchmarks.row import Row
from benchmarks.synthetic import write_cache
from benchmarks.timing import alternate
from stamp.images.pixel_cache import PixelCache
from stamp.inference.logits import BATCH, Execution, Forward, batches, extract_logits
from stamp.models.loaders.train import network
from stamp.models.weights import write_weights

STARTS = 3
START_UP = """
import json, sys
from pathlib import Path
from time import perf_counter
times = [perf_counter()]
import stamp.inference.logits
times.append(perf_counter())
import stamp.models.loaders.train
times.append(perf_counter())
block, classes, weights = json.loads(sys.argv[1]), json.loads(sys.argv[2]), Path(sys.argv[3])
stamp.models.loaders.train.load(block, classes, weights)
times.append(perf_counter())
print(json.dumps([after - before for before, after in zip(times, times[1:])]))
"""


def embedded(key: str) -> dict[str, Any]:
    """The ``load`` block of a model of the embedded phantom zoo."""
    zoo = yaml.safe_load((ROOT / "config" / "zoo" / "phantom.yaml").read_text())
    return {**zoo[key]["load"], "preprocessing": {"size": 48, "channels": 1}}


def in_memory(forward: Forward, cache: PixelCache) -> list[torch.Tensor]:
    """Every batch as the module gets it inside the forward stage: normalised, channels last."""
    seen: list[torch.Tensor] = []
    hook = forward.module.register_forward_pre_hook(lambda _, given: seen.append(given[0].clone()))
    for batch in batches(cache, BATCH, forward.device):
        forward(batch)
    hook.remove()
    assert all(each.is_contiguous(memory_format=torch.channels_last) for each in seen)
    return seen


def throughput(
    what: str, block: Mapping[str, Any], classes: int, images: int, rounds: int
) -> list[Row]:
    """The forward stage's images a second over the bare loop's, both with one thread."""
    names = [str(number) for number in range(classes)]
    size, channels = (block["preprocessing"][key] for key in ("size", "channels"))
    torch.manual_seed(0)
    loaded = network(block, names)
    forward = Forward(loaded, "cpu")
    with TemporaryDirectory() as name:
        folder = Path(name)
        cache = write_cache(folder, images, size, channels)
        held = in_memory(forward, cache)

        @torch.inference_mode()
        def bare() -> None:
            for batch in held:
                forward.module(batch)

        def stage() -> None:
            metadata = {"model": what, "view": "benchmark"}
            extract_logits(folder / "out", cache, loaded, names, metadata, Execution("cpu"))

        with redirect_stderr(StringIO()):  # progress bars
            times = alternate({"bare": bare, "stage": stage}, rounds)
    walls = [a / b for a, b in zip(times["bare"].walls, times["stage"].walls, strict=True)]
    cpus = [a / b for a, b in zip(times["bare"].cpus, times["stage"].cpus, strict=True)]
    ours, theirs = (images / times[key].wall for key in ("stage", "bare"))
    note = (
        f"{ours:,.0f} vs {theirs:,.0f} images/s; {median(cpus):.2f} by CPU time; "
        f"{size}x{size}x{channels}, {images:,} images in batches of {BATCH}, {rounds} rounds"
    )
    return [Row(f"forward stage over bare loop, {what}", median(walls), "x", "≥ 0.9", note)]


def start_up(what: str, block: Mapping[str, Any], classes: Sequence[str]) -> list[Row]:
    """Seconds before the first batch, in a new process: imports, then the model and its weights."""
    with TemporaryDirectory() as name:
        weights = Path(name) / "weights.safetensors"
        write_weights(network(block, classes).module, weights, {})
        arguments = (json.dumps(block), json.dumps(classes), str(weights))
        seconds = [json.loads(python(START_UP, *arguments)) for _ in range(STARTS)]
    torch_s, timm_s, load_s = (median(each) for each in zip(*seconds, strict=True))
    return [
        Row("start-up: importing torch and the forward stage", torch_s, "s"),
        Row("start-up: importing timm and the loader", timm_s, "s"),
        Row(f"start-up: building {what} and reading its weights", load_s, "s"),
    ]


def main() -> list[Row]:
    """A common network at a common size, and an embedded one, where overhead shows most."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    resnet = {"arch": "resnet18", "preprocessing": {"size": 112, "channels": 3}}
    small = embedded("resnet-plain")
    classes = [str(number) for number in range(1_000)]
    rows = [
        *throughput("ResNet-18", resnet, classes=len(classes), images=2 * BATCH, rounds=7),
        *throughput("embedded ResNet", small, classes=8, images=16 * BATCH, rounds=25),
        *start_up("ResNet-18", resnet, classes),
    ]
    torch.set_num_threads(before)
    return rows
