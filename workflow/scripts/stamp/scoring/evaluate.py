"""How well a model did on a labeled view: AUROC or top-1 accuracy, overall and by domain.

Standard errors are those of sampling clusters of images, such as patients: see :func:`clusters`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from stamp.core.errors import UserError, suggest
from stamp.data.views import labels as read_labels
from stamp.inference.outputs import merged, merged_labels, present
from stamp.stats.auroc import MINIMUM, class_aurocs, macro, shortage
from stamp.stats.clusters import Clusters, proportion_influence, standard_error

Array = NDArray[np.float64]
Row = dict[str, Any]

AMONG = "among:"  # domains of the source's evaluation: the classes that a target is scored on
MERGED = "merged:"  # domain of the source's merged classes, which have no part in its macro mean
MOST_RECALLS = 20_000
NO_OUTPUT = "the model has no output for it"
SCHEMA: dict[str, Any] = {
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
INFLUENCE: dict[str, Any] = {  # of each cluster on the value, where that is kept
    "influence": pl.List(pl.Float64),
    "clusters": pl.List(pl.Int64),  # the numbers of those clusters; null for all in their order
}


@dataclass(frozen=True, slots=True)
class LabeledImages:
    """What is known of a view's images.

    ``labels`` are class numbers [n] (multiclass) or 0, 1 [n, C] (multilabel), NaN where unknown;
    ``clusters`` number what each image was sampled with, None where each was sampled by itself;
    ``accepted`` lists the classes that count as right, where that is not the label alone.
    """

    labels: ArrayLike
    domains: pl.Series
    clusters: Clusters | None = None
    accepted: pl.Series | None = None

    @property
    def parts(self) -> list[tuple[str, NDArray[np.bool_]]]:
        """The whole view, then its domains where there are at least two, with their rows."""
        views = [("all", np.ones(len(self.domains), dtype=bool))]
        names = sorted(self.domains.drop_nulls().unique().to_list())
        if "all" in names:
            raise UserError("a domain is named 'all', which stands for the whole view: rename it")
        if len(names) > 1:
            of_row = self.domains.to_numpy()
            views += [(name, of_row == name) for name in names]
        return views

    def clusters_of(self, member: NDArray[np.bool_]) -> Clusters | None:
        """The clusters of some of the images."""
        return None if self.clusters is None else self.clusters[member]

    def share(self, right: NDArray[np.bool_], member: NDArray[np.bool_]) -> Estimate:
        """The share of right images among some, with the influence of all clusters of the view."""
        found = _proportion(right[member], self.clusters_of(member))
        if found.influence is None:
            return found
        if self.clusters is None:
            every = np.zeros(len(member))
            every[member] = found.influence
        else:
            every = np.zeros(self.clusters.max() + 1)
            every[: len(found.influence)] = found.influence
        return replace(found, influence=every)


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
    influence: bool = False  # whether what each cluster adds to the errors is kept


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its standard error, over ``n`` labeled images; NaN where it is unknown.

    ``influence`` is what each cluster adds to the error: the root of its sum of squares is ``se``.
    ``clusters`` are the numbers of the clusters that it is of, None for all in their order.
    """

    value: float
    se: float
    n: int
    influence: Array | None = None
    clusters: Clusters | None = None


def evaluate(
    logits: ArrayLike,
    images: LabeledImages,
    task: str,
    classes: Sequence[str],
    minimum: int = MINIMUM,
) -> pl.DataFrame:
    """One row per domain and class, the aggregate first.

    Domain ``all`` is the whole view; each domain follows where there are several. The aggregate
    is class ``macro`` (metric ``auroc``) for multilabel and class ``top1`` (metric ``top1``) for
    multiclass, whose classes have their ``recall``. ``n`` counts labeled images, a class of a
    multiclass view its own. A value that cannot be had is null, and ``reason`` says why; for the
    macro mean ``reason`` also names the classes that are not in it. A class without an output (its
    logits are all NaN) has no AUROC; in a multiclass study it is never predicted. ``influence`` is
    that of the whole view's values.
    """
    z, y = np.asarray(logits, dtype=np.float64), np.asarray(images.labels, dtype=np.float64)
    there = present(z) if z.size else np.ones(len(classes), dtype=bool)
    absent = ~there if there.any() else np.zeros_like(there)
    if absent.any():
        z = np.where(absent, 0.0 if task == "multilabel" else np.finfo(np.float64).min, z)
    _check(z, y, images.domains, task, classes)
    if task == "multiclass":
        return evaluate_predictions(z.argmax(axis=1), images, classes)
    rows: list[Row] = []
    none = {name: NO_OUTPUT for name, gone in zip(classes, absent, strict=True) if gone}
    for domain, member in images.parts:
        part = replace(images, labels=y[member], clusters=images.clusters_of(member))
        found = _aurocs(z[member], part, classes, minimum, none)
        rows.extend({"domain": domain, **row} for row in found)
    return _table(rows)


def evaluate_view(
    rows: pl.DataFrame, outputs: np.ndarray, settings: EvaluationSettings, where: str
) -> pl.DataFrame:
    """The evaluation of a view with its rows, from logits or from streamed predictions.

    A merged class that the view has no labels for, as the source has not, is made from its parts:
    domain ``merged:``, where the model has an output for one of them.
    """
    labeled = [name for name in settings.merge if name in rows.columns]
    classes = [*settings.classes, *labeled]
    check_labeled(rows, settings.labeled, classes, where)
    truth = read_labels(rows, settings.task, classes, where)
    accepted = rows["accepted"] if "accepted" in rows.columns else None
    images = LabeledImages(truth, rows["domain"], clusters(rows), accepted)
    if settings.task == "multiclass":
        found = _evaluate_multiclass(images, outputs, settings)
    else:
        logits = merged(outputs, settings.classes, settings.merge)
        column = {name: place for place, name in enumerate([*settings.classes, *settings.merge])}
        there = present(logits)
        made = [one for one in settings.merge if one not in labeled and there[column[one]]]
        chosen = logits[:, [column[name] for name in classes]]
        found = evaluate(chosen, images, "multilabel", classes, settings.minimum)
        if made:
            whole = merged_labels(truth, settings.classes, [settings.merge[name] for name in made])
            one = replace(images, labels=whole, domains=pl.repeat(None, len(rows), eager=True))
            chosen = logits[:, [column[name] for name in made]]
            more = evaluate(chosen, one, "multilabel", made, settings.minimum)
            more = more.filter(pl.col("class") != "macro").with_columns(domain=pl.lit(MERGED))
            found = pl.concat([found, more])
    return found if settings.influence else found.drop(*INFLUENCE)


def clusters(rows: pl.DataFrame) -> Clusters | None:
    """The number of each image's cluster: its group; an image without a group is its own.

    None where groups are classes, and say nothing of how images were sampled: where every group is
    of one label and there are fewer than two groups per label.
    """
    if "group" not in rows.columns or rows["group"].null_count() == len(rows):
        return None
    known = rows.filter(pl.col("group").is_not_null())
    if "label" in rows.columns:
        of_group = known.group_by("group").agg(pl.col("label").drop_nulls().n_unique())
        if (of_group["label"] <= 1).all() and len(of_group) < 2 * known["label"].n_unique():
            return None
    number = rows["group"].rank("dense").cast(pl.Int64) - 1
    alone = pl.Series(np.arange(len(rows))) + len(rows)  # beyond every group's number
    found = number.zip_with(rows["group"].is_not_null(), alone)
    return np.unique(found.to_numpy(), return_inverse=True)[1].astype(np.int64)


def _evaluate_multiclass(
    images: LabeledImages, outputs: np.ndarray, settings: EvaluationSettings
) -> pl.DataFrame:
    """Predictions among the classes ``settings.among``; for logits, also on each subset."""
    classes, streamed = settings.classes, settings.streamed
    among = np.arange(len(classes)) if settings.among is None else settings.among
    z = outputs if streamed else np.where(np.isnan(outputs), -np.inf, outputs)
    chosen = outputs[:, 0] if streamed else predictions(z, among)
    every = outputs[:, 1] if streamed else z.argmax(axis=1)
    masked = len(among) < len(classes)
    found = evaluate_predictions(chosen, images, classes, every if masked else None)
    return (
        found if streamed else pl.concat([found, on_subsets(z, images, settings.subsets, classes)])
    )


def evaluate_predictions(
    predicted: ArrayLike,
    images: LabeledImages,
    classes: Sequence[str],
    of_all: ArrayLike | None = None,
) -> pl.DataFrame:
    """As :func:`evaluate` for a multiclass view, from predicted class numbers.

    Where predictions were taken among some classes only, ``of_all`` are those among all, and the
    class ``top1_of_all`` has their accuracy. Recalls of single domains are left out where they
    would be more than ``MOST_RECALLS``.
    """
    y = np.asarray(images.labels, dtype=np.float64)
    right = hits(predicted, y, images.accepted)
    right_of_all = None if of_all is None else hits(of_all, y, images.accepted)
    parts = images.parts
    rows: list[Row] = []
    for domain, member in parts:
        single = domain == "all" or len(parts) * len(classes) <= MOST_RECALLS
        known = member & ~np.isnan(y)
        why = None if known.any() else "not labeled"
        found = [_row("top1", "top1", images.share(right, known), reason=why)]
        if right_of_all is not None:
            found.append(_row("top1_of_all", "top1", images.share(right_of_all, known)))
        if single:
            found += _recalls(images, right, known, classes)
        rows.extend({"domain": domain, **row} for row in found)
    return _table(rows)


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
    logits: ArrayLike,
    images: LabeledImages,
    subsets: Mapping[str, NDArray[np.int64]],
    classes: Sequence[str],
) -> pl.DataFrame:
    """Accuracy and recalls on the images of each subset, predictions taken among its classes.

    Domain ``among:<name>``: what a target that is scored on those classes alone compares with.
    """
    y = np.asarray(images.labels, dtype=np.float64)
    rows = []
    for name, among in subsets.items():
        member = np.isin(y, among)
        right = predictions(logits, among) == y
        found = [_row("top1", "top1", images.share(right, member))]
        found += [row for row in _recalls(images, right, member, classes) if row["positives"]]
        rows += [{"domain": f"{AMONG}{name}", **row} for row in found]
    return _table(rows)


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
    z: Array, images: LabeledImages, classes: Sequence[str], minimum: int, none: Mapping[str, str]
) -> list[Row]:
    """The macro mean, then every class; those of ``none`` have no output, for the reason given."""
    labels = np.asarray(images.labels, dtype=np.float64)
    found = class_aurocs(z, labels, images.clusters)
    mean = macro(found, classes, minimum, none)
    labeled = int((~np.isnan(labels)).any(axis=1).sum())
    left_out = _left_out(mean.skipped, len(classes))
    rows = [_row("macro", "auroc", Estimate(mean.value, mean.se, labeled), reason=left_out)]
    for c, name in enumerate(classes):
        m, n = int(found.positives[c]), int(found.negatives[c])
        why = shortage(m, n, minimum) or none.get(name)
        one = Estimate(float(found.auroc[c]), float(found.se[c]), m + n, found.influence[:, c])
        rows.append(_row(name, "auroc", Estimate(np.nan, np.nan, m + n) if why else one, m, n, why))
    return rows


def _recalls(
    images: LabeledImages,
    right: NDArray[np.bool_],
    known: NDArray[np.bool_],
    classes: Sequence[str],
) -> list[Row]:
    """The share of right predictions among the images of every class, of those that are known."""
    rows_of, n = np.flatnonzero(known), int(known.sum())
    truth = np.asarray(images.labels, dtype=np.float64)[rows_of].astype(np.int64)
    order = np.argsort(truth, kind="stable")
    ends = np.searchsorted(truth[order], np.arange(len(classes) + 1))
    rows = []
    for c, name in enumerate(classes):
        own = rows_of[order[ends[c] : ends[c + 1]]]
        why = None if len(own) else "no image of this class" if n else "not labeled"
        rows.append(_row(name, "recall", _recall(images, right, own), len(own), n - len(own), why))
    return rows


def _recall(images: LabeledImages, right: NDArray[np.bool_], own: NDArray[np.intp]) -> Estimate:
    """The share of right predictions among one class's images, with its own clusters' influence."""
    if images.clusters is None:
        return replace(_proportion(right[own], None), clusters=own.astype(np.int64))
    numbers, member = np.unique(images.clusters[own], return_inverse=True)
    return replace(_proportion(right[own], member.astype(np.int64)), clusters=numbers)


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
        "influence": estimate.influence,
        "clusters": estimate.clusters,
    }


def _table(rows: list[Row]) -> pl.DataFrame:
    """The rows with their columns; influences are of the whole view's values alone."""
    for row in rows:
        whole = row["domain"] == "all" or AMONG in row["domain"]
        for name in INFLUENCE:
            kept = row[name] if whole else None
            row[name] = None if kept is None else kept.tolist()
    return pl.DataFrame(rows, schema=SCHEMA | INFLUENCE)


def _proportion(hits: NDArray[np.bool_], among: Clusters | None) -> Estimate:
    """The share of hits with its standard error over clusters."""
    n = len(hits)
    if not n:
        return Estimate(float("nan"), float("nan"), n)
    influence = proportion_influence(hits, among)
    return Estimate(float(hits.mean()), float(standard_error(influence)), n, influence)


def _left_out(skipped: dict[str, str], classes: int) -> str | None:
    """Which classes the macro mean leaves out, those of one reason together."""
    if not skipped:
        return None
    by_reason: dict[str, list[str]] = {}
    for name, why in skipped.items():
        by_reason.setdefault(why, []).append(name)
    named = "; ".join(f"{', '.join(names)}: {why}" for why, names in by_reason.items())
    return f"{classes - len(skipped)} of {classes} classes ({named})"


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
