"""A streamed target decoded once for several models, against one pass of its own for each."""

from __future__ import annotations

from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import numpy as np
import polars as pl
import torch
from PIL import Image

from benchmarks.row import Row
from stamp.config.preprocessing import Preprocessing
from stamp.images import decoded_images
from stamp.inference.logits import Execution
from stamp.inference.predictions import PredictionRun, PredictionTask, StreamedTarget, stream
from stamp.models.loaded_model import LoadedModel
from stamp.models.torchvision_ops import timm

ARCH, CLASSES, MODELS, IMAGES, SIZE = "mobilenetv3_small_050", 1_000, 8, 384, 224
NORMAL = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
CPU = Execution("cpu", threads=1)


def write_target(folder: Path) -> StreamedTarget:
    """A view of JPEGs at ImageNet-C's size and compression."""
    rng = np.random.default_rng(0)
    paths = [str(folder / f"{number}.jpg") for number in range(IMAGES)]
    for path in paths:
        coarse = rng.integers(0, 256, (56, 56, 3), dtype=np.uint8)
        Image.fromarray(coarse).resize((SIZE, SIZE)).save(path, quality=85)
    ids = [str(number) for number in range(IMAGES)]
    view = folder / "view.parquet"
    pl.DataFrame({"image": ids, "path": paths, "domain": ["d"] * IMAGES}).write_parquet(view)
    return StreamedTarget(view, Preprocessing(SIZE, 3), CLASSES, np.arange(CLASSES))


def runs(folder: Path, streamed: StreamedTarget) -> list[PredictionRun]:
    """Eight networks before their first image."""
    found = []
    for number in range(MODELS):
        torch.manual_seed(number)
        loaded = LoadedModel(timm.create_model(ARCH), *NORMAL)
        target = folder / f"{number}.safetensors"
        task = PredictionTask(target, loaded, {"model": str(number), "view": "benchmark"})
        found.append(PredictionRun(task, streamed, CPU))
    return found


def measured(streamed: StreamedTarget, groups: list[list[PredictionRun]]) -> tuple[float, int]:
    """CPU seconds and decoded images of one pass for each group of models."""
    decode, count = decoded_images.decode, 0

    def counting(*arguments: Any) -> np.ndarray:
        nonlocal count
        count += 1
        return decode(*arguments)

    decoded_images.decode = counting  # type: ignore[assignment]
    began = process_time()
    for group in groups:
        if mistakes := stream(group, streamed, CPU):
            raise RuntimeError(str(mistakes))
        for run in group:
            run.write()
    decoded_images.decode = decode
    return process_time() - began, count


def main() -> list[Row]:
    """Decodes per model, and images a second of CPU time, together over one at a time."""
    with TemporaryDirectory() as name, redirect_stderr(StringIO()):  # progress bars
        folder = Path(name)
        streamed = write_target(folder)
        measured(streamed, [[run] for run in runs(folder, streamed)[:1]])  # warm
        alone, decoded_alone = measured(streamed, [[run] for run in runs(folder, streamed)])
        files = [path.read_bytes() for path in sorted(folder.glob("*.safetensors"))]
        together, decoded = measured(streamed, [runs(folder, streamed)])
        same = files == [path.read_bytes() for path in sorted(folder.glob("*.safetensors"))]
    if not same:
        raise RuntimeError("models that ran together have other predictions than alone")
    images = MODELS * IMAGES
    what = f"{MODELS} models over a streamed target together"
    rates = f"{images / together:,.0f} vs {images / alone:,.0f} images/s of CPU time"
    note = f"{rates}; {IMAGES} JPEGs of {SIZE}x{SIZE}, {ARCH}; the same bytes"
    before = f"{decoded_alone / images:.3g} one model at a time"
    return [
        Row(f"{what}: decodes per image and model", decoded / images, "", "≤ 0.125", before),
        Row(f"{what}, times faster: than one at a time", alone / together, "x", "", note),
    ]
