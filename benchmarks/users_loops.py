"""What users run instead of `pixels` and `logits`: timm's validation loop, and a DataLoader's.

Both are written as their documentation shows them, one process per model, outputs kept in a file.
CPU seconds of whole processes with their workers: imports, weights, decoding, forward passes.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image

from benchmarks import ROOT
from benchmarks.row import Row

ARCH, CLASSES, MODELS, COUNTS = "mobilenetv3_small_050", 10, 8, (1, 4, 8)
IMAGES, WIDTH, HEIGHT = 500, 500, 375  # about an ImageNet photograph
WORKERS, THREADS = 2, "1"
GOALS = {1: "≥ 1.2", 4: "", 8: "≥ 2.5"}
DECLARED: list[object] = []  # lasts as long as the process
HOW = {"size": 224, "channels": 3, "interpolation": "bicubic", "crop": 0.875}


def write_images(folder: Path) -> None:
    """Colour JPEGs as smooth and noisy as photographs, in one folder per class."""
    rng = np.random.default_rng(0)
    for number in range(IMAGES):
        place = folder / f"class{number % CLASSES}"
        place.mkdir(parents=True, exist_ok=True)
        layers = [(9, 12, 70.0, 128.0), (60, 80, 25.0, 0.0)]
        pixels = rng.normal(0, 4, (HEIGHT, WIDTH, 3))
        for rows, columns, spread, middle in layers:
            coarse = rng.normal(middle, spread, (rows, columns, 3)).clip(0, 255).astype(np.uint8)
            pixels += Image.fromarray(coarse).resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC)
        picture = Image.fromarray(pixels.clip(0, 255).astype(np.uint8))
        picture.save(place / f"{number:04d}.jpg", quality=90)


def write_networks(folder: Path) -> None:
    """Networks of one architecture with random weights."""
    import torch
    from safetensors.torch import save_file

    from stamp.models.torchvision_ops import timm

    for number in range(MODELS):
        torch.manual_seed(number)
        state = timm.create_model(ARCH, num_classes=CLASSES).state_dict()
        save_file(state, folder / f"{number}.safetensors")


def declare_operators() -> None:
    """Let torchvision be imported where it is of another build than torch, and so has none.

    As ``stamp.models.torchvision_ops`` does, which also puts off torch's compiler: users don't.
    """
    import torch

    with suppress(OSError):
        for file in Path(str(find_spec("torchvision").origin)).parent.glob("_C*.so"):
            torch.ops.load_library(str(file))
    if not hasattr(torch.ops.torchvision, "nms"):
        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        DECLARED.append(library)


def timm_loop(images: Path, weights: Path, out: Path) -> None:
    """The loop of timm's ``validate.py`` on a CPU: its data set, its loader, its batch of 256."""
    declare_operators()
    import timm
    import torch
    from timm.data import create_dataset, create_loader, resolve_data_config

    model = timm.create_model(ARCH, num_classes=CLASSES, checkpoint_path=str(weights)).eval()
    config = resolve_data_config({}, model=model)
    loader = create_loader(
        create_dataset("", root=str(images)),
        input_size=config["input_size"],
        batch_size=256,
        use_prefetcher=False,
        interpolation=config["interpolation"],
        mean=config["mean"],
        std=config["std"],
        num_workers=WORKERS,
        crop_pct=config["crop_pct"],
    )
    with torch.inference_mode():
        np.save(out, np.concatenate([model(batch).numpy() for batch, _ in loader]))


def torchvision_loop(images: Path, weights: Path, out: Path) -> None:
    """A DataLoader over torchvision's ImageFolder with the transforms of an ImageNet example."""
    declare_operators()
    import timm
    import torch
    from torchvision import datasets, transforms

    model = timm.create_model(ARCH, num_classes=CLASSES, checkpoint_path=str(weights)).eval()
    steps = [
        transforms.Resize(256, transforms.InterpolationMode.BICUBIC),
        transforms.CenterCrop(224),
        transforms.ToTensor(),
        transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    ]
    data = datasets.ImageFolder(str(images), transforms.Compose(steps))
    loader = torch.utils.data.DataLoader(data, batch_size=128, num_workers=WORKERS)
    with torch.inference_mode():
        np.save(out, np.concatenate([model(batch).numpy() for batch, _ in loader]))


def cache_pixels(images: Path, weights: Path, out: Path) -> None:
    """What a job of the rule ``pixels`` does; ``weights`` are none of its business."""
    from stamp.config.preprocessing import Preprocessing
    from stamp.images.pixels import ImageFiles, write_cache

    paths = sorted(str(path) for path in images.rglob("*.jpg"))
    view = ImageFiles([Path(path).stem for path in paths], paths, "benchmark")
    write_cache(out, out.with_suffix(".json"), view, Preprocessing(**HOW), WORKERS)


def our_logits(images: Path, weights: Path, out: Path) -> None:
    """What a job of the rule ``logits`` does, with the pixels beside the images."""
    from stamp.images.pixel_cache import PixelCache
    from stamp.inference.logits import Execution, extract_logits
    from stamp.models.loaders.registry import load_named

    ids = [path.stem for path in sorted(images.rglob("*.jpg"))]
    cache = PixelCache(images.with_suffix(".npy"), images.with_suffix(".json"), ids)
    block = {"source": "timm", "name": ARCH, "file": str(weights), "preprocessing": HOW}
    classes = [str(number) for number in range(CLASSES)]
    loaded = load_named("benchmark", block, classes, None)
    metadata = {"model": "benchmark", "view": "benchmark"}
    extract_logits(out, cache, loaded, classes, metadata, Execution("cpu", int(THREADS)))
    os._exit(0)  # as a job ends: see `stamp.core.errors.run`


WAYS: dict[str, Callable[[Path, Path, Path], None]] = {
    one.__name__: one for one in (timm_loop, torchvision_loop, cache_pixels, our_logits)
}


def cpu_seconds(way: str, *paths: Path) -> float:
    """CPU seconds of a new process with all that it starts."""
    code = f"import sys; from pathlib import Path; from benchmarks.users_loops import {way}; "
    code += f"{way}(*map(Path, sys.argv[1:]))"
    path = os.pathsep.join([str(ROOT), str(ROOT / "workflow" / "scripts")])
    variables = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": THREADS}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-W", "ignore", "-c", code, *map(str, paths)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measured(folder: Path) -> tuple[float, dict[str, list[float]]]:
    """CPU seconds of the cache, and of every model by each way, the ways in turn."""
    from safetensors.numpy import load_file

    images, out = folder / "images", folder / "out.npy"
    write_images(images)
    write_networks(folder)
    cache = cpu_seconds("cache_pixels", images, folder, images.with_suffix(".npy"))
    seconds: dict[str, list[float]] = {way: [] for way in WAYS if way != "cache_pixels"}
    for number in range(MODELS):
        found = {}
        for way, each in seconds.items():
            each.append(cpu_seconds(way, images, folder / f"{number}.safetensors", out))
            found[way] = load_file(out)["logits"] if way == "our_logits" else np.load(out)
        np.testing.assert_allclose(found["our_logits"], found["timm_loop"], rtol=1e-3, atol=1e-4)
    return cache, seconds


def main() -> list[Row]:
    """How many times cheaper `pixels` and `logits` are, for one, four and eight models."""
    with TemporaryDirectory() as name:
        cache, seconds = measured(Path(name))
    sums = {way: list(accumulate(each)) for way, each in seconds.items()}
    rows = []
    for way, what in (("timm_loop", "timm's validation"), ("torchvision_loop", "ImageFolder")):
        for count in COUNTS:
            ours, theirs = cache + sums["our_logits"][count - 1], sums[way][count - 1]
            text = f"pixels + logits over {what} loop, {count} model{'s' if count > 1 else ''}"
            note = f"{ours:.1f} vs {theirs:.1f} CPU s; {cache:.1f} of them the cache; {IMAGES} "
            note += f"JPEGs of {WIDTH}x{HEIGHT}, {ARCH} at 224"
            rows.append(Row(text, theirs / ours, "x", GOALS[count], note))
    return rows
