"""How well a model did on a labeled view: AUROC or top-1 accuracy, overall and by domain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from stamp.core.errors import UserError, suggest
from stamp.data.views import labels as read_labels
from stamp.inference.outputs import merged, present
from stamp.stats.auroc import MINIMUM, class_aurocs, macro, shortage

Array = NDArray[np.float64]
Row = dict[str, Any]

AMONG = "among:"  # domains of the source's evaluation: the classes that a target is scored on
MOST_RECALLS = 20_000
NO_OUTPUT = "the model has no output for it"
SCHEMA = {
    "domain": pl.String,
    "class": pl.String,
    "metric": pl.String,
    "value": pl.Float64,
    "se": pl.Float64,
    "n": pl.Int64,
    "positives": pl.Int64,
    "negatives": pl.Int64,
    "reason": pl.String,
}


@dataclass(frozen=True, slots=True)
class EvaluationSettings:
    """How a view is evaluated."""

    task: str
    classes: Sequence[str]
    minimum: int = MINIMUM  # positives and negatives that an AUROC needs
    labeled: Mapping[str, Sequence[str]] = field(default_factory=dict)  # declared, by domain
    merge: Mapping[str, Sequence[str]] = field(default_factory=dict)  # parts of merged classes
    among: NDArray[np.int64] | None = None  # class numbers to predict among; None for all
    subsets: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    streamed: bool = False  # the outputs are predictions, not logits


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its standard error, over ``n`` labeled images; NaN where it is unknown."""

    value: float
    se: float
    n: int


def evaluate(
    logits: ArrayLike,
    labels: ArrayLike,
    domains: pl.Series,
    task: str,
    classes: Sequence[str],
    minimum: int = MINIMUM,
) -> pl.DataFrame:
    """One row per domain and class, the aggregate first.

    ``labels`` are class numbers [n] (multiclass) or 0, 1 [n, C] (multilabel), NaN where unknown.
    Domain ``all`` is the whole view; each domain follows where there are several. The aggregate
    is class ``macro`` (metric ``auroc``) for multilabel and class ``top1`` (metric ``top1``) for
    multiclass, whose classes have their ``recall``. ``n`` counts labeled images, a class of a
    multiclass view its own. A value that cannot be had is null, and ``reason`` says why; for the
    macro mean ``reason`` also names the classes that are not in it. A class without an output (its
    logits are all NaN) has no AUROC; in a multiclass study it is never predicted.
    """
    z, y = np.asarray(logits, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    there = present(z) if z.size else np.ones(len(classes), dtype=bool)
    absent = ~there if there.any() else np.zeros_like(there)
    if absent.any():
        z = np.where(absent, 0.0 if task == "multilabel" else np.finfo(np.float64).min, z)
    _check(z, y, domains, task, classes)
    if task == "multiclass":
        return evaluate_predictions(z.argmax(axis=1), y, domains, classes)
    rows: list[Row] = []
    for domain, member in _parts(domains):
        found = _aurocs(z[member], y[member], classes, minimum, absent)
        rows.extend({"domain": domain, **row} for row in found)
    return pl.DataFrame(rows, schema=SCHEMA)


def evaluate_view(
    rows: pl.DataFrame, outputs: np.ndarray, settings: EvaluationSettings, where: str
) -> pl.DataFrame:
    """The evaluation of a view with its rows, from logits or from streamed predictions."""
    classes = [*settings.classes, *settings.merge]
    check_labeled(rows, settings.labeled, classes, where)
    truth = read_labels(rows, settings.task, classes, where)
    if settings.task == "multiclass":
        return _evaluate_multiclass(rows, outputs, truth, settings)
    logits = merged(outputs, settings.classes, settings.merge)
    return evaluate(logits, truth, rows["domain"], "multilabel", classes, settings.minimum)


def _evaluate_multiclass(
    rows: pl.DataFrame, outputs: np.ndarray, truth: Array, settings: EvaluationSettings
) -> pl.DataFrame:
    """Predictions among the classes ``settings.among``; for logits, also on each subset."""
    classes, streamed = settings.classes, settings.streamed
    among = np.arange(len(classes)) if settings.among is None else settings.among
    z = outputs if streamed else np.where(np.isnan(outputs), -np.inf, outputs)
    chosen = outputs[:, 0] if streamed else predictions(z, among)
    every = outputs[:, 1] if streamed else z.argmax(axis=1)
    masked = len(among) < len(classes)
    accepted = rows["accepted"] if "accepted" in rows.columns else None
    found = evaluate_predictions(
        chosen, truth, rows["domain"], classes, accepted, every if masked else None
    )
    return found if streamed else pl.concat([found, on_subsets(z, truth, settings.subsets)])


def evaluate_predictions(
    predicted: ArrayLike,
    labels: ArrayLike,
    domains: pl.Series,
    classes: Sequence[str],
    accepted: pl.Series | None = None,
    of_all: ArrayLike | None = None,
) -> pl.DataFrame:
    """As :func:`evaluate` for a multiclass view, from predicted class numbers.

    ``accepted`` lists the classes that count as right for each image, where that is not its label
    alone. Where predictions were taken among some classes only, ``of_all`` are those among all,
    and the class ``top1_of_all`` has their accuracy. Recalls of single domains are left out where
    they would be more than ``MOST_RECALLS``.
    """
    y = np.asarray(labels, dtype=np.float64)
    right = hits(predicted, y, accepted)
    right_of_all = None if of_all is None else hits(of_all, y, accepted)
    parts = _parts(domains)
    rows: list[Row] = []
    for domain, member in parts:
        single = domain == "all" or len(parts) * len(classes) <= MOST_RECALLS
        found = _accuracies(right[member], y[member], classes if single else ())
        if right_of_all is not None:
            known = member & ~np.isnan(y)
            share = _proportion(right_of_all[known].sum(), int(known.sum()))
            found.insert(1, _row("top1_of_all", "top1", share))
        rows.extend({"domain": domain, **row} for row in found)
    return pl.DataFrame(rows, schema=SCHEMA)


def hits(predicted: ArrayLike, labels: Array, accepted: pl.Series | None) -> NDArray[np.bool_]:
    """Whether each prediction is the label, or in the set of classes that count as right."""
    chosen = np.asarray(predicted, dtype=np.int64)
    if accepted is None:
        return chosen == labels
    table = pl.DataFrame({"chosen": chosen.astype(np.int16), "accepted": accepted})
    among = table.select(pl.col("accepted").list.contains(pl.col("chosen")).fill_null(False))
    alone = accepted.is_null().to_numpy()
    return np.where(alone, chosen == labels, among.to_series().to_numpy())


def predictions(logits: ArrayLike, among: NDArray[np.int64]) -> NDArray[np.int64]:
    """The class of the largest logit among some classes."""
    z = np.asarray(logits)
    return among[z[:, among].argmax(axis=1)]


def on_subsets(
    logits: ArrayLike, labels: ArrayLike, subsets: Mapping[str, NDArray[np.int64]]
) -> pl.DataFrame:
    """Accuracy on the images of each subset of classes, predictions taken among them.

    Domain ``among:<name>``: what a target that is scored on those classes alone compares with.
    """
    y = np.asarray(labels, dtype=np.float64)
    rows = []
    for name, among in subsets.items():
        member = np.isin(y, among)
        right = predictions(np.asarray(logits)[member], among) == y[member]
        share = _proportion(right.sum(), int(member.sum()))
        rows.append({"domain": f"{AMONG}{name}", **_row("top1", "top1", share)})
    return pl.DataFrame(rows, schema=SCHEMA)


def check_labeled(
    rows: pl.DataFrame, declared: Mapping[str, Sequence[str]], classes: Sequence[str], where: str
) -> None:
    """Refuse a domain that is not labeled for exactly the classes that the study declares for it.

    Class-matched scores use the declared classes and outcomes the labeled ones: they must be the
    same. Domain ``all`` is the whole view; domains that are not declared are not looked at.
    """
    known = rows["domain"].drop_nulls().unique().to_list()
    for domain, names in declared.items():
        if domain != "all" and domain not in known:
            raise UserError(f"{where}: unknown domain '{domain}': {suggest(domain, known)}")
        part = rows if domain == "all" else rows.filter(pl.col("domain") == domain)
        found = _labeled_classes(part, classes)
        if absent := [name for name in names if name not in found]:
            raise UserError(f"{where}: domain '{domain}' has no label of '{absent[0]}'")
        if extra := [name for name in found if name not in names]:
            raise UserError(
                f"{where}: domain '{domain}' is labeled for '{extra[0]}' too: add it to its classes"
            )


def _labeled_classes(rows: pl.DataFrame, classes: Sequence[str]) -> list[str]:
    if "label" in rows.columns and not set(classes) <= set(rows.columns):
        present = set(rows["label"].drop_nulls().to_list())
        return [name for number, name in enumerate(classes) if number in present]
    return [name for name in classes if rows[name].drop_nulls().len()]


def _aurocs(
    z: Array, labels: Array, classes: Sequence[str], minimum: int, absent: NDArray[np.bool_]
) -> list[Row]:
    found = class_aurocs(z, labels)
    none = {name: NO_OUTPUT for name, gone in zip(classes, absent, strict=True) if gone}
    mean = macro(found, classes, minimum, none)
    labeled = int((~np.isnan(labels)).any(axis=1).sum())
    left_out = _left_out(mean.skipped, len(classes))
    rows = [_row("macro", "auroc", Estimate(mean.value, mean.se, labeled), reason=left_out)]
    for c, name in enumerate(classes):
        m, n = int(found.positives[c]), int(found.negatives[c])
        why = shortage(m, n, minimum) or none.get(name)
        value, se = (np.nan, np.nan) if why else (found.auroc[c], found.se[c])
        rows.append(_row(name, "auroc", Estimate(value, se, m + n), m, n, why))
    return rows


def _accuracies(right: NDArray[np.bool_], labels: Array, classes: Sequence[str]) -> list[Row]:
    known = ~np.isnan(labels)
    truth, right = labels[known].astype(np.int64), right[known]
    n = len(truth)
    sizes = np.bincount(truth, minlength=len(classes))
    caught = np.bincount(truth, right, minlength=len(classes))
    share = _proportion(right.sum(), n)
    rows = [_row("top1", "top1", share, reason=None if n else "not labeled")]
    for c, name in enumerate(classes):
        own = int(sizes[c])
        why = None if own else "no image of this class" if n else "not labeled"
        rows.append(_row(name, "recall", _proportion(caught[c], own), own, n - own, why))
    return rows


def _row(
    name: str,
    metric: str,
    estimate: Estimate,
    positives: int | None = None,
    negatives: int | None = None,
    reason: str | None = None,
) -> Row:
    return {
        "class": name,
        "metric": metric,
        "value": None if np.isnan(estimate.value) else float(estimate.value),
        "se": None if np.isnan(estimate.se) else float(estimate.se),
        "n": estimate.n,
        "positives": positives,
        "negatives": negatives,
        "reason": reason,
    }


def _proportion(hits: float, n: int) -> Estimate:
    """A proportion and its binomial standard error ``sqrt(p (1 - p) / n)``."""
    if not n:
        return Estimate(float("nan"), float("nan"), n)
    p = float(hits) / n
    return Estimate(p, float(np.sqrt(p * (1 - p) / n)), n)


def _left_out(skipped: dict[str, str], classes: int) -> str | None:
    """Which classes the macro mean leaves out, those of one reason together."""
    if not skipped:
        return None
    by_reason: dict[str, list[str]] = {}
    for name, why in skipped.items():
        by_reason.setdefault(why, []).append(name)
    named = "; ".join(f"{', '.join(names)}: {why}" for why, names in by_reason.items())
    return f"{classes - len(skipped)} of {classes} classes ({named})"


def _parts(domains: pl.Series) -> list[tuple[str, NDArray[np.bool_]]]:
    """The whole view, then its domains where there are at least two, with their rows."""
    views = [("all", np.ones(len(domains), dtype=bool))]
    names = sorted(domains.drop_nulls().unique().to_list())
    if "all" in names:
        raise UserError("a domain is named 'all', which stands for the whole view: rename it")
    if len(names) > 1:
        of_row = domains.to_numpy()
        views += [(name, of_row == name) for name in names]
    return views


def _check(z: Array, y: Array, domains: pl.Series, task: str, classes: Sequence[str]) -> None:
    """Raise where logits, labels and domains do not belong together."""
    if task not in ("multiclass", "multilabel"):
        raise ValueError(f"task is 'multiclass' or 'multilabel', not '{task}'")
    n, c = len(domains), len(classes)
    if z.shape != (n, c):
        raise ValueError(f"logits {z.shape} are not {n} images x {c} classes")
    if y.shape != ((n, c) if task == "multilabel" else (n,)):
        raise ValueError(f"labels {y.shape} do not match logits {z.shape} of a {task} study")
    if not np.isfinite(z).all():
        raise ValueError("logits are not finite")
    if task == "multiclass" and not (np.isnan(y) | np.isin(y, np.arange(c))).all():
        raise ValueError(f"labels are whole numbers from 0 to {c - 1}")
