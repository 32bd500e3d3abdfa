"""Temperature scaling on held-out source images, and the rules that exclude models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stamp.core.errors import UserError, suggest
from stamp.data.views import labels as read_labels
from stamp.inference.outputs import Outputs
from stamp.scoring.evaluate import LabeledImages, evaluate

Array = NDArray[np.float64]

LOWEST, HIGHEST = 0.05, 20.0
RULES = ("temperature", "chance", "none")
NO_LABELS = "no calibration image has a label: give calibration.split labeled images"


@dataclass(frozen=True, slots=True)
class ExclusionThresholds:
    """Where the rules of :func:`exclusion` draw the line."""

    temperature_above: float = 3.0
    chance_factor: float = 5.0
    chance_auroc: float = 0.55


DEFAULT_THRESHOLDS = ExclusionThresholds()


@dataclass(frozen=True, slots=True)
class Performance:
    """Accuracy or macro-AUROC on the calibration images, NaN where unknown.

    ``majority`` is the share of the most frequent class: what a constant reaches.
    """

    value: float
    task: str
    classes: int
    majority: float = 0.0


@dataclass(frozen=True, slots=True)
class Temperature:
    """A fitted temperature; ``bound`` says where it is no optimum.

    ``lower`` or ``upper``: the search ended within 1 % of its bound, or the bound is as good.
    ``flat``: the likelihood does not depend on the temperature (a constant model); it is then 1.
    """

    value: float
    nll_before: float
    nll_after: float
    bound: str | None
    n: int


def calibrate(
    held_out: Outputs,
    task: str,
    classes: Sequence[str],
    thresholds: ExclusionThresholds,
    minimum: int,
    where: str,
) -> dict[str, Any]:
    """The fitted temperature of a model and its performance on the calibration images.

    ``excluded`` has, for each rule, why it excludes the model, or None.
    """
    truth = read_labels(held_out.rows, task, classes, where)
    fitted = fit_temperature(held_out.logits, truth, task)
    images = LabeledImages(truth, held_out.rows["domain"])
    performance = evaluate(held_out.logits, images, task, classes, minimum)["value"][0]
    known = float("nan") if performance is None else performance
    reached = Performance(known, task, len(classes), majority_rate(truth, task))
    excluded = {rule: exclusion(rule, fitted.value, reached, thresholds) for rule in RULES}
    return {**asdict(fitted), "performance": performance, "excluded": excluded}


def fit_temperature(logits: ArrayLike, labels: ArrayLike, task: str) -> Temperature:
    """The T in [0.05, 20] that minimises the NLL of ``logits / T`` (Guo et al. 2017).

    Multiclass: mean over images of ``log sum_c exp(z_c / T) - z_y / T``. Multilabel: mean over
    labels of ``log(1 + exp(z / T)) - y z / T``; NaN is an unknown label. Both
    are convex in 1/T, so a bounded Brent search on log T finds the one minimum. Classes without
    an output (a column of NaN) are left out.
    """
    from scipy.optimize import minimize_scalar  # the exclusion rules do without it

    z, truth = _present(np.asarray(logits, dtype=np.float64), labels, task)
    if not np.isfinite(z).all():
        raise ValueError("logits are not finite")
    nll, n = _likelihood(z, truth, task)
    lower, upper = np.log(LOWEST), np.log(HIGHEST)
    found = minimize_scalar(
        lambda t: nll(np.exp(t)),
        bounds=(lower, upper),
        method="bounded",
        options={"xatol": 1e-7, "maxiter": 500},
    )
    value, before, after = float(np.exp(found.x)), nll(1.0), float(found.fun)
    ends = nll(LOWEST), nll(HIGHEST)
    if max(*ends, before) - min(*ends, before, after) < 1e-12:
        return Temperature(1.0, before, before, "flat", n)
    # A model that separates the classes has a likelihood that is flat, at 0, near the lower bound.
    for name, edge, there in (("lower", LOWEST, ends[0]), ("upper", HIGHEST, ends[1])):
        if there <= after + 1e-12:
            return Temperature(edge, before, there, name, n)
        if abs(found.x - np.log(edge)) < 0.01:
            return Temperature(value, before, after, name, n)
    return Temperature(value, before, after, None, n)


def majority_rate(labels: ArrayLike, task: str) -> float:
    """The share of the most frequent class among the labeled images; 0 for multilabel."""
    truth = np.asarray(labels, dtype=np.float64)
    known = truth[~np.isnan(truth)]
    if task != "multiclass" or not len(known):
        return 0.0
    return float(np.unique(known, return_counts=True)[1].max() / len(known))


def exclusion(
    rule: str,
    temperature: float,
    performance: Performance,
    thresholds: ExclusionThresholds = DEFAULT_THRESHOLDS,
) -> str | None:
    """Why a rule excludes a model, or None where it does not.

    ``temperature`` (the paper's): T above 3. It is no test of a working head: of 89 public
    CIFAR-10 networks 15 had T > 3, with accuracies up to 81 %. ``chance``: source performance
    near chance. For multiclass that is an accuracy below 5 times chance, 1/C, or, where C is so
    small that this asks for more, below the middle between chance and 1; and always one that is
    not above the majority-class rate. For multilabel it is a macro-AUROC below 0.55. An unknown
    performance does not pass it. ``none`` keeps every model.
    """
    if rule not in RULES:
        raise UserError(f"unknown calibration.exclude '{rule}': {suggest(rule, RULES)}")
    if rule == "temperature" and not temperature <= thresholds.temperature_above:
        return f"temperature {temperature:.3g} is above {thresholds.temperature_above:g}"
    return _near_chance(performance, thresholds) if rule == "chance" else None


def _near_chance(performance: Performance, thresholds: ExclusionThresholds) -> str | None:
    value, classes, majority = performance.value, performance.classes, performance.majority
    name, least = "macro-AUROC", thresholds.chance_auroc
    if performance.task == "multiclass":
        name = "accuracy"
        least = min(thresholds.chance_factor / classes, (1 + 1 / classes) / 2)
    if np.isnan(value):
        return f"calibration {name} is not known"
    if value < least:
        return f"calibration {name} {value:.3f} is below {least:.3f}, near chance"
    if value <= majority:
        return f"calibration {name} {value:.3f} is not above the majority-class rate {majority:.3f}"
    return None


def _present(z: Array, labels: ArrayLike, task: str) -> tuple[Array, Array]:
    """Logits and labels of the classes that the model has an output for."""
    truth = np.asarray(labels, dtype=np.float64)
    there = ~np.isnan(z).all(axis=0) if len(z) else np.ones(z.shape[1], dtype=bool)
    if there.all() or not there.any():
        return z, truth
    if task == "multilabel":
        return z[:, there], truth[:, there]
    place = np.where(there, np.cumsum(there) - 1.0, np.nan)
    known = ~np.isnan(truth)
    moved = np.full(len(truth), np.nan)
    moved[known] = place[truth[known].astype(np.int64)]
    return z[:, there], moved


def _likelihood(z: Array, truth: Array, task: str) -> tuple[Callable[[float], float], int]:
    """The mean negative log likelihood as a function of T, and the number of terms it averages."""
    if task == "multiclass":
        return _softmax_likelihood(z, truth)
    if task == "multilabel":
        return _sigmoid_likelihood(z, truth)
    raise ValueError(f"task is 'multiclass' or 'multilabel', not '{task}'")


def _softmax_likelihood(z: Array, truth: Array) -> tuple[Callable[[float], float], int]:
    if len(truth) != len(z):
        raise ValueError(f"{len(truth)} labels for {len(z)} rows of logits")
    known = ~np.isnan(truth)
    z, y = z[known], truth[known].astype(np.int64)
    if not len(y):
        raise UserError(NO_LABELS)
    if not (np.array_equal(y, truth[known]) and y.min() >= 0 and y.max() < z.shape[1]):
        raise UserError(
            f"calibration labels are whole numbers from 0 to {z.shape[1] - 1}, "
            f"found {truth[known].min():g} to {truth[known].max():g}"
        )
    # Relative to the true class; the maximum then keeps every exponent at most 0.
    relative = z - z[np.arange(len(z)), y][:, None]
    top = relative.max(axis=1, keepdims=True)
    relative -= top

    def nll(t: float) -> float:
        return float(np.mean(np.log(np.exp(relative / t).sum(axis=1)) + top[:, 0] / t))

    return nll, len(y)


def _sigmoid_likelihood(z: Array, truth: Array) -> tuple[Callable[[float], float], int]:
    if truth.shape != z.shape:
        raise ValueError(f"labels {truth.shape} do not match logits {z.shape}")
    known = ~np.isnan(truth)
    if not known.any():
        raise UserError(NO_LABELS)
    if not np.isin(truth[known], (0.0, 1.0)).all():
        raise UserError("calibration labels of a multilabel study are 0, 1 or missing")
    signed = np.where(truth[known] == 1, -z[known], z[known])
    return lambda t: float(np.mean(np.logaddexp(0.0, signed / t))), int(known.sum())
