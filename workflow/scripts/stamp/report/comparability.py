"""Whether models may be compared: what is said where they were pretrained on different data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stamp.report.wording import MINUS, RHO
from stamp.stats.correlations.correlation import FEWEST, known_spearman

WENT_WRONG = (
    "Comparing models of different pretraining data went wrong in the evidence: among models "
    f"trained on more data stress accuracy had a partial {RHO} of {MINUS}0.21, among all 0.40. "
    "Read scores within one kind of pretraining."
)


def warning(pretraining: Mapping[str, str]) -> str:
    """One sentence where models (by key) have different pretraining data, with what it is about.

    Empty where all have the same.
    """
    counts = Counter(pretraining.values()).most_common()
    if len(counts) < 2:
        return ""
    kinds = ", ".join(f"{name}: {count}" for name, count in counts)
    return f"The models were pretrained on different data ({kinds}). {WENT_WRONG}"


def strata(
    pretraining: Mapping[str, str], predictors: Mapping[str, np.ndarray], truth: np.ndarray
) -> list[dict[str, Any]]:
    """For each kind of pretraining the number of models, and rho of each predictor with the truth.

    Arrays have one number per model of ``pretraining``, in its order, NaN where there is none.
    """
    names: Sequence[str] = [name for name, _ in Counter(pretraining.values()).most_common()]
    said = np.array(list(pretraining.values()), dtype=object)
    rows = []
    for name in names:
        own = said == name
        rhos = {}
        for predictor, values in predictors.items():
            known = own & ~np.isnan(values) & ~np.isnan(truth)
            enough = int(known.sum()) >= FEWEST
            rhos[predictor] = known_spearman(values[known], truth[known]) if enough else None
        rows.append({"pretraining": name, "n": int(own.sum()), "rho": rhos})
    return rows
