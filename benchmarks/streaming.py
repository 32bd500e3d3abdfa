"""Peak memory and disk of a streamed target of few and of many images, each in its own process."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
from PIL import Image

from benchmarks.child import python
from benchmarks.memory import BLOCK, CHANNELS, CLASSES, SIZE, resident
from benchmarks.row import Row

FEW, MANY, FILES = 10_000, 60_000, 100
WHOLE_DOMAINS = 15 * 5  # of ImageNet-C
WHOLE = WHOLE_DOMAINS * 50_000  # images
CHILD = """
import sys
from pathlib import Path
from benchmarks.streaming import peak
print(*peak(Path(sys.argv[1])))
"""


def write_view(folder: Path, images: int) -> None:
    """A view of many rows over a hundred JPEG files, named as long as ImageNet-C's."""
    rng = np.random.default_rng(0)
    for number in range(FILES):
        pixels = rng.integers(0, 256, size=(SIZE, SIZE, CHANNELS), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"ILSVRC2012_val_{number:08d}.JPEG")
    names = [f"ILSVRC2012_val_{number % FILES:08d}.JPEG" for number in range(images)]
    pl.DataFrame(
        {
            "image": [f"gaussian_noise-3/ILSVRC2012_val_{number:08d}" for number in range(images)],
            "path": [str(folder / name) for name in names],
            "domain": ["gaussian_noise-3"] * images,
        }
    ).write_parquet(folder / "view.parquet", row_group_size=10_000)


def peak(folder: Path) -> tuple[float, float, int]:
    """Resident MB before the streaming and at its peak, and the bytes that were written."""
    from stamp.config.preprocessing import Preprocessing
    from stamp.inference.logits import Execution
    from stamp.inference.predictions import StreamedTarget, extract_predictions
    from stamp.models.loaders.train import network

    classes = [str(number) for number in range(CLASSES)]
    loaded = network(BLOCK, classes)
    before = resident("VmRSS")
    target, how = folder / "predictions.safetensors", Preprocessing(SIZE, CHANNELS)
    streamed = StreamedTarget(folder / "view.parquet", how, CLASSES, np.arange(CLASSES))
    metadata = {"model": "benchmark", "view": "benchmark"}
    extract_predictions(target, streamed, loaded, metadata, Execution("cpu", threads=1))
    return before, resident("VmHWM"), target.stat().st_size


def main() -> list[Row]:
    """Both peaks, their ratio, and the disk that a model's predictions on ImageNet-C take."""
    rows, peaks, written = [], {}, {}
    for images in (FEW, MANY):
        with TemporaryDirectory() as name:
            write_view(Path(name), images)
            before, peaks[images], written[images] = map(float, python(CHILD, name).split())
        note = f"{before:.0f} MB before it"
        rows.append(Row(f"peak memory, {images:,} streamed images", peaks[images], "MB", "", note))
    ratio, growth = peaks[MANY] / peaks[FEW], peaks[MANY] - peaks[FEW]
    what = f"peak memory, {MANY:,} over {FEW:,} streamed images"
    each = (written[MANY] - written[FEW]) / (MANY - FEW)
    sample = written[FEW] - each * FEW  # the logits of some images of a domain
    disk = (each * WHOLE + sample * WHOLE_DOMAINS) / 1e6
    note = f"{each:.1f} bytes per image, {WHOLE:,} images; {sample / 1e6:.2f} MB per domain"
    return [
        *rows,
        Row(what, ratio, "x", "about 1", f"{growth:+.1f} MB"),
        Row("predictions of one model on all of ImageNet-C", disk, "MB", "< 150 MB", note),
    ]
