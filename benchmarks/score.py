"""What a score costs: CPU seconds, memory, and the images it has to forward."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import numpy as np
import polars as pl

from benchmarks.row import Row
from benchmarks.timing import alternate
from stamp.data.pairs import class_pairs, endpoints, pool, random_pairs
from stamp.scoring.pool_pairs import PairDesign, PoolPairs
from stamp.scoring.score import Score, ScoreSettings, score
from stamp.scoring.stamp import probabilities, squared_distances, stamp

CLASSES, IMAGES_A_CLASS, PAIRS, RESAMPLES = 1_000, 48, 2_000, 10_000
FEW_RESAMPLES = 50
ROUNDS = 5

Rows = tuple[np.ndarray, np.ndarray]


def synthetic_index() -> pl.DataFrame:
    """1,000 classes of 48 images each."""
    number = np.arange(CLASSES * IMAGES_A_CLASS)
    return pl.DataFrame(
        {
            "image": [f"image{i:06d}" for i in number],
            "group": [f"class{i:04d}" for i in number // IMAGES_A_CLASS],
            "label": number // IMAGES_A_CLASS,
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


def separated_logits(images: list[str], group: dict[str, str]) -> tuple[np.ndarray, np.ndarray]:
    """Logits that favour each image's class, and the class numbers."""
    groups = np.array([int(group[image].removeprefix("class")) for image in images])
    logits = np.random.default_rng(0).normal(size=(len(images), CLASSES)).astype(np.float32)
    logits[np.arange(len(images)), groups] += 6
    return logits, groups


def peak(run: Callable[[], object]) -> float:
    """The most megabytes that a run holds at once."""
    tracemalloc.start()
    run()
    most = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return most


def main() -> list[Row]:
    """The cost of a score of 2,000 + 2,000 pairs over 1,000 classes, and of its pairs."""
    index = synthetic_index()
    semantic = class_pairs(index, PAIRS, 0)
    random = random_pairs(endpoints(semantic), PAIRS, 0)
    reused = pool(semantic, random)
    fresh = pool(semantic, random_pairs(index, PAIRS, 0))
    group = dict(zip(index["image"], index["group"], strict=True))
    logits, groups = separated_logits(reused, group)
    within, across = rows_of(semantic, reused), rows_of(random, reused)
    p = probabilities(logits, "multiclass", 1.3)
    distances = [squared_distances(p, *pair) for pair in (within, across)]

    units = np.arange(len(reused))
    pairs = PoolPairs({"class": within, "random": across}, units, groups, PairDesign("class"))

    def whole(estimator: str = "sampled", resamples: int = RESAMPLES) -> Score:
        outputs = probabilities(logits, "multiclass", 1.3)
        drawn = ("class", "different_group", PAIRS, True)
        how = ScoreSettings("multiclass", [], *drawn, resamples, 0.95, 0, estimator=estimator)
        return score(outputs, pairs, "class", how)

    times = alternate(
        {
            "sampled": whole,
            "exact": lambda: whole("exact"),
            "rest": lambda: whole(resamples=1),
            "loop": lambda: loop_bootstrap(distances, [within, across], len(reused)),
            "pairs": lambda: random_pairs(endpoints(class_pairs(index, PAIRS, 0)), PAIRS, 0),
        },
        ROUNDS,
    )
    bootstrap = times["sampled"].cpu - times["rest"].cpu
    loop = times["loop"].cpu * RESAMPLES / FEW_RESAMPLES
    size = f"{PAIRS:,} + {PAIRS:,} pairs, {CLASSES:,} classes, {RESAMPLES:,} resamples"
    exact = f"all pairs of {len(reused):,} images, {CLASSES:,} classes, {RESAMPLES:,} resamples"
    held = "allocated while scoring, without the logits"
    return [
        Row("sampled score with its interval", times["sampled"].cpu, "CPU s", "< 1 CPU s", size),
        Row("exact score with its interval", times["exact"].cpu, "CPU s", "", exact),
        Row("sampled score, peak memory", peak(whole), "MB", "", held),
        Row("exact score, peak memory", peak(lambda: whole("exact")), "MB", "", held),
        Row(
            "bootstrap of a sampled score, times faster: than a loop",
            loop / bootstrap,
            "x",
            "",
            f"{bootstrap:.2f} s vs {loop:.1f} CPU s, scaled from {FEW_RESAMPLES} resamples",
        ),
        Row("drawing the pairs", times["pairs"].cpu, "CPU s", "", f"from {index.height:,} images"),
        Row("images forwarded, pool reused", len(reused), "", f"≤ {2 * PAIRS:,}", f"N={PAIRS:,}"),
        Row("images forwarded, fresh pool", len(fresh), "", f"≤ {4 * PAIRS:,}", f"N={PAIRS:,}"),
    ]
