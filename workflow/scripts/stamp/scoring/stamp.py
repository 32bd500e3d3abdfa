"""STAMP of one model: how much of its output variation lies between groups, not within them.

SV is the mean squared distance of the outputs of semantic pairs, AV that of random pairs, and
``STAMP = 1 - SV / (AV + 1e-8)``. All of it is float64, whatever the precision of the logits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Pairs = tuple[ArrayLike, ArrayLike]

EPSILON = 1e-8
DEGENERATE_TOTAL = 1e-6
DEGENERATE_SPREAD = 1e-4
SATURATED_DISTANCE = 1e-2
SATURATED_SHARE = 0.99
FEW_UNITS = 200

_BOOTSTRAP = 4
# Elements of a block: the weights of a block of resamples, or the distances of a block of pairs,
# stay in the processor's cache.
_BLOCK = 1 << 18


@dataclass(frozen=True, slots=True)
class Health:
    """Whether a model's outputs can be scored at all, and what that was judged by."""

    degenerate: bool
    saturated: bool
    spread: float  # largest standard deviation of an output over the images
    saturated_share: float  # share of images whose outputs are all nearly 0 or 1


@dataclass(frozen=True, slots=True)
class Exact:
    """SV, AV and STAMP over all pairs that the images allow, without pair noise."""

    within: float
    total_iid: float
    total_different: float
    stamp_iid: float
    stamp_different: float
    groups: int  # groups of at least two images, which SV is made of


@dataclass(frozen=True, slots=True)
class Draws:
    """Bootstrap replicates, one a resample."""

    stamp: Array
    within: Array
    total: Array


@dataclass(frozen=True, slots=True)
class Score:
    """STAMP of one model with its parts, interval and health; NaN where the model is degenerate."""

    n_semantic: int
    n_random: int
    within: float
    total: float
    stamp: float
    raw: float  # the formula's value even where the model is degenerate
    eta2: float
    exact_within: float
    exact_total: float
    exact_stamp: float
    exact_eta2: float
    low: float
    high: float
    se_bootstrap: float  # of the draws, as the interval
    se_units: float  # robust to images or patients that several pairs share
    se_analytic: float  # as if all pairs were independent
    contraction: float  # factor by which the draws were moved towards the estimate, 1 for none
    degenerate: bool
    saturated: bool
    spread: float
    saturated_share: float
    groups_effective: float
    draws: Array


def probabilities(logits: ArrayLike, task: str, temperature: float = 1.0) -> Array:
    """Softmax (``multiclass``) or elementwise sigmoid (``multilabel``) of ``logits / temperature``.

    Both are computed from exponentials of numbers that are at most 0, so nothing overflows.
    """
    if not (np.isfinite(temperature) and temperature > 0):
        raise ValueError(f"a temperature is positive and finite, not {temperature}")
    z = np.array(logits, dtype=np.float64)
    z /= temperature
    if task == "multiclass":
        z -= z.max(axis=1, keepdims=True)
        np.exp(z, out=z)
        z /= z.sum(axis=1, keepdims=True)
        return z
    if task == "multilabel":
        small = np.exp(-np.abs(z))
        return np.where(z >= 0, 1.0, small) / (1.0 + small)
    raise ValueError(f"task is 'multiclass' or 'multilabel', not '{task}'")


def restrict(logits: ArrayLike, columns: ArrayLike, task: str, temperature: float = 1.0) -> Array:
    """Probabilities over some classes only, for class-matched scores.

    Sigmoids keep their values; a softmax is renormalised over the classes that remain.
    """
    return probabilities(np.asarray(logits)[:, np.asarray(columns)], task, temperature)


def squared_distances(p: Array, a: ArrayLike, b: ArrayLike) -> Array:
    """``||p[a_i] - p[b_i]||^2`` for each pair of rows."""
    a, b = np.asarray(a), np.asarray(b)
    distances = np.empty(len(a))
    step = max(1, _BLOCK // max(1, p.shape[1]))
    for start in range(0, len(a), step):
        rows = slice(start, start + step)
        difference = p[a[rows]] - p[b[rows]]
        distances[rows] = np.einsum("ij,ij->i", difference, difference)
    return distances


def stamp(within: Any, total: Any, epsilon: float = EPSILON) -> Any:
    """``1 - within / (total + epsilon)``, not clipped: negative where pairs are worse than chance.

    A constant model has SV = AV = 0 and would get the best score, 1.0: see ``health``.
    """
    return 1.0 - within / (total + epsilon)


def health(
    p: Array,
    total: float,
    total_below: float = DEGENERATE_TOTAL,
    spread_below: float = DEGENERATE_SPREAD,
    saturated_distance: float = SATURATED_DISTANCE,
    saturated_share: float = SATURATED_SHARE,
) -> Health:
    """Flags of a model whose outputs say nothing (degenerate) or only 0 and 1 (saturated).

    Degenerate: ``AV < 1e-6 C`` for C classes, or no class whose standard deviation over the
    images reaches 1e-4. Saturated: for more than 99 % of the images the outputs lie within 0.01
    of a vector of zeros and ones, ``||p - round(p)||_1 < 0.01``. Then each squared distance is
    within 0.04 of the number of classes on which two predicted label vectors differ, and the
    score counts label flips.
    """
    spread = float(p.std(axis=0).max())
    corner = np.abs(p - np.rint(p)).sum(axis=1)
    share = float(np.mean(corner < saturated_distance))
    degenerate = total < total_below * p.shape[1] or spread < spread_below
    return Health(bool(degenerate), share > saturated_share, spread, share)


def exact_groups(p: Array, groups: ArrayLike, weights: str = "uniform") -> Exact:
    """SV and AV over all pairs of rows, in the time of one pass over them.

    With n_g images in group g, shares ``pi_g = n_g / n`` and ``Q_g`` the squared distances of its
    outputs to their mean, summed:

    - ``SV = sum_g w_g 2 Q_g / (n_g - 1)`` over groups of two images or more, ``w_g`` equal
      (``uniform``) or proportional to n_g (``size``);
    - ``AV_iid = 2 Q / (n - 1)``, the mean over all pairs of two images;
    - ``AV_diff = (2 S - sum_g pi_g^2 2 s_g) / (1 - sum_g pi_g^2)`` with ``S = Q / n`` and
      ``s_g = Q_g / n_g``, the mean over all pairs of two images of different groups.

    SV is over *all* pairs of a group, for visits of a patient not the consecutive ones only.
    What cannot be had (one image, one group, no group of two) is NaN.
    """
    if weights not in ("uniform", "size"):
        raise ValueError(f"weights are 'uniform' or 'size', not '{weights}'")
    codes, n_g = np.unique(np.asarray(groups), return_inverse=True, return_counts=True)[1:]
    order = np.argsort(codes, kind="stable")
    starts = np.cumsum(n_g) - n_g
    ordered = p[order]
    ordered -= p.mean(axis=0)
    n = len(ordered)
    q = float(np.einsum("ij,ij->", ordered, ordered))
    means = np.add.reduceat(ordered, starts, axis=0)
    means /= n_g[:, None]
    ordered -= np.repeat(means, n_g, axis=0)
    q_g = np.add.reduceat(np.einsum("ij,ij->i", ordered, ordered), starts)

    many = n_g >= 2
    share = np.ones(many.sum()) if weights == "uniform" else n_g[many].astype(float)
    with np.errstate(invalid="ignore", divide="ignore"):
        within = float(np.sum(share * 2 * q_g[many] / (n_g[many] - 1)) / share.sum())
        iid = float(np.float64(2 * q) / (n - 1))
        across = 2 * n * q - 2 * (n_g * q_g).sum()
        different = float(across / (n**2 - (n_g**2).sum())) if len(n_g) > 1 else float("nan")
    return Exact(
        within, iid, different, stamp(within, iid), stamp(within, different), int(many.sum())
    )


def effective_groups(groups: ArrayLike) -> float:
    """``1 / sum_g pi_g^2``: how many equally large groups meet by chance as often as these do."""
    shares = np.unique(np.asarray(groups), return_counts=True)[1] / np.size(groups)
    return float(1 / np.sum(shares**2))


def correct_different_groups(value: Any, groups_count: float) -> Any:
    """eta squared from a STAMP whose random pairs come from different groups.

    Random pairs of K equally likely groups never meet within one, so that
    ``AV_diff = 2 S_W + 2 S_B K/(K-1)`` overstates the total. With ``k = K / (K-1)``,
    ``eta2 = s / (s + k (1 - s))``. For unequal shares K is ``effective_groups``: exact where the
    groups vary alike; otherwise see ``iid_total``.
    """
    k = groups_count / (groups_count - 1)
    return value / (value + k * (1 - value))


def iid_total(total_different: float, shares: ArrayLike, within: ArrayLike) -> float:
    """AV of independent draws from that of different groups, for any shares and variances.

    ``AV_iid = (1 - sum pi_g^2) AV_diff + sum pi_g^2 SV_g``, with SV_g the mean squared distance
    of two draws from group g.
    """
    squared = np.asarray(shares, dtype=np.float64) ** 2
    return float((1 - squared.sum()) * total_different + np.sum(squared * np.asarray(within)))


def analytic_se(d_semantic: Array, d_random: Array) -> float:
    """Standard error of STAMP if all pairs were independent (delta method).

    ``Var = [Var(d_s) / N + (SV/AV)^2 Var(d_r) / M] / AV^2``. Too small where pairs share images.
    """
    within, total = d_semantic.mean(), d_random.mean()
    variance = _variance(d_semantic) / len(d_semantic)
    variance += (within / total) ** 2 * _variance(d_random) / len(d_random)
    return float(np.sqrt(variance) / total)


def unit_se(
    d_semantic: Array, units_semantic: Pairs, d_random: Array, units_random: Pairs, units: int
) -> float:
    """Standard error of STAMP that is robust to pairs sharing a unit (image or patient).

    With ``e_i`` a pair's influence on the score, ``-(d_i - SV) / (N AV)`` for semantic and
    ``SV (d_i - AV) / (M AV^2)`` for random pairs, ``Var = sum e_i e_j`` over all ordered pairs
    (i, j) with a unit in common: the dyadic cluster-robust variance (Fafchamps & Gubert 2007;
    Aronow, Samii & Assenova 2015). NaN where the sum is negative, as it can be for few units.
    """
    within, total = d_semantic.mean(), d_random.mean()
    influence = np.concatenate(
        [
            -(d_semantic - within) / (len(d_semantic) * total),
            within * (d_random - total) / (len(d_random) * total**2),
        ]
    )
    a, b = (np.concatenate([s, r]) for s, r in zip(units_semantic, units_random, strict=True))
    two = a != b
    by_unit = np.bincount(a, influence, units) + np.bincount(b[two], influence[two], units)
    variance = np.sum(by_unit**2) - np.sum(influence[two] ** 2)
    return float(np.sqrt(variance)) if variance > 0 else float("nan")


def bootstrap_stamp(
    d_semantic: Array,
    units_semantic: Pairs,
    d_random: Array,
    units_random: Pairs,
    units_count: int,
    resamples: int,
    seed: int,
) -> Draws:
    """SV, AV and STAMP of ``resamples`` multinomial resamples of units, joint for both kinds.

    A unit is what was sampled: a patient (both images of a temporal pair belong to one) or an
    image. A unit drawn w times makes each of its own pairs count w times; a pair of two units
    counts ``w_a w_b`` times (Owen 2007, the pigeonhole bootstrap). That counts the noise of a
    single pair of units up to three times, so the spread of these draws is conservative: see
    ``contraction``. The draws depend on the seed, the pairs' units and their distances only, so
    models that share their pairs are resampled together. NaN where a resample has no pair left.
    """
    sets = [(d_semantic, *units_semantic), (d_random, *units_random)]
    within, total = resampled_means(sets, units_count, resamples, seed)
    return Draws(stamp(within, total), within, total)


def resampled_means(
    sets: Sequence[tuple[Array, ArrayLike, ArrayLike]], units_count: int, resamples: int, seed: int
) -> Array:
    """The mean distance of each set of pairs, [sets, resamples], of joint resamples of units.

    A set is its distances and the two units of each of its pairs; see ``bootstrap_stamp``.
    """
    sides = [_two_units_first(*each) for each in sets]
    sums = np.empty((len(sides), 2, resamples))
    for columns, weights in _resampled_units(units_count, resamples, seed):
        for side, (values, first, second) in enumerate(sides):
            counts = weights[first]
            counts[: len(second)] *= weights[second]
            # Not a BLAS product: its threads cost more than they save, and sums vary by machine.
            np.einsum("kp,pr->kr", values, counts.astype(np.float64), out=sums[side, :, columns])
    with np.errstate(invalid="ignore", divide="ignore"):
        return sums[:, 0] / sums[:, 1]


def contraction(draws: Array, se: float, units: int) -> float:
    """By how much the spread of bootstrap draws has to shrink to be the unit-robust ``se``.

    Weights ``w_a w_b`` give a pair's own noise three times its variance, so the factor is held
    between ``1/sqrt(3)`` and 1. In simulations of class pairs the draws as they come were 1.5 to
    1.8 times as wide as the score varied, a 95 % interval covering 99 %; contracted ones covered
    about 97 %. For fewer than ``FEW_UNITS`` units ``se`` is itself too small: the draws stay.
    """
    spread = _spread(draws)
    if units < FEW_UNITS or not (np.isfinite(se) and spread > 0):
        return 1.0
    return float(np.clip(se / spread, 3**-0.5, 1.0))


def score(
    p: Array,
    semantic: Pairs,
    random: Pairs,
    groups: ArrayLike,
    unit: str = "group",
    resamples: int = 10_000,
    level: float = 0.95,
    seed: int = 0,
    design: str = "different_group",
    n_groups_effective: float | None = None,
    contract: bool = True,
) -> Score:
    """STAMP of the outputs ``p`` with both estimators, eta squared, interval and health flags.

    ``semantic`` and ``random`` are two arrays of rows of ``p`` each; ``groups`` has one integer a
    row. The exact estimator uses every row of ``p``. ``design`` says how the random pairs were
    drawn: with ``different_group`` eta squared is corrected for it, by ``n_groups_effective``
    groups (by default those of the rows). The interval is the percentile interval of the unit
    bootstrap, drawn in by ``contraction`` unless ``contract`` is off.
    """
    if design not in ("different_group", "iid"):
        raise ValueError(f"design is 'different_group' or 'iid', not '{design}'")
    if not np.isfinite(p).all():
        raise ValueError("outputs are not finite")
    groups = np.asarray(groups)
    d_semantic, d_random = squared_distances(p, *semantic), squared_distances(p, *random)
    if not (len(d_semantic) and len(d_random)):
        raise ValueError("a score needs at least one semantic and one random pair")
    within, total = float(d_semantic.mean()), float(d_random.mean())
    raw = float(stamp(within, total))
    state = health(p, total)
    exact = exact_groups(p, groups)
    different = design == "different_group"
    effective = effective_groups(groups) if n_groups_effective is None else n_groups_effective
    keep = float("nan") if state.degenerate else 1.0
    interval = (
        _no_interval(resamples)
        if state.degenerate
        else distance_interval(
            (d_semantic, *_units(semantic, groups, unit)),
            (d_random, *_units(random, groups, unit)),
            raw,
            resamples,
            level,
            seed,
            contract,
        )
    )
    return Score(
        n_semantic=len(d_semantic),
        n_random=len(d_random),
        within=within,
        total=total,
        stamp=raw * keep,
        raw=raw,
        eta2=keep * float(correct_different_groups(raw, effective) if different else raw),
        exact_within=exact.within,
        exact_total=exact.total_different if different else exact.total_iid,
        exact_stamp=keep * (exact.stamp_different if different else exact.stamp_iid),
        exact_eta2=keep * exact.stamp_iid,
        degenerate=state.degenerate,
        saturated=state.saturated,
        spread=state.spread,
        saturated_share=state.saturated_share,
        groups_effective=float(effective),
        **interval,
    )


def distance_interval(
    semantic: tuple[Array, Indices, Indices],
    random: tuple[Array, Indices, Indices],
    value: float,
    resamples: int,
    level: float,
    seed: int,
    contract: bool = True,
) -> dict[str, Any]:
    """Draws, percentile interval and the three standard errors of STAMP of given distances.

    ``semantic`` and ``random`` are the squared distances of the pairs and the two units of each;
    ``value`` is the score itself. Only the units that occur are resampled.
    """
    (d_semantic, *ends_semantic), (d_random, *ends_random) = semantic, random
    ends = np.concatenate([*ends_semantic, *ends_random])
    known, codes = np.unique(ends, return_inverse=True)
    cuts = np.cumsum([len(d_semantic), len(d_semantic), len(d_random)])
    a, b, c, d = np.split(codes, cuts)
    parts = (d_semantic, (a, b), d_random, (c, d), len(known))
    found = bootstrap_stamp(*parts, resamples, seed).stamp
    se = unit_se(*parts)
    factor = contraction(found, se, len(known)) if contract else 1.0
    draws = value + factor * (found - value)
    low, high = np.nanquantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return {
        "draws": draws,
        "low": float(low),
        "high": float(high),
        "se_bootstrap": _spread(draws),
        "se_units": se,
        "se_analytic": analytic_se(d_semantic, d_random),
        "contraction": factor,
    }


def _no_interval(resamples: int) -> dict[str, Any]:
    names = ("low", "high", "se_bootstrap", "se_units", "se_analytic", "contraction")
    return {**dict.fromkeys(names, float("nan")), "draws": np.full(resamples, np.nan)}


def _units(pairs: Pairs, groups: NDArray[Any], unit: str) -> tuple[Indices, Indices]:
    if unit not in ("group", "image"):
        raise ValueError(f"unit is 'group' or 'image', not '{unit}'")
    a, b = (np.asarray(rows) for rows in pairs)
    return (groups[a], groups[b]) if unit == "group" else (a, b)


def _two_units_first(
    distances: Array, a: ArrayLike, b: ArrayLike
) -> tuple[Array, Indices, Indices]:
    """Rows of distances and ones, the first units of all pairs, the second units of those with two.

    Pairs of two units stand first.
    """
    a, b = np.asarray(a), np.asarray(b)
    order = np.argsort(a == b, kind="stable")
    second = b[order][: np.count_nonzero(a != b)]
    return np.stack([distances, np.ones_like(distances)])[:, order], a[order], second


def _resampled_units(
    units: int, resamples: int, seed: int
) -> Iterator[tuple[slice, NDArray[np.uint16]]]:
    """How often each unit is drawn, [units, resamples], a block of resamples at a time.

    Each resample draws as many units as there are. Resamples are the fast axis, so that the
    weights of a pair in all resamples of a block are neighbours in memory.
    """
    rng = np.random.default_rng([seed, _BOOTSTRAP])
    kind = np.uint16 if units <= 1 << 16 else np.uint32
    width = int(np.clip(_BLOCK // units, 8, 128))
    for start in range(0, resamples, width):
        # Whole blocks are drawn, so that fewer resamples are the first of more.
        flat = rng.integers(0, units, size=(units, width), dtype=kind).astype(np.intp)
        flat *= width
        flat += np.arange(width)
        counts = np.bincount(flat.ravel(), minlength=units * width).astype(np.uint16)
        columns = slice(start, min(start + width, resamples))
        yield columns, counts.reshape(units, width)[:, : columns.stop - start]


def _spread(draws: Array) -> float:
    known = draws[~np.isnan(draws)]
    return float(known.std(ddof=1)) if len(known) > 1 else float("nan")


def _variance(values: Array) -> float:
    return float(values.var(ddof=1)) if len(values) > 1 else float("nan")
