"""The exact estimator: SV and AV over all pairs that the pool's outputs allow, without pair noise.

For images with weights u the sum over all pairs ``sum_{i<j} u_i u_j |p_i - p_j|^2`` is
``N Q - |S|^2`` with ``N = sum u_i``, ``Q = sum u_i |p_i|^2`` and ``S = sum u_i p_i``. Pairs that
are not meant (of one patient, of one class) are taken off by the same formula over just their
images. So no pair is ever listed, and a resample of units only changes the weights: everything here
takes weights [units, resamples] and gives one value per resample.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stamp.scoring.stamp import Array

if TYPE_CHECKING:
    from stamp.scoring.class_moments import ClassMoments

Indices = NDArray[np.int64]
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Cells:
    """Weighted moments of images that always count together: those of one unit and one group."""

    unit: Indices
    group: Indices
    images: Array  # how many they are
    mass: Array  # sum of the images' weights
    own: Array  # sum of their squares
    sums: Array  # weighted outputs, summed, [cells, outputs]
    squares: Array  # weighted squared norms of the outputs, summed

    @classmethod
    def of(cls, p: Array, weights: Array, units: Indices, groups: Indices) -> Cells:
        """The moments of rows of outputs, taken from their mean so that nothing cancels."""
        keys, cell = np.unique(np.stack([groups, units]), axis=1, return_inverse=True)
        order, number = np.argsort(cell, kind="stable"), np.bincount(cell)
        starts = np.cumsum(number) - number
        centred = p[order]
        centred -= np.average(p, axis=0, weights=weights)
        squares = weights[order] * np.einsum("ij,ij->i", centred, centred)
        centred *= weights[order][:, None]
        return cls(
            unit=keys[1],
            group=keys[0],
            images=number.astype(np.float64),
            mass=np.add.reduceat(weights[order], starts),
            own=np.add.reduceat(np.square(weights[order]), starts),
            sums=np.add.reduceat(centred, starts, axis=0),
            squares=np.add.reduceat(squares, starts),
        )

    @property
    def one_per_unit(self) -> bool:
        """Whether no unit has images of two groups."""
        return len(np.unique(self.unit)) == len(self.unit)


@dataclass(frozen=True, slots=True)
class Blocks:
    """Cells that have something in common, blocks of equal size together.

    ``members`` are the cells [blocks, size] of each size. The products of ``linear``
    [blocks, 2 + rank, size] with their weights are N, Q and a vector whose norm is that of S.
    """

    members: list[Indices]
    linear: list[Array]

    @classmethod
    def of(cls, cells: Cells, labels: Indices) -> Blocks:
        """One block for each label."""
        order, sizes = np.argsort(labels, kind="stable"), np.unique(labels, return_counts=True)[1]
        starts = np.cumsum(sizes) - sizes
        members = [
            order[starts[sizes == size][:, None] + np.arange(size)] for size in np.unique(sizes)
        ]
        return cls(members, [_linear(cells, rows) for rows in members])

    def moments(self, weights: Array) -> Iterator[tuple[Indices, Array, Array]]:
        """The members of some blocks, with N and ``N Q - |S|^2`` of each, [blocks, resamples]."""
        for rows, linear in zip(self.members, self.linear, strict=True):
            found = linear @ taken(weights, rows)
            mass, squares, vector = found[:, 0], found[:, 1], found[:, 2:]
            yield rows, mass, mass * squares - np.einsum("bkr,bkr->br", vector, vector)

    def pairs(self, weights: Array) -> Array:
        """Squared distances and numbers of all pairs within blocks, both summed: [2, resamples]."""
        found = np.zeros((2, weights.shape[1]))
        for _, mass, distances in self.moments(weights):
            found[0] += distances.sum(axis=0)
            found[1] += np.einsum("br,br->r", mass, mass) / 2
        return found


def taken(weights: Array, rows: Indices) -> Array:
    """``weights[rows]``, without a copy where the rows follow each other."""
    first, number = rows.flat[0], rows.size
    if np.array_equal(rows.ravel(), np.arange(first, first + number)):
        return weights[first : first + number].reshape(*rows.shape, -1)
    return weights[rows]


def _linear(cells: Cells, rows: Indices) -> Array:
    """What is multiplied with the weights of some blocks, see :class:`Blocks`."""
    parts = [cells.mass[rows][:, None], cells.squares[rows][:, None], _factor(cells.sums[rows])]
    return np.concatenate(parts, axis=1)


def _factor(sums: Array) -> Array:
    """A matrix for each block, with few rows, whose product with weights has the sum's norm."""
    if sums.shape[1] > sums.shape[2]:
        return np.ascontiguousarray(sums.swapaxes(1, 2))
    return np.asarray(np.linalg.qr(sums.swapaxes(1, 2), mode="r"), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class ClassPairs:
    """All pairs of two images of one class and of different units; every class counts the same.

    ``SV = mean_c D_c / P_c`` over the classes c that have such a pair, with D_c the sum of its
    squared distances and P_c their number.
    """

    cells: Cells
    classes: Blocks
    inside: Array  # of pairs within a cell: numbers and squared distances, each twice, [2, cells]

    @classmethod
    def of(cls, p: Array, units: Indices, classes: Indices) -> ClassPairs:
        cells = Cells.of(p, np.ones(len(p)), units, classes)
        apart = cells.mass * cells.squares - np.einsum("ij,ij->i", cells.sums, cells.sums)
        inside = np.stack([np.square(cells.mass), apart])
        return cls(cells, Blocks.of(cells, cells.group), inside)

    def number(self) -> int:
        """How many pairs there are."""
        n = self.cells.mass
        whole = np.bincount(self.cells.group, n)
        return round((np.square(whole).sum() - np.square(n).sum()) / 2)

    def resampled(self, weights: Array) -> tuple[Array, Array]:
        """SV in each resample, and how much an image of each cell counts as an end of its pairs.

        With unit weights w, n_k images in cell k and N_c weighted images in class c, the end of a
        pair is an image of cell k as often as ``u_k = w_k (N_c - w_k n_k) / 2 P_c``: the ends of a
        class's pairs count the same for every class. SV is NaN where no class has a pair left.
        """
        of_cells = weights[self.cells.unit]
        squared = np.square(of_cells)
        total, number = np.zeros((2, weights.shape[1]))
        ends = np.empty_like(of_cells)
        for rows, mass, distances in self.classes.moments(of_cells):
            own, own_squared = taken(of_cells, rows), taken(squared, rows)
            off = self.inside[:, rows].swapaxes(0, 1) @ own_squared
            twice, apart = np.square(mass) - off[:, 0], distances - off[:, 1]
            share = np.divide(1.0, twice, out=np.zeros_like(twice), where=twice > 0)
            total += 2 * (apart * share).sum(axis=0)
            number += (twice > 0).sum(axis=0)
            of_ends = own * share[:, None]
            of_ends *= -self.cells.mass[rows][:, :, None]
            of_ends += (mass * share)[:, None]
            of_ends *= own
            ends[rows] = of_ends
        with np.errstate(invalid="ignore", divide="ignore"):
            return total / number, ends

    def within(self, weights: Array) -> Array:
        """SV in each resample."""
        return self.resampled(weights)[0]


@dataclass(frozen=True, slots=True)
class ListedPairs:
    """Given pairs of rows, such as consecutive visits; every pair counts the same.

    ``SV = sum_i w_i d_i / sum_i w_i``. A pair of one unit counts as often as the unit, one of two
    units as often as their product says.
    """

    units: int
    of_unit: Array  # squared distances and numbers of the pairs within each unit, [2, units]
    distances: Array  # of pairs of two units
    first: Indices
    second: Indices

    @classmethod
    def of(cls, distances: Array, first: Indices, second: Indices, units: int) -> ListedPairs:
        one = first == second
        of_unit = [
            np.bincount(first[one], distances[one], units),
            np.bincount(first[one], minlength=units),
        ]
        return cls(units, np.stack(of_unit), distances[~one], first[~one], second[~one])

    def number(self) -> int:
        """How many pairs there are."""
        return round(self.of_unit[1].sum()) + len(self.distances)

    def within(self, weights: Array) -> Array:
        """SV in each resample; NaN where no pair is left."""
        found = self.of_unit @ weights
        if len(self.distances):
            both = weights[self.first] * weights[self.second]
            found += np.stack([self.distances @ both, both.sum(axis=0)])
        with np.errstate(invalid="ignore", divide="ignore"):
            return found[0] / found[1]


@dataclass(frozen=True, slots=True)
class RandomPairs:
    """All pairs of two images that the study's random pairs could be; images count by a weight.

    ``AV = sum u_i u_j |p_i - p_j|^2 / sum u_i u_j`` over pairs of two images that differ in group
    and unit (``different_group``), or over all pairs of two images (``iid``). In a resample a pair
    within a unit counts as often as the unit is drawn, not as its square.
    """

    cells: Cells
    everything: Blocks
    taken_off: list[tuple[int, Blocks]]  # with the sign by which their pairs count
    by_group: bool
    iid: bool

    @classmethod
    def of(cls, cells: Cells, by_group: bool, iid: bool) -> RandomPairs:
        """The random pairs of some cells; ``by_group``: those of one group are none either."""
        of_units = Blocks.of(cells, cells.unit)
        if iid or not by_group:
            off = [(-1, of_units)]
        else:
            off = [(-1, Blocks.of(cells, cells.group))]
            if not cells.one_per_unit:
                off += [(-1, of_units), (1, Blocks.of(cells, np.arange(len(cells.unit))))]
        everything = Blocks.of(cells, np.zeros(len(cells.unit), np.int64))
        return cls(cells, everything, off, by_group, iid)

    def number(self) -> int:
        """How many pairs of images there are, of the images that have a weight."""
        one = np.ones((len(self.cells.unit), 1))
        images = self.cells.images
        cells = replace(self.cells, mass=images, own=images, sums=np.zeros_like(one))
        return round(RandomPairs.of(cells, self.by_group, self.iid)._pairs(one, one)[1, 0])

    def total(self, ends: Array, weights: Array) -> Array:
        """AV in each resample, for the weights ``ends`` of an image of each cell.

        NaN where no pair is left; what rounding leaves of none is far below one of all pairs.
        """
        distances, number = self._pairs(ends, weights[self.cells.unit])
        there = number > ROUNDING * np.square(self.cells.mass @ ends)
        return np.divide(distances, number, out=np.full_like(number, np.nan), where=there)

    def _pairs(self, ends: Array, weights: Array) -> Array:
        """Squared distances and numbers of the pairs, both summed, [2, resamples]."""
        found = self.everything.pairs(ends)
        for sign, blocks in self.taken_off:
            found += sign * blocks.pairs(ends)
        if self.iid:
            once = ends / np.sqrt(np.where(weights > 0, weights, 1.0))
            found += self.taken_off[0][1].pairs(once)
            found[1] -= self.cells.own @ np.square(once) / 2
        return found


@dataclass(frozen=True, slots=True)
class ExactPairs:
    """SV and AV of a model as functions of how often each unit counts.

    ``ends`` are the class pairs whose images random pairs reuse, where they do: the weights of
    images then follow from theirs. ``moments`` give the same AV, and the SV of ``ends``, by fewer
    sums where there are few classes.
    """

    units: int
    semantic: ClassPairs | ListedPairs
    random: RandomPairs
    ends: ClassPairs | None = None
    moments: ClassMoments | None = None

    def parts(self, weights: Array) -> tuple[Array, Array]:
        """SV and AV for weights [units, resamples]."""
        if self.ends is None:
            marginal = weights[self.random.cells.unit]
            return self.semantic.within(weights), self.random.total(marginal, weights)
        if self.moments is not None:
            within, total = self.moments.parts(weights)
        else:
            within, marginal = self.ends.resampled(weights)
            total = self.random.total(marginal, weights)
        if self.semantic is not self.ends:
            within = self.semantic.within(weights)
        return within, total

    def value(self) -> tuple[float, float]:
        """SV and AV where every unit counts once."""
        within, total = self.parts(np.ones((self.units, 1)))
        return float(within[0]), float(total[0])

    def with_independent_pairs(self) -> ExactPairs:
        """The same with random pairs of any two images, whatever their group."""
        random = RandomPairs.of(self.random.cells, by_group=False, iid=True)
        return replace(self, random=random, moments=None)
