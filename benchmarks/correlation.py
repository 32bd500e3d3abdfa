"""How much faster the statistics kernels are than scipy."""

from __future__ import annotations

import numpy as np
from scipy import stats

from benchmarks.row import Row
from benchmarks.timing import alternate
from stamp.stats.correlations.correlation import paired_bootstrap, permutation_p
from stamp.stats.ranks import Array, mid_ranks

MODELS, DRAWS = 44, 10_000
FEW_PERMUTATIONS, FEW_RESAMPLES = 200, 300
ROUNDS = 7


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


def main() -> list[Row]:
    """Ratios above 1 say how many times faster ours is."""
    x, y = zoo()
    times = alternate(
        {
            "permutation": lambda: permutation_p(x, y, DRAWS),
            "bootstrap": lambda: paired_bootstrap(x, y, DRAWS),
            "ranked": lambda: scipy_ranked(x, y),
            "vectorised": lambda: scipy_vectorised(x, y),
            "spearmanr": lambda: scipy_spearmanr(x, y),
            "loop": lambda: bootstrap_loop(x, y),
        },
        ROUNDS,
    )
    ours, bootstrap = times["permutation"].wall, times["bootstrap"].wall
    plain = times["spearmanr"].wall * DRAWS / FEW_PERMUTATIONS
    loop = times["loop"].wall * DRAWS / FEW_RESAMPLES
    test = f"permutation test of Spearman, n={MODELS}, times faster"
    return [
        row(f"{test}: than scipy, vectorised rho", ours, times["vectorised"].wall, "≥ 5"),
        row(f"{test}: than scipy, ranked before", ours, times["ranked"].wall, "", "its best case"),
        row(
            f"{test}: than scipy, spearmanr",
            ours,
            plain,
            "≥ 500",
            f"scaled from {FEW_PERMUTATIONS}",
        ),
        row(
            f"paired bootstrap of Spearman, n={MODELS}, times faster: than a loop over spearmanr",
            bootstrap,
            loop,
            "≥ 40",
            f"scaled from {FEW_RESAMPLES}",
        ),
    ]


def row(what: str, ours: float, theirs: float, target: str, note: str = "") -> Row:
    """One comparison of 10,000 draws, with both times in its note."""
    times = f"{ours * 1e3:.1f} ms vs {theirs * 1e3:,.1f} ms for {DRAWS:,} draws"
    return Row(what, theirs / ours, "x", target, f"{times}; {note}" if note else times)
