"""The theory's own numbers: concentration, averaged bound, approximation error, scatter."""

from __future__ import annotations

from math import ceil, exp, log, sqrt

import numpy as np

from stamp.paper.claims import Claim, measured, stated, unchecked
from stamp.paper.printed_tables import Paper, values
from stamp.scoring.stamp import stamp

LABELS = 14
DELTA = 0.05


def claims(paper: Paper) -> list[Claim]:
    """Every claim of the theory that can be evaluated."""
    return [
        *concentration(paper),
        *bounds(paper),
        *approximation(paper),
        scatter(paper),
        unchecked(
            paper.text("temporal_noise"),
            "an assumption on images; two visits differ by how the patient fared in between",
        ),
    ]


def epsilon(n: int, m: int, delta: float = DELTA) -> float:
    """The paper's Lemma 5: sqrt(2 log(4/delta) / n) + sqrt(2 log(4/delta) / m)."""
    return sqrt(2 * log(4 / delta) / n) + sqrt(2 * log(4 / delta) / m)


def needed(value: float, delta: float = DELTA) -> int:
    """The least n = m at which that bound is at most ``value``."""
    return ceil(8 * log(4 / delta) / value**2)


def concentration(paper: Paper) -> list[Claim]:
    """The concentration bound, its ratio to the seeds' deviation, and the range it assumes."""
    text = paper.text("epsilon")
    n, printed = text.n or 0, paper.value("epsilon")
    found = epsilon(n, n)
    deviation = paper.value("seeds_sd")
    table = paper.table("stamp_main").drop_nulls("av")
    total = float(np.median(values(table["av"])))
    corner = float(np.square(np.eye(2)[0] - np.eye(2)[1]).sum())
    box = float(np.square(np.ones(LABELS)).sum())
    return [
        measured(
            text,
            found,
            f"by the formula; {printed} takes n = m = {needed(printed):,}; the slope of 1 - SV/AV, "
            f"1/AV = {1 / total:.0f} at the median AV of Table 8, is missing from it",
        ),
        measured(
            paper.text("epsilon_ratio"),
            printed / deviation,
            f"{printed} / {deviation}; with the formula's value {found / deviation:.0f}",
        ),
        stated(
            paper.text("distance_bound"),
            f"{corner:.0f} on the simplex, {box:.0f} for {LABELS} sigmoids",
            max(corner, box) <= paper.value("distance_bound"),
            f"the outputs of the medical study are {LABELS} sigmoids, not on the simplex",
        ),
    ]


def averaged(score: np.ndarray) -> np.ndarray:
    """The averaged bound without its shift term, 4 (1 - S) / S."""
    return 4 * (1 - score) / score


def bounds(paper: Paper) -> list[Claim]:
    """Bounds on an error say something only below 1."""
    found = averaged(values(paper.table("stamp_main")["stamp"]))
    useful = found[found < 1]
    # the largest margin on the simplex is the distance of two corners
    floor = exp(-(sqrt(2) ** 2) / 8)
    vanishing = 0.0  # Chebyshev's 4 variance / margin^2 where the variance goes to zero
    return [
        stated(
            paper.text("bound_models"),
            f"below 1 for {useful.size} of {found.size}: {useful.min():.2f} to {useful.max():.2f}",
            bool(useful.size == found.size),
            "an error is never above 1, so a larger bound says nothing; it is below 1 where STAMP "
            "is above 0.8, before the shift term is added",
        ),
        stated(
            paper.text("hoeffding"),
            f"at least {floor:.3f} for every model",
            floor <= vanishing,
            "margins on the simplex are at most sqrt 2 and the bound knows no variance; that of "
            "Chebyshev goes to 0 with it",
        ),
    ]


def even_classes(classes: int, sigma: float = 0.01) -> tuple[float, float, float]:
    """r-bar, S_W / S_B and CV for classes at the corners of the simplex, all with equal noise.

    Noise of variance sigma^2 in each of the K - 1 directions of the simplex: the projected
    variance is sigma^2, the margin sqrt 2, S_W = (K - 1) sigma^2 and S_B = 1 - 1/K.
    """
    ratios = np.full(classes, sigma**2 / 2)
    mean = float(ratios.mean())
    return mean, (classes - 1) * sigma**2 / (1 - 1 / classes), float(ratios.std()) / mean


def approximation(paper: Paper) -> list[Claim]:
    """The class-averaged form: CV squared, and an example where all classes are alike."""
    cv = paper.value("cv")
    mean, ratio, spread = even_classes(LABELS)
    error = abs(mean - ratio) / ratio
    return [
        measured(paper.text("cv_square"), cv**2, "a relative error of up to 114 % is allowed"),
        stated(
            paper.text("approximation"),
            f"relative error {error:.2f} at CV {spread:.0f}",
            error <= spread**2 + 1e-12,
            f"{LABELS} classes at the corners of the simplex with equal noise: the projected "
            "variance is that of one direction, S_W that of all",
        ),
        unchecked(paper.text("cv"), "variances and margins by class are not printed"),
    ]


def scatter(paper: Paper) -> Claim:
    """AV of different-class pairs is 2 S_W + 2 S_B K / (K - 1), not 2 S_T."""
    eta2 = float(np.median(values(paper.table("stamp_main")["stamp"])))

    def excess(classes: int) -> float:
        """AV over 2 S_T where S_T = 1."""
        return (1 - eta2) + eta2 * classes / (classes - 1)

    ten, thousand = (excess(k) for k in (10, 1000))
    return stated(
        paper.text("total_scatter"),
        f"2 S_T times {thousand:.4f} for 1,000 classes, {ten:.3f} for 10",
        thousand == 1,
        f"at eta squared {eta2:.3f}; STAMP then tends to {stamp(1 - eta2, ten, 0.0):.3f} for 10 "
        f"classes and to {stamp(1 - eta2, thousand, 0.0):.4f} for 1,000",
    )
