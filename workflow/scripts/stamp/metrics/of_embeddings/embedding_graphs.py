"""Shape of each class's embeddings: the signals of TopoGeoScore (Hazratian et al. 2026).

A *cloud* are the embeddings of the first ``PER_CLASS`` source images of a class (in a multilabel
study, of its positives), each scaled to length 1. Its graph joins two images that are among each
other's ``NEIGHBOURS`` nearest. Every signal is the mean over the clouds; the same images are taken
for every model. The authors weigh the signals by weights that they learn and do not publish.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import lcm

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.cluster.hierarchy import linkage
from scipy.optimize import linear_sum_assignment
from scipy.sparse.csgraph import dijkstra
from scipy.spatial.distance import cdist

from stamp.metrics.value import Value, missing

Array = NDArray[np.float64]

PER_CLASS = 50  # the authors take 100; curvature takes most of the time
NEIGHBOURS = 10
LEAST = NEIGHBOURS + 2  # images of a class: with fewer, everything is everything's neighbour
CLASSES = 20  # at most, the first ones that have enough images
STAYS = 0.5  # share of the mass that stays at its image, as the authors have it
ROUNDING = 1e-10
NO_GUDHI = "needs the package gudhi: pip install '.[topology]'"
NO_EDGES = "no two images are among each other's nearest"


def class_clouds(h: ArrayLike, labels: ArrayLike, task: str) -> list[Array]:
    """The clouds of the classes that have ``LEAST`` images, at most ``CLASSES`` of them."""
    h, y = np.asarray(h, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    if task == "multiclass":
        members = [np.flatnonzero(y == one) for one in np.unique(y[~np.isnan(y)])]
    else:
        members = [np.flatnonzero(column == 1) for column in y.T]
    chosen = [rows[:PER_CLASS] for rows in members if len(rows) >= LEAST][:CLASSES]
    norm = np.linalg.norm(h, axis=1, keepdims=True)
    unit = h / np.where(norm > 0, norm, 1)
    return [unit[rows] for rows in chosen]


@dataclass(frozen=True, slots=True)
class NeighbourGraph:
    """Lengths and weights [n, n] of the edges between mutual neighbours; 0 where there is none."""

    lengths: Array
    weights: Array

    @classmethod
    def of(cls, cloud: Array, neighbours: int = NEIGHBOURS) -> NeighbourGraph:
        """Weights are ``exp(-d_ij^2 / (s_i s_j))``, s_i the distance to the last neighbour.

        Two images in one place have no edge: it would have no length.
        """
        apart = cdist(cloud, cloud)
        np.fill_diagonal(apart, np.inf)
        count = min(neighbours, len(cloud) - 1)
        nearest = np.argsort(apart, axis=1, kind="stable")[:, :count]
        rows = np.arange(len(cloud))
        near = np.zeros(apart.shape, dtype=bool)
        near[rows[:, None], nearest] = True
        joined = near & near.T & (apart > 0)
        reach = apart[rows, nearest[:, -1]]
        lengths = np.where(joined, apart, 0.0)
        scale = np.where(joined, np.outer(reach, reach), 1.0)
        return cls(lengths, np.where(joined, np.exp(-(lengths**2) / scale), 0.0))


def laplacian_logdet(clouds: Sequence[Array]) -> Value:
    """``sum log`` of the positive eigenvalues of the graph's normalised Laplacian.

    That is the log-determinant of the Laplacian without its zero modes. By Kirchhoff's theorem it
    is, for each connected part, ``log(T) + log(sum_i d_i) - sum_i log(d_i)``, with T the weights of
    all spanning trees and d the weighted degrees. Large: an intricate cloud.
    """
    return _mean(clouds, lambda cloud: reduced_logdet(NeighbourGraph.of(cloud).weights))


def ollivier_ricci(clouds: Sequence[Array]) -> Value:
    """Mean over edges of ``1 - W1(m_x, m_y) / d(x, y)`` (Ollivier 2009).

    ``m_x`` has mass 1/2 at x, the rest spread evenly over its neighbours; W1 is the exact transport
    cost along shortest paths. (The authors' is regularised.) Large: neighbours share neighbours.
    """

    def measured(cloud: Array) -> float:
        found = edge_curvatures(NeighbourGraph.of(cloud).lengths)
        return float(found.mean()) if len(found) else float("nan")

    return _mean(clouds, measured)


def persistence_h0(clouds: Sequence[Array]) -> Value:
    """Total finite lifetime of connected parts in the cloud's Vietoris-Rips filtration.

    Parts die at the merging heights of single linkage, so this is the length of the minimum
    spanning tree. Large: a fragmented cloud.
    """
    return _mean(clouds, lambda cloud: float(linkage(cloud, method="single")[:, 2].sum()))


def persistence_h1(clouds: Sequence[Array]) -> Value:
    """Total finite lifetime of loops in the cloud's Vietoris-Rips filtration, by GUDHI."""
    try:
        import gudhi
    except ImportError:
        return missing(NO_GUDHI)

    def measured(cloud: Array) -> float:
        tree = gudhi.RipsComplex(points=cloud).create_simplex_tree(max_dimension=2)
        tree.compute_persistence()
        born_died = np.asarray(tree.persistence_intervals_in_dimension(1)).reshape(-1, 2)
        return float((born_died[:, 1] - born_died[:, 0]).sum())

    return _mean(clouds, measured)


def reduced_logdet(weights: Array) -> float:
    """Log of the product of the positive eigenvalues of the normalised Laplacian; 0 for none."""
    degrees = weights.sum(axis=1)
    some = degrees > 0
    root = np.sqrt(degrees[some])
    scaled = weights[np.ix_(some, some)] / np.outer(root, root)
    values = np.linalg.eigvalsh(np.eye(int(some.sum())) - scaled)
    return float(np.log(values[values > ROUNDING]).sum())


def edge_curvatures(lengths: Array) -> Array:
    """The curvature of every edge of a graph with these lengths [n, n], 0 for no edge.

    Masses are multiples of one unit, so that the cheapest transport is an assignment of units. What
    both have in one place stays there.
    """
    paths = dijkstra(lengths, directed=False)
    joined = lengths > 0
    degrees = joined.sum(axis=1)
    found = []
    for x, y in np.argwhere(np.triu(joined)):
        units = lcm(int(degrees[x]), int(degrees[y]))
        surplus = np.zeros(len(lengths), dtype=np.int64)
        for at, sign in ((x, 1), (y, -1)):
            surplus[joined[at]] += sign * (units // degrees[at])
            surplus[at] += sign * round(units * STAYS / (1 - STAYS))
        taken = np.repeat(np.arange(len(surplus)), np.maximum(surplus, 0))
        given = np.repeat(np.arange(len(surplus)), np.maximum(-surplus, 0))
        costs = paths[np.ix_(taken, given)]
        moved = costs[linear_sum_assignment(costs)].sum() * (1 - STAYS) / units
        found.append(1 - moved / lengths[x, y])
    return np.array(found)


def _mean(clouds: Sequence[Array], measured: Callable[[Array], float]) -> Value:
    """The mean of a signal over the clouds that have it."""
    if not clouds:
        return missing(f"no class has {LEAST} labeled images")
    values = np.array([measured(cloud) for cloud in clouds])
    known = values[~np.isnan(values)]
    return Value(float(known.mean())) if len(known) else missing(NO_EDGES)
