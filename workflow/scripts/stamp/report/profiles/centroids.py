"""Centroids of classes in output space, how far they are apart, and how outputs spread about them.

An image belongs to each class that it is labeled with; of several labels (multilabel) one that has
none of the findings, and all of them known, belongs to ``No Finding``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

NONE = "No Finding"
FEWEST = 5  # images below which a class has no centroid


@dataclass(frozen=True, slots=True)
class Members:
    """Which images belong to which class: pairs of a row and a class number."""

    names: list[str]
    rows: np.ndarray
    classes: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        return np.bincount(self.classes, minlength=len(self.names))


@dataclass(frozen=True, slots=True)
class Terms:
    """Of each class: the gap to the nearest centroid, and the variance along that direction.

    ``gap`` is gamma_y = min over y' of ||mu_y - mu_y'||; ``variance`` that of the outputs of class
    y projected on the unit vector from the nearest centroid to its own, sigma_proj^2; ``ratio`` is
    r_y = sigma_proj^2 / gamma_y^2.
    """

    gap: np.ndarray
    variance: np.ndarray
    ratio: np.ndarray


def members(labels: np.ndarray, task: str, classes: Sequence[str], fewest: int = FEWEST) -> Members:
    """The classes of at least ``fewest`` images, and who belongs to them."""
    if task == "multiclass":
        names = list(classes)
        rows = np.flatnonzero(~np.isnan(labels))
        of = labels[rows].astype(np.int64)
    else:
        names = [*classes, NONE]
        healthy = np.all(labels == 0, axis=1)
        rows, of = np.nonzero(np.column_stack([labels == 1, healthy]))
    size = np.bincount(of, minlength=len(names))
    many = np.flatnonzero(size >= fewest)
    place = np.full(len(names), -1)
    place[many] = np.arange(len(many))
    keep = place[of] >= 0
    return Members([names[one] for one in many], rows[keep], place[of[keep]])


def centroids(p: np.ndarray, belong: Members) -> np.ndarray:
    """The mean output of each class."""
    sums = np.zeros((len(belong.names), p.shape[1]))
    np.add.at(sums, belong.classes, p[belong.rows])
    return sums / belong.sizes[:, None]


def class_terms(p: np.ndarray, belong: Members) -> Terms:
    """Gap, projected variance and ratio of each class; at least two classes are needed."""
    centres = centroids(p, belong)
    squared = np.sum(centres**2, axis=1)
    apart = squared[:, None] + squared - 2 * centres @ centres.T
    np.fill_diagonal(apart, np.inf)
    nearest = apart.argmin(axis=1)
    difference = centres - centres[nearest]
    gap = np.linalg.norm(difference, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        direction = difference / gap[:, None]
        own = p[belong.rows] - centres[belong.classes]
        along = np.einsum("ij,ij->i", own, direction[belong.classes])
        squares = np.bincount(belong.classes, along**2, minlength=len(belong.names))
        variance = squares / (belong.sizes - 1)
        return Terms(gap, variance, variance / gap**2)


def side_gaps(p: np.ndarray, labels: np.ndarray, fewest: int = FEWEST) -> np.ndarray:
    """``||mu_y+ - mu_y-||`` of each class, positives to negatives; NaN where either are few."""
    found = np.full(labels.shape[1], np.nan)
    for column, own in enumerate(labels.T):
        sides = [p[own == 1], p[own == 0]]
        if min(len(side) for side in sides) >= fewest:
            found[column] = np.linalg.norm(sides[0].mean(axis=0) - sides[1].mean(axis=0))
    return found
