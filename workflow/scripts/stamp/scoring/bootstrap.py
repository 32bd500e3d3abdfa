"""How sure a STAMP score is: standard errors, and an interval by a bootstrap over units.

A unit is what was sampled: an image, or a group such as a patient.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from stamp.scoring.exact import ExactPairs
from stamp.scoring.stamp import Array, stamp

Indices = NDArray[np.int64]
Weights = tuple[slice, NDArray[np.uint16]]  # of some resamples, and which they are

FEW_UNITS = 200

_BOOTSTRAP = 4
_BLOCK = 1 << 18  # weights of a block of resamples: few enough for the processor's cache
_KEPT = 1 << 25  # weights of all resamples that are kept for the next score of the same units
_WIDE = 256  # units left out at once: enough for fast matrix products


@dataclass(frozen=True, slots=True)
class PairDistances:
    """The squared distances of some pairs, and the two units of each pair."""

    distances: Array
    first: Indices
    second: Indices

    def __len__(self) -> int:
        return len(self.distances)


@dataclass(frozen=True, slots=True)
class BootstrapSettings:
    """How an interval is made; ``contract`` draws a sampled score's in (:func:`contraction`)."""

    resamples: int = 10_000
    level: float = 0.95
    seed: int = 0
    contract: bool = True


@dataclass(frozen=True, slots=True)
class Draws:
    """Bootstrap replicates, one per resample."""

    stamp: Array
    within: Array
    total: Array


@dataclass(frozen=True, slots=True)
class StampInterval:
    """The interval of a score, its standard errors, and the draws that it was taken from."""

    low: float
    high: float
    se_bootstrap: float  # of the draws, as the interval
    se_units: float  # robust to images or patients that several pairs share
    se_analytic: float  # as if all pairs were independent; NaN for the exact estimator
    contraction: float  # factor by which the draws were moved towards the estimate, 1 for none
    draws: Array

    @classmethod
    def unknown(cls, resamples: int) -> StampInterval:
        """NaN throughout, for a model that has no score."""
        nan = float("nan")
        return cls(nan, nan, nan, nan, nan, nan, np.full(resamples, np.nan))


def stamp_interval(
    semantic: PairDistances, random: PairDistances, value: float, settings: BootstrapSettings
) -> StampInterval:
    """The percentile interval of the score ``value``, with three standard errors and the draws.

    Only the units that occur are resampled.
    """
    (semantic, random), units = renumbered([semantic, random])
    found = bootstrap_stamp(semantic, random, units, settings.resamples, settings.seed).stamp
    se = unit_se(semantic, random, units)
    factor = contraction(found, se, units) if settings.contract else 1.0
    independent = analytic_se(semantic.distances, random.distances)
    return _interval(found, value, factor, (se, independent), settings)


def exact_interval(pairs: ExactPairs, value: float, settings: BootstrapSettings) -> StampInterval:
    """The percentile interval of the exact score ``value``, with its draws and standard errors.

    In a resample the score is taken over all pairs of the units that were drawn, see
    ``stamp.scoring.exact``. It is a mean over so many pairs that the noise of a single one hardly
    counts, so the draws stay as they are. Only class pairs of classes with five images or fewer
    feel it: in simulations their 95 % intervals covered 99 %.
    """
    found = resampled_exact(pairs, settings.resamples, settings.seed)
    return _interval(found, value, 1.0, (jackknife_se(pairs), float("nan")), settings)


def _interval(
    found: Array,
    value: float,
    factor: float,
    errors: tuple[float, float],
    settings: BootstrapSettings,
) -> StampInterval:
    draws = value + factor * (found - value)
    low, high = np.nanquantile(draws, [(1 - settings.level) / 2, (1 + settings.level) / 2])
    return StampInterval(
        low=float(low),
        high=float(high),
        se_bootstrap=_spread(draws),
        se_units=errors[0],
        se_analytic=errors[1],
        contraction=factor,
        draws=draws,
    )


def resampled_exact(pairs: ExactPairs, resamples: int, seed: int) -> Array:
    """The exact score of ``resamples`` multinomial resamples of units; NaN where no pair is left.

    The draws depend on the seed and the number of units only, so models that share their pool are
    resampled together.
    """
    found = np.empty(resamples)
    for columns, weights in _resampled_units(pairs.units, resamples, seed):
        found[columns] = stamp(*pairs.parts(weights.astype(np.float64)))
    return found


def jackknife_se(pairs: ExactPairs) -> float:
    """Standard error of the exact score by leaving out each unit in turn.

    ``Var = (n - 1) / n sum_u (STAMP_(u) - mean)^2``; NaN where a unit can't be left out.
    """
    n, left = pairs.units, []
    for start in range(0, n, _WIDE):
        out = np.arange(start, min(start + _WIDE, n))
        weights = np.ones((n, len(out)))
        weights[out, out - start] = 0
        left.append(stamp(*pairs.parts(weights)))
    values = np.concatenate(left)
    return float(np.sqrt((n - 1) / n * np.square(values - values.mean()).sum()))


def renumbered(sets: Sequence[PairDistances]) -> tuple[list[PairDistances], int]:
    """The same pairs with the units that occur numbered from 0, and how many units occur."""
    ends = [end for each in sets for end in (each.first, each.second)]
    known, codes = np.unique(np.concatenate(ends), return_inverse=True)
    parts = np.split(codes, np.cumsum([len(end) for end in ends])[:-1])
    coded = zip(sets, parts[::2], parts[1::2], strict=True)
    return [PairDistances(each.distances, a, b) for each, a, b in coded], len(known)


def analytic_se(d_semantic: Array, d_random: Array) -> float:
    """Standard error of STAMP if all pairs were independent (delta method).

    ``Var = [Var(d_s) / N + (SV/AV)^2 Var(d_r) / M] / AV^2``. Too small where pairs share images.
    """
    within, total = d_semantic.mean(), d_random.mean()
    variance = _variance(d_semantic) / len(d_semantic)
    variance += (within / total) ** 2 * _variance(d_random) / len(d_random)
    return float(np.sqrt(variance) / total)


def unit_se(semantic: PairDistances, random: PairDistances, units: int) -> float:
    """Standard error of STAMP that is robust to pairs sharing a unit (image or patient).

    With ``e_i`` a pair's influence on the score, ``-(d_i - SV) / (N AV)`` for semantic and
    ``SV (d_i - AV) / (M AV^2)`` for random pairs, ``Var = sum e_i e_j`` over all ordered pairs
    (i, j) with a unit in common: the dyadic cluster-robust variance (Fafchamps & Gubert 2007;
    Aronow, Samii & Assenova 2015). NaN where the sum is negative, as it can be for few units.
    """
    d_semantic, d_random = semantic.distances, random.distances
    within, total = d_semantic.mean(), d_random.mean()
    influence = np.concatenate(
        [
            -(d_semantic - within) / (len(d_semantic) * total),
            within * (d_random - total) / (len(d_random) * total**2),
        ]
    )
    a = np.concatenate([semantic.first, random.first])
    b = np.concatenate([semantic.second, random.second])
    two = a != b
    by_unit = np.bincount(a, influence, units) + np.bincount(b[two], influence[two], units)
    variance = np.sum(by_unit**2) - np.sum(influence[two] ** 2)
    return float(np.sqrt(variance)) if variance > 0 else float("nan")


def bootstrap_stamp(
    semantic: PairDistances, random: PairDistances, units: int, resamples: int, seed: int
) -> Draws:
    """SV, AV and STAMP of ``resamples`` multinomial resamples of units, joint for both kinds.

    A unit is what was sampled: a patient (both images of a temporal pair belong to one) or an
    image. A unit drawn w times makes each of its own pairs count w times; a pair of two units
    counts ``w_a w_b`` times (Owen 2007, the pigeonhole bootstrap). That counts the noise of a
    single pair of units up to three times, so the spread of these draws is conservative: see
    ``contraction``. The draws depend on the seed, the pairs' units and their distances only, so
    models that share their pairs are resampled together. NaN where a resample has no pair left.
    """
    within, total = resampled_means([semantic, random], units, resamples, seed)
    return Draws(stamp(within, total), within, total)


def resampled_means(sets: Sequence[PairDistances], units: int, resamples: int, seed: int) -> Array:
    """The mean distance of each set of pairs, [sets, resamples], over joint resamples of units.

    See :func:`bootstrap_stamp`.
    """
    sides = [_two_units_first(each) for each in sets]
    sums = np.empty((len(sides), 2, resamples))
    for columns, weights in _resampled_units(units, resamples, seed):
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


def _two_units_first(pairs: PairDistances) -> tuple[Array, Indices, Indices]:
    """Rows of distances and ones, the first units of all pairs, the second units of those with two.

    Pairs of two units stand first.
    """
    a, b = pairs.first, pairs.second
    order = np.argsort(a == b, kind="stable")
    second = b[order][: np.count_nonzero(a != b)]
    values = np.stack([pairs.distances, np.ones_like(pairs.distances)])
    return values[:, order], a[order], second


def _resampled_units(units: int, resamples: int, seed: int) -> Iterable[Weights]:
    """How often each unit is drawn, [units, resamples], a block of resamples at a time.

    A model's scores are over the same units, so the last draws are kept where they are not many.
    """
    if units * resamples > _KEPT:
        return _drawn_units(units, resamples, seed)
    return _kept_units(units, resamples, seed)


@lru_cache(maxsize=1)
def _kept_units(units: int, resamples: int, seed: int) -> list[Weights]:
    return list(_drawn_units(units, resamples, seed))


def _drawn_units(units: int, resamples: int, seed: int) -> Iterator[Weights]:
    """The blocks, each drawn when it is needed.

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
