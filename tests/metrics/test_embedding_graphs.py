"""Signals of class graphs against spanning trees, closed forms of curvature and known diagrams."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse.csgraph import connected_components, dijkstra

from stamp.metrics.of_embeddings import embedding_graphs
from stamp.metrics.of_embeddings.embedding_graphs import (
    LEAST,
    NO_GUDHI,
    PER_CLASS,
    NeighbourGraph,
    class_clouds,
    edge_curvatures,
    laplacian_logdet,
    ollivier_ricci,
    persistence_h0,
    persistence_h1,
    reduced_logdet,
)


def graph(n: int, edges: list[tuple[int, int]]) -> np.ndarray:
    found = np.zeros((n, n))
    for a, b in edges:
        found[a, b] = found[b, a] = 1.0
    return found


def complete(n: int) -> np.ndarray:
    return graph(n, list(combinations(range(n), 2)))


def cycle(n: int) -> np.ndarray:
    return graph(n, [(at, (at + 1) % n) for at in range(n)])


def spanning_trees(weights: np.ndarray) -> float:
    """The sum over all spanning trees of the product of their weights, by trying all."""
    n = len(weights)
    edges = [(a, b) for a, b in combinations(range(n), 2) if weights[a, b] > 0]
    total = 0.0
    for chosen in combinations(edges, n - 1):
        if connected_components(graph(n, list(chosen)), directed=False)[0] == 1:
            total += float(np.prod([weights[edge] for edge in chosen]))
    return total


@pytest.mark.parametrize("seed", range(3))
def test_the_log_determinant_counts_spanning_trees(seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.random((6, 6)) * (rng.random((6, 6)) < 0.7), 1)
    weights += weights.T
    weights += cycle(6) * 0.3  # connected
    degrees = weights.sum(axis=1)
    trees = spanning_trees(weights)
    expected = np.log(trees) + np.log(degrees.sum()) - np.log(degrees).sum()
    assert reduced_logdet(weights) == pytest.approx(expected)
    # and by the dense Laplacian without one row and column
    reduced = (np.diag(degrees) - weights)[1:, 1:]
    assert np.linalg.slogdet(reduced)[1] == pytest.approx(np.log(trees))


def test_the_log_determinant_of_parts_is_the_sum_and_a_lone_image_adds_nothing() -> None:
    apart = np.zeros((9, 9))
    apart[:4, :4], apart[4:8, 4:8] = complete(4), cycle(4)
    assert reduced_logdet(apart) == pytest.approx(
        reduced_logdet(complete(4)) + reduced_logdet(cycle(4))
    )
    assert reduced_logdet(np.zeros((3, 3))) == 0


@pytest.mark.parametrize("n", [3, 4, 7])
def test_curvature_of_a_complete_graph(n: int) -> None:
    """The walks at both ends differ in 1/2 against 1/(2 (n - 1)), moved over one edge."""
    expected = 1 - abs(0.5 - 0.5 / (n - 1))
    found = edge_curvatures(complete(n))
    assert len(found) == n * (n - 1) // 2
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("n", [6, 9])
def test_curvature_of_a_long_cycle_is_0(n: int) -> None:
    assert edge_curvatures(cycle(n)) == pytest.approx(0, abs=1e-12)


def test_curvature_of_a_tree_depends_on_the_degrees_of_its_ends_alone() -> None:
    """1/d_x + 1/d_y - 1: half of 2/d_x + 2/d_y - 2 of a walk that never stays."""
    edges = [(0, 1), (0, 2), (0, 3), (1, 4), (1, 5), (1, 6), (4, 7)]
    tree = graph(8, edges)
    degrees = tree.sum(axis=1)
    expected = [1 / degrees[a] + 1 / degrees[b] - 1 for a, b in sorted(edges)]
    assert edge_curvatures(tree) == pytest.approx(expected)


def transport(lengths: np.ndarray, x: int, y: int) -> float:
    """The cheapest plan between the walks of x and y, by linear programming."""
    n, paths = len(lengths), dijkstra(lengths, directed=False)
    masses = []
    for at in (x, y):
        mass = np.where(lengths[at] > 0, 0.5 / (lengths[at] > 0).sum(), 0)
        mass[at] += 0.5
        masses.append(mass)
    rows = [np.kron(np.eye(n), np.ones(n)), np.kron(np.ones(n), np.eye(n))]
    costs = np.where(np.isinf(paths), 1e6, paths)
    found = linprog(costs.ravel(), A_eq=np.vstack(rows), b_eq=np.concatenate(masses))
    return float(found.fun)


def test_curvature_with_lengths_is_that_of_the_cheapest_transport() -> None:
    cloud = np.random.default_rng(0).normal(size=(14, 3))
    lengths = NeighbourGraph.of(cloud, 4).lengths
    edges = np.argwhere(np.triu(lengths) > 0)
    expected = [1 - transport(lengths, x, y) / lengths[x, y] for x, y in edges]
    assert len(edges) > 8
    assert edge_curvatures(lengths) == pytest.approx(expected, abs=1e-7)


def test_neighbours_are_mutual_and_weighted_by_both_ends_reach() -> None:
    cloud = np.array([[0.0], [1.0], [2.5], [10.0]])
    found = NeighbourGraph.of(cloud, 1)
    assert found.lengths.tolist() == graph(4, [(0, 1)]).tolist()  # 2.5's nearest has a nearer one
    assert found.weights[0, 1] == pytest.approx(np.exp(-1))
    two = NeighbourGraph.of(cloud, 2)
    assert two.weights[0, 1] == pytest.approx(np.exp(-1 / (2.5 * 1.5)))
    assert two.lengths[3].tolist() == [0, 0, 0, 0]
    same = NeighbourGraph.of(np.zeros((5, 2)), 3)
    assert not same.lengths.any() and np.isfinite(same.weights).all()


def test_parts_of_points_on_a_line_live_until_the_gaps_between_them() -> None:
    cloud = np.array([[0.0], [1.0], [1.0], [4.0], [9.0]])
    assert persistence_h0([cloud]).value == pytest.approx(1 + 0 + 3 + 5)
    assert persistence_h0([cloud, 3 * cloud]).value == pytest.approx(2 * 9)


def test_the_loop_of_a_square_lives_from_its_side_to_its_diagonal() -> None:
    pytest.importorskip("gudhi")
    square = np.array([[0.0, 0], [0, 1], [1, 1], [1, 0]])
    assert persistence_h1([square]).value == pytest.approx(np.sqrt(2) - 1)
    assert persistence_h1([square[:3]]).value == 0
    angles = np.arange(12) * np.pi / 6
    ring = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    # born at the side of the 12-gon; filled by triangles of every fourth point
    expected = 2 * np.sin(np.pi / 3) - 2 * np.sin(np.pi / 12)
    assert persistence_h1([ring]).value == pytest.approx(expected)


def test_without_its_package_persistence_of_loops_has_a_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "gudhi", None)
    found = persistence_h1([np.eye(4)])
    assert np.isnan(found.value) and found.reason == NO_GUDHI and "topology" in NO_GUDHI


def test_a_cloud_are_the_first_images_of_a_class_on_the_sphere() -> None:
    rng = np.random.default_rng(1)
    h = rng.normal(size=(200, 3)) * 5
    y = np.repeat([0.0, 1.0, 2.0, np.nan], [PER_CLASS + 30, LEAST, LEAST - 1, 200])[:200]
    first, second = class_clouds(h, y, "multiclass")
    assert first == pytest.approx(h[:PER_CLASS] / np.linalg.norm(h[:PER_CLASS], axis=1)[:, None])
    assert len(second) == LEAST
    several = np.stack([y == 0, y == 2], axis=1).astype(float)
    (only,) = class_clouds(h, several, "multilabel")
    assert (only == first).all()


def test_without_enough_images_of_a_class_every_signal_has_a_reason() -> None:
    for signal in (laplacian_logdet, ollivier_ricci, persistence_h0, persistence_h1):
        assert str(LEAST) in signal([]).reason
    alike = [np.ones((LEAST, 2))]
    assert ollivier_ricci(alike).reason == embedding_graphs.NO_EDGES


def test_more_images_of_two_tight_groups_are_more_fragmented_than_one_group() -> None:
    rng = np.random.default_rng(2)
    one = rng.normal(size=(40, 5)) * 0.1
    two = one + np.where(np.arange(40) % 2, 5.0, 0.0)[:, None]
    assert persistence_h0([two]).value > persistence_h0([one]).value + 5
