"""Feeding batches from the pixel cache against decoding and resizing the files each time."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image

from benchmarks.row import Row
from benchmarks.synthetic import write_cache
from benchmarks.timing import alternate
from stamp.config.preprocessing import Preprocessing
from stamp.images.pixel_cache import PixelCache
from stamp.images.pixels import decode
from stamp.inference.logits import BATCH, batches

FILES, SIDE, CACHED = 24, 1024, 1_024
HOW = Preprocessing(size=224, channels=3)
NOISE = 1.0
ROUNDS = 5


def radiograph(seed: int) -> Image.Image:
    """A gray picture about as smooth and noisy as a radiograph, so that it packs as well as one."""
    rng = np.random.default_rng([0, seed])
    smooth = Image.fromarray(rng.uniform(30, 225, (9, 9)).astype(np.float32))
    fine = Image.fromarray(rng.normal(0, 6, (129, 129)).astype(np.float32))
    pixels = sum(
        np.asarray(layer.resize((SIDE, SIDE), Image.Resampling.BICUBIC)) for layer in (smooth, fine)
    )
    noisy = pixels + rng.normal(0, NOISE, (SIDE, SIDE))
    return Image.fromarray(noisy.clip(0, 255).astype(np.uint8))


def feed(cache: PixelCache) -> int:
    """All batches of the cache, as the forward stage gets them."""
    return sum(len(batch) for batch in batches(cache, BATCH, "cpu"))


def feed_from_disk(cache: PixelCache) -> int:
    """The same after the system was told to forget the file."""
    with open(cache.path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return feed(cache)


def main() -> list[Row]:
    """Images a second from the cache over images a second from PNG files, one thread each."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        paths = [str(folder / f"{number}.png") for number in range(FILES)]
        for number, path in enumerate(paths):
            radiograph(number).save(path)
        size = sum(Path(path).stat().st_size for path in paths) / FILES / 1e3
        cache = write_cache(folder / "cache", CACHED, HOW.size, HOW.channels)
        times = alternate(
            {
                "feed": lambda: feed(cache),
                "disk": lambda: feed_from_disk(cache),
                "decode": lambda: [decode(path, HOW) for path in paths],
            },
            ROUNDS,
        )
    decoded = FILES / times["decode"].wall
    png = f"{SIDE}x{SIDE} PNGs of {size:.0f} kB"
    rows = []
    for key, what, target in (
        ("feed", "pixel cache in memory", "≥ 20"),
        ("disk", "pixel cache from disk", ""),
    ):
        fed = CACHED / times[key].wall
        note = (
            f"{fed:,.0f} vs {decoded:,.0f} images/s; {png} to {HOW.size}x{HOW.size}x{HOW.channels}"
        )
        rows.append(
            Row(f"{what}, times faster: than decoding PNGs", fed / decoded, "x", target, note)
        )
    return rows
