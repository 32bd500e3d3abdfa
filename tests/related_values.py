"""Made-up values of models that correlate with each other."""

import numpy as np
from scipy import stats


def related(seed, n=30, strength=0.7, rows=2):
    rng = np.random.default_rng(seed)
    first = rng.normal(size=n)
    others = [strength * first + rng.normal(size=n) for _ in range(rows - 1)]
    return np.stack([first, *others])


def residual_partial(x, y, controls):
    """The partial correlation by regression of ranks, straight from its definition."""
    design = np.column_stack([np.ones(len(x)), *(stats.rankdata(row) for row in controls)])
    left = []
    for side in (x, y):
        ranks = stats.rankdata(side)
        left.append(ranks - design @ np.linalg.lstsq(design, ranks, rcond=None)[0])
    return stats.pearsonr(*left).statistic
