"""How much faster the statistics kernels are than scipy; run with ``python -m``, prints ratios."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
# As a script this file's folder leads the path, where its name would hide Python's `statistics`.
sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != Path(__file__).parent]
sys.path.insert(0, str(Path(__file__).parents[1] / "workflow" / "scripts"))

import numpy as np  # noqa: E402
from scipy import stats  # noqa: E402
from stamp.correlation import paired_bootstrap, permutation_p  # noqa: E402
from stamp.ranks import Array, mid_ranks  # noqa: E402

MODELS, DRAWS = 44, 10_000
FEW_PERMUTATIONS, FEW_RESAMPLES = 200, 300


def seconds(runs: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """The shortest of several timings of each, taken in turn so that all meet the same machine."""
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(repeats):
        for name, run in runs.items():
            start = perf_counter()
            run()
            best[name] = min(best[name], perf_counter() - start)
    return best


def zoo() -> tuple[Array, Array]:
    """A score and an outcome of as many models as the paper's medical zoo."""
    rng = np.random.default_rng([0, MODELS])
    score = rng.normal(size=MODELS)
    return score, 0.6 * score + rng.normal(size=MODELS)


def scipy_ranked(x: Array, y: Array) -> object:
    """scipy's permutation test at its best: ranked and scaled once, one product for all draws."""
    x_ranks, y_ranks = mid_ranks(x), mid_ranks(y)
    y_ranks = (y_ranks - y_ranks.mean()) / (MODELS * x_ranks.std() * y_ranks.std())

    def statistic(sample: Array, axis: int = -1) -> Array:
        return np.tensordot(sample, y_ranks, axes=(axis, 0))

    return stats.permutation_test(
        (x_ranks,), statistic, permutation_type="pairings", vectorized=True, n_resamples=DRAWS,
        rng=np.random.default_rng(0),
    )  # fmt: skip


def scipy_vectorised(x: Array, y: Array) -> object:
    """scipy's permutation test of a vectorised Spearman's rho that ranks what it is given."""

    def statistic(sample: Array, axis: int = -1) -> Array:
        return stats.pearsonr(
            stats.rankdata(sample, axis=axis), stats.rankdata(y)[None], axis=axis
        ).statistic

    return stats.permutation_test(
        (x,), statistic, permutation_type="pairings", vectorized=True, n_resamples=DRAWS,
        rng=np.random.default_rng(0),
    )  # fmt: skip


def scipy_spearmanr(x: Array, y: Array) -> object:
    """scipy's permutation test as its documentation shows it for spearmanr."""
    return stats.permutation_test(
        (x,), lambda sample: stats.spearmanr(sample, y).statistic, permutation_type="pairings",
        vectorized=False, n_resamples=FEW_PERMUTATIONS, rng=np.random.default_rng(0),
    )  # fmt: skip


def bootstrap_loop(x: Array, y: Array) -> list[float]:
    """The plain loop: draw models, call spearmanr."""
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(FEW_RESAMPLES):
        chosen = rng.integers(MODELS, size=MODELS)
        draws.append(stats.spearmanr(x[chosen], y[chosen]).statistic)
    return draws


def main() -> list[tuple[str, float, str]]:
    """Rows of (what, ratio, note); a ratio above 1 says how many times faster we are."""
    x, y = zoo()
    fast = seconds(
        {
            "permutation": lambda: permutation_p(x, y, DRAWS),
            "bootstrap": lambda: paired_bootstrap(x, y, DRAWS),
            "ranked": lambda: scipy_ranked(x, y),
        },
        20,
    )
    slow = seconds(
        {
            "vectorised": lambda: scipy_vectorised(x, y),
            "spearmanr": lambda: scipy_spearmanr(x, y),
            "loop": lambda: bootstrap_loop(x, y),
        },
        3,
    )
    plain = slow["spearmanr"] * DRAWS / FEW_PERMUTATIONS
    loop = slow["loop"] * DRAWS / FEW_RESAMPLES
    test = f"{DRAWS:,}-permutation Spearman at n={MODELS} vs scipy's permutation_test"
    return [
        row(f"{test}, vectorised rho", fast["permutation"], slow["vectorised"], "target 5"),
        row(
            f"{test}, ranked beforehand",
            fast["permutation"],
            fast["ranked"],
            "scipy's best case: little but its shuffling is left",
        ),
        row(
            f"{test}, spearmanr",
            fast["permutation"],
            plain,
            f"scipy scaled from {FEW_PERMUTATIONS}; target 500",
        ),
        row(
            f"{DRAWS:,} paired bootstrap resamples at n={MODELS} vs a loop over spearmanr",
            fast["bootstrap"],
            loop,
            f"loop scaled from {FEW_RESAMPLES}; target 40",
        ),
    ]


def row(what: str, ours: float, theirs: float, note: str) -> tuple[str, float, str]:
    """One comparison, with both times in its note."""
    return what, theirs / ours, f"{ours * 1e3:.1f} ms vs {theirs * 1e3:,.1f} ms; {note}"


if __name__ == "__main__":
    for what, ratio, note in main():
        print(f"{ratio:8.1f}x  {what} ({note})")
