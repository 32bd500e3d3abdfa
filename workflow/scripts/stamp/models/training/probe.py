"""Linear probes: logistic regression with an L2 penalty on the embeddings of a frozen backbone.

For class c, over its labeled images, ``mean loss + penalty / 2 * |w_c|^2`` is least; the bias is
not penalised. The loss is a mean, so that a penalty means the same on few images and on many:
scikit-learn's ``C``, which weighs a sum, is ``1 / (n penalty)``. The paper names no solver and no
penalty; the default grid is this project's, and the validation images choose from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, logsumexp, softmax

from stamp.core.artifacts import ids_digest, read_arrays
from stamp.core.errors import UserError
from stamp.data import views
from stamp.models.training.validation import check_validation, metric_of

Array = NDArray[np.float64]

DEFAULTS: dict[str, Any] = {
    "penalty": [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0],
    "standardise": True,
}
TOLERANCE = 1e-7  # largest entry of the gradient, in units in which the curvature is about 1
STEPS = 10_000
BLOCK = 8192
CONSTANT = 1e-6  # a feature that varies by less than this share of its size carries nothing


@dataclass(frozen=True, slots=True)
class LabeledEmbeddings:
    """Embeddings [n, width] and labels: class numbers [n], or 0, 1 [n, C]; NaN where unknown."""

    embeddings: NDArray[Any]
    labels: Array


def read_embeddings(
    file: str | Path,
    expected: Mapping[str, str],
    rows: pl.DataFrame,
    task: str,
    classes: Sequence[str],
) -> LabeledEmbeddings:
    """The embeddings of a view, from a file that says what is ``expected``, and their labels."""
    found = read_arrays(file, **expected, ids=ids_digest(rows["image"]))["embeddings"]
    truth = views.labels(rows, task, classes, f"view '{expected['view']}'")
    return LabeledEmbeddings(found, truth)


@dataclass(frozen=True, slots=True)
class FittedHead:
    """Logits are ``embeddings @ weight.T + bias``; ``constant`` says which classes have no weights.

    ``curve`` has one record per penalty, the strongest first.
    """

    weight: Array
    bias: Array
    penalty: float
    curve: list[dict[str, Any]]
    constant: dict[int, str]

    @property
    def arrays(self) -> dict[str, NDArray[np.float32]]:
        """Weight and bias as they are written."""
        return {"weight": self.weight.astype(np.float32), "bias": self.bias.astype(np.float32)}

    def record(self, classes: Sequence[str]) -> dict[str, Any]:
        """How it was fitted, with classes by name."""
        constant = {classes[c]: why for c, why in self.constant.items()}
        return {"penalty": self.penalty, "curve": self.curve, "constant": constant}


@dataclass(frozen=True, slots=True)
class DesignMatrix:
    """Embeddings centred, scaled to unit spread and rotated to their principal axes."""

    values: Array
    centre: Array
    scale: Array
    axes: Array
    variances: Array

    def fold(self, weight: Array, bias: Array) -> tuple[Array, Array]:
        """Weights and biases for the original embeddings."""
        raw = (weight @ self.axes.T) / self.scale
        return raw, bias - raw @ self.centre


@dataclass(frozen=True, slots=True)
class Targets:
    """0/1 targets [n, C], and what each entry of the loss counts: 0 where there is no label."""

    values: Array
    counts: Array
    multiclass: bool

    @property
    def curvature(self) -> Array:
        """``p (1 - p)`` at each class's share of positives: about the loss's second derivative."""
        share = (self.values * self.counts).sum(axis=0)
        return share * (1 - share)


@dataclass(frozen=True, slots=True)
class Solution:
    """Where the solver ended, in the design's own units."""

    weight: Array
    bias: Array
    loss: float
    steps: int
    gradient: float


def design(features: NDArray[Any], standardise: bool) -> DesignMatrix:
    """The features as the solver sees them, float64, in one copy.

    The penalty is the same in any rotation, and along the principal axes the loss is nearly
    separable: the solver then needs tens of steps where it would need thousands.
    """
    values = np.array(features, dtype=np.float64)
    centre = values.mean(axis=0)
    size = np.abs(values).max(axis=0)
    values -= centre
    spread = values.std(axis=0)
    scale = np.where(spread > CONSTANT * size, spread if standardise else 1.0, np.inf)
    values /= scale
    variances, axes = np.linalg.eigh(values.T @ values / len(values))
    for start in range(0, len(values), BLOCK):
        values[start : start + BLOCK] = values[start : start + BLOCK] @ axes
    return DesignMatrix(values, centre, scale, axes, np.maximum(variances, 0))


def targets(labels: Array, classes: Sequence[int]) -> Targets:
    """The targets of some classes from class numbers [n] or 0, 1, NaN labels [n, C]."""
    if labels.ndim == 1:
        values = (labels[:, None] == np.asarray(classes)).astype(np.float64)
        return Targets(values, np.full((len(labels), 1), 1 / len(labels)), True)
    chosen = labels[:, list(classes)]
    known = ~np.isnan(chosen)
    return Targets(np.where(known, chosen, 0.0), known / known.sum(axis=0), False)


def loss_and_gradient(logits: Array, wanted: Targets) -> tuple[float, Array]:
    """The mean loss, summed over classes, and its gradient in the logits.

    ``log(1 + exp(z)) - y z`` with gradient ``sigmoid(z) - y`` for each class; multinomial,
    ``log sum exp(z) - z_y`` with gradient ``softmax(z) - y``.
    """
    y, counts = wanted.values, wanted.counts
    if wanted.multiclass:
        each = logsumexp(logits, axis=1, keepdims=True) - (y * logits).sum(axis=1, keepdims=True)
        return float((each * counts).sum()), counts * (softmax(logits, axis=1) - y)
    each = np.logaddexp(0, logits) - y * logits
    return float((each * counts).sum()), counts * (expit(logits) - y)


def objective(
    parameters: Array, values: Array, wanted: Targets, penalty: float
) -> tuple[float, Array]:
    """The penalised loss of ``parameters`` [C, d + 1], the bias last, and its gradient."""
    weight, bias = parameters[:, :-1], parameters[:, -1]
    loss, slope = loss_and_gradient(values @ weight.T + bias, wanted)
    gradient = np.column_stack([slope.T @ values + penalty * weight, slope.sum(axis=0)])
    return loss + penalty / 2 * float((weight**2).sum()), gradient


def solve(made: DesignMatrix, wanted: Targets, penalty: float, start: Array) -> Solution:
    """The least penalised loss, by L-BFGS in units of about unit curvature (all classes at once).

    Along axis j the loss of class c has a second derivative of about
    ``p_c (1 - p_c) variance_j + penalty``; a parameter's unit is one over the root of that.
    """
    curvature = wanted.curvature[:, None]
    bent = np.hstack([curvature * made.variances + penalty, curvature])
    unit = 1 / np.sqrt(np.maximum(bent, 1e-12 * bent.max()))

    def scaled(flat: Array) -> tuple[float, Array]:
        value, gradient = objective(flat.reshape(unit.shape) * unit, made.values, wanted, penalty)
        return value, (gradient * unit).ravel()

    found = minimize(
        scaled,
        (start / unit).ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": STEPS, "maxfun": 2 * STEPS, "maxcor": 20, "ftol": 0, "gtol": TOLERANCE},
    )
    parameters = found.x.reshape(unit.shape) * unit
    weight, bias = parameters[:, :-1], parameters[:, -1]
    if wanted.multiclass:
        bias = bias - bias.mean()  # a constant added to all logits changes nothing
    loss = float(found.fun) - penalty / 2 * float((weight**2).sum())
    return Solution(weight, bias, loss, int(found.nit), float(np.abs(found.jac).max()))


def constants(labels: Array, classes: int) -> dict[int, str]:
    """The classes that training labels can't teach, and why."""
    if labels.ndim == 1:
        present = np.bincount(labels.astype(int), minlength=classes)
        return {c: "no positive training image" for c in range(classes) if not present[c]}
    found = {}
    for value, name in ((0, "negative"), (1, "positive")):
        for c in np.flatnonzero(~(labels == value).any(axis=0)):
            found[int(c)] = f"no {name} training image"
    for c in np.flatnonzero(np.isnan(labels).all(axis=0)):
        found[int(c)] = "no training label"
    return dict(sorted(found.items()))


def log_odds(labels: Array, c: int) -> float:
    """The log-odds of a class by its labels, half an image added on both sides."""
    column = labels if labels.ndim == 1 else labels[:, c]
    wanted = c if labels.ndim == 1 else 1
    positive = int((column == wanted).sum())
    negative = int((~np.isnan(column)).sum()) - positive
    return float(np.log((positive + 0.5) / (negative + 0.5)))


def fit(
    train: LabeledEmbeddings,
    val: LabeledEmbeddings,
    task: str,
    classes: int,
    penalties: Sequence[float],
    standardise: bool,
) -> FittedHead:
    """The linear head with the penalty that is best on the validation images.

    Labels are class numbers [n] (multiclass) or 0, 1 [n, C] (multilabel), NaN where unknown. Of
    equally good penalties the strongest is taken, and none at which the solver does not reach its
    tolerance. A class without positives or negatives gets no weights and a bias at its log-odds.
    """
    check_validation(val.labels)
    known = ~np.isnan(train.labels.reshape(len(train.labels), -1)).all(axis=1)
    labels = train.labels[known]
    constant = constants(labels, classes)
    fitted = [c for c in range(classes) if c not in constant]
    if len(fitted) < (2 if task == "multiclass" else 1):
        raise UserError("the training labels tell no classes apart; a probe can't be fitted")
    made = design(train.embeddings[known], standardise)
    wanted = targets(labels, fitted)
    start = np.zeros((len(fitted), made.values.shape[1] + 1))
    curve: list[dict[str, Any]] = []
    best, head = -np.inf, None
    for penalty in sorted(penalties, reverse=True):
        found = solve(made, wanted, penalty, start)
        start = np.column_stack([found.weight, found.bias])
        weight, bias = _whole(made, found, labels, fitted, constant, classes)
        metric = metric_of(val.embeddings @ weight.T + bias, val.labels)
        converged = found.gradient <= 10 * TOLERANCE
        curve.append(
            {
                "penalty": float(penalty),
                "metric": metric,
                "train_loss": found.loss / (1 if wanted.multiclass else len(fitted)),
                "steps": found.steps,
                "converged": converged,
            }
        )
        if converged and metric > best:
            best = metric
            head = FittedHead(weight, bias, float(penalty), curve, constant)
    if head is None:
        raise UserError(
            f"the solver reached its tolerance at none of the penalties {sorted(penalties)}; "
            "use larger ones"
        )
    return head


def _whole(
    made: DesignMatrix,
    found: Solution,
    labels: Array,
    fitted: Sequence[int],
    constant: dict[int, str],
    classes: int,
) -> tuple[Array, Array]:
    """Weights and biases of all classes, for the original embeddings."""
    weight, bias = np.zeros((classes, len(made.scale))), np.zeros(classes)
    weight[fitted], bias[fitted] = made.fold(found.weight, found.bias)
    level = 0.0
    if labels.ndim == 1 and constant:  # log-odds against what the other classes add up to
        level = float(logsumexp(made.values @ found.weight.T + found.bias, axis=1).mean())
    for c in constant:
        bias[c] = log_odds(labels, c) + level
    return weight, bias
