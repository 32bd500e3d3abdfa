"""What a score costs: CPU seconds, memory, and the images it has to forward; prints a table."""

from __future__ import annotations

import sys
import tracemalloc
from pathlib import Path
from time import process_time

# As a script this file's folder leads the path, where its siblings' names would hide modules.
sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != Path(__file__).parent]
sys.path.insert(0, str(Path(__file__).parents[1] / "workflow" / "scripts"))

import numpy as np  # noqa: E402
import polars as pl  # noqa: E402

from stamp.pairs import class_pairs, endpoints, pool, random_pairs  # noqa: E402
from stamp.score import Score, probabilities, score, squared_distances, stamp  # noqa: E402

CLASSES, IMAGES_A_CLASS, PAIRS, RESAMPLES = 1_000, 48, 2_000, 10_000
FEW_RESAMPLES = 50

Rows = tuple[np.ndarray, np.ndarray]


def synthetic_index() -> pl.DataFrame:
    """1,000 classes of 48 images each."""
    number = np.arange(CLASSES * IMAGES_A_CLASS)
    return pl.DataFrame(
        {
            "image": [f"image{i:06d}" for i in number],
            "group": [f"class{i:04d}" for i in number // IMAGES_A_CLASS],
        }
    )


def rows_of(pairs: pl.DataFrame, images: list[str]) -> Rows:
    """Both ends of the pairs as row numbers."""
    place = {image: row for row, image in enumerate(images)}
    return np.array([place[i] for i in pairs["a"]]), np.array([place[i] for i in pairs["b"]])


def loop_bootstrap(distances: list[np.ndarray], pairs: list[Rows], images: int) -> np.ndarray:
    """The same bootstrap, one resample after the other."""
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(FEW_RESAMPLES):
        weights = np.bincount(rng.integers(0, images, images), minlength=images)
        means = [
            np.average(d, weights=weights[a] * weights[b])
            for d, (a, b) in zip(distances, pairs, strict=True)
        ]
        draws.append(stamp(*means))
    return np.array(draws)


def main() -> list[tuple[str, float, str]]:
    """Rows of (what, value, note)."""
    index = synthetic_index()
    start = process_time()
    semantic = class_pairs(index, PAIRS, 0)
    random = random_pairs(endpoints(semantic), PAIRS, 0)
    drawing = process_time() - start
    reused = pool(semantic, random)
    fresh = pool(semantic, random_pairs(index, PAIRS, 0))

    group = dict(zip(index["image"], index["group"], strict=True))
    groups = np.array([int(group[image].removeprefix("class")) for image in reused])
    logits = np.random.default_rng(0).normal(size=(len(reused), CLASSES)).astype(np.float32)
    logits[np.arange(len(reused)), groups] += 6
    within, across = rows_of(semantic, reused), rows_of(random, reused)

    def whole(resamples: int = RESAMPLES) -> Score:
        p = probabilities(logits, "multiclass", 1.3)
        return score(p, within, across, groups, unit="image", resamples=resamples)

    whole(10)
    start = process_time()
    whole()
    cost = process_time() - start
    tracemalloc.start()
    whole()
    memory = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()

    p = probabilities(logits, "multiclass", 1.3)
    distances = [squared_distances(p, *pair) for pair in (within, across)]
    start = process_time()
    loop_bootstrap(distances, [within, across], len(reused))
    loop = (process_time() - start) * RESAMPLES / FEW_RESAMPLES
    start = process_time()
    whole(1)
    rest = process_time() - start

    size = f"{PAIRS} + {PAIRS} pairs, {CLASSES} classes, {RESAMPLES} resamples"
    return [
        ("score, CPU seconds", cost, f"{size}; target: under 1"),
        ("score, peak MB", memory, "allocated while scoring, the logits not counted"),
        (
            "bootstrap, times faster than a loop",
            loop / max(cost - rest, 1e-9),
            f"the loop measured on {FEW_RESAMPLES} resamples and scaled",
        ),
        ("pairs, CPU seconds", drawing, f"drawn from {index.height} images"),
        ("images forwarded, pool reused", len(reused), f"target: at most {2 * PAIRS}"),
        ("images forwarded, fresh pool", len(fresh), f"at most {4 * PAIRS}"),
    ]


if __name__ == "__main__":
    for what, value, note in main():
        print(f"{what:<40} {value:>10.4g}  {note}")
