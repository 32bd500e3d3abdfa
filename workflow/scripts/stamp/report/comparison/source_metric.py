"""The class-matched source metric that each outcome is set beside, with its errors.

An outcome of a target is over some classes: those that are labeled there often enough and that the
model has an output for, or those that its predictions are taken among. The source metric beside it
is over the same ones, as far as the source is labeled for them, and weighted as the outcome is:
``sum_c w_c recall_c`` with the target's share ``w_c`` of each class for an accuracy, since that is
what it would be if only the mix of classes changed; equal weights for a macro mean of AUROCs, which
do not depend on how frequent a class is. Models are measured on the same source images, so their
errors go together: each row has its covariances with all models.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from stamp.config.view_names import SOURCE
from stamp.scoring.evaluate import AMONG, MERGED

AGGREGATES = ("macro", "top1")
WHOLE = "all"
Row = tuple[str, str]  # domain and class of a row of the source's evaluation
Weights = dict[Row, float]  # of the values of one model at the source
Mix = Mapping[str, float]  # the shares of classes, or numbers in proportion to them
TOP1: Row = (WHOLE, "top1")


@dataclass(frozen=True, slots=True)
class Influence:
    """What some clusters of images add to an error; of the others, nothing."""

    clusters: np.ndarray
    values: np.ndarray


@dataclass(frozen=True, slots=True)
class SourceValues:
    """One model's values at the source by class (multilabel), or accuracy and recalls (multiclass).

    ``influence`` is what each cluster of images adds to their errors, where that was kept.
    """

    metric: str
    value: dict[Row, float]
    n: dict[Row, int | None]
    influence: dict[Row, Influence]
    headline: Weights  # of the aggregate over all classes

    @property
    def multilabel(self) -> bool:
        """Whether the headline is a mean over classes."""
        return TOP1 not in self.value

    @property
    def clusters(self) -> int:
        """How many clusters of images there are."""
        return 1 + max((one.clusters.max(initial=-1) for one in self.influence.values()), default=0)

    def mean(self, weights: Weights) -> tuple[float | None, int | None, np.ndarray | None]:
        """A weighted mean, the number of images behind it, and its clusters' influence."""
        if not weights:
            return None, None, None
        value = sum(weight * self.value[key] for key, weight in weights.items())
        images = self._images(weights)
        if not all(key in self.influence for key in weights):
            return value, images, None
        parts = [self.influence[key] for key in weights]
        total = np.zeros(self.clusters)
        np.add.at(
            total,
            np.concatenate([part.clusters for part in parts]),
            np.concatenate(
                [w * part.values for w, part in zip(weights.values(), parts, strict=True)]
            ),
        )
        return value, images, total

    def _images(self, weights: Weights) -> int | None:
        """The labeled images of the rows: those of classes, as far as each has its own, added."""
        of_domain: dict[str, list[int]] = {}
        for key in weights:
            if (count := self.n[key]) is not None:
                of_domain.setdefault(key[0], []).append(count)
        together = max if self.multilabel else sum
        return max(map(together, of_domain.values()), default=None)

    def shares(self, domain: str) -> dict[str, float]:
        """The classes' shares of the images that the accuracy of a domain is over."""
        counts = {
            name: self.n[place, name] or 0
            for place, name in self.value
            if place == domain and name != TOP1[1]
        }
        whole = sum(counts.values())
        return {name: count / whole for name, count in counts.items()} if whole else {}


def source_values(evaluations: pl.DataFrame) -> dict[str, SourceValues]:
    """What every model reaches at the source, by class, and among the classes of each target."""
    rows = evaluations.filter(pl.col("view") == SOURCE)
    if multilabel := bool((rows["class"] == "macro").any()):
        kept = pl.col("domain").is_in([WHOLE, MERGED]) & (pl.col("class") != "macro")
    else:
        where = (pl.col("domain") == WHOLE) | pl.col("domain").str.starts_with(AMONG)
        kept = where & ((pl.col("class") == "top1") | (pl.col("metric") == "recall"))
    found = {}
    for (model,), every in rows.filter(kept).group_by("model", maintain_order=True):
        part = every.drop_nulls("value")
        keys = list(zip(part["domain"], part["class"], strict=True))
        whole = [key for key in keys if key[0] == WHOLE]
        found[str(model)] = SourceValues(
            metric=every["metric"][0],
            value=dict(zip(keys, part["value"], strict=True)),
            n=dict(zip(keys, part["n"], strict=True)),
            influence=_influences(keys, part),
            headline={key: 1 / len(whole) for key in whole} if multilabel else {TOP1: 1.0},
        )
    return found


def _influences(keys: Sequence[Row], rows: pl.DataFrame) -> dict[Row, Influence]:
    """The influence of every row that has one."""
    if "influence" not in rows.columns:
        return {}
    clusters = rows["clusters"] if "clusters" in rows.columns else [None] * len(rows)
    found = {}
    for key, values, numbers in zip(keys, rows["influence"], clusters, strict=True):
        if values is not None:
            every = np.array(values)
            at = np.arange(len(every)) if numbers is None else np.array(numbers, dtype=np.int64)
            found[key] = Influence(at, every)
    return found


@dataclass(frozen=True, slots=True)
class TargetClasses:
    """What each domain of each target is over: classes by model (multilabel), or a class mix."""

    scored: Mapping[tuple[str, str, str], Sequence[str]]  # by model, view and domain
    mixes: Mapping[tuple[str, str], Mix]  # by view and domain

    def mix(self, view: str, domain: str) -> Mix | None:
        """The class mix of a domain; of its target where only that is known."""
        return self.mixes.get((view, domain)) or self.mixes.get((view, WHOLE))


def target_classes(
    evaluations: pl.DataFrame, declared: Mapping[str, Mapping[str, Mix]]
) -> TargetClasses:
    """The classes of the targets, from their labels; a ``declared`` mix counts for these."""
    single = (pl.col("metric") == "auroc") & (pl.col("class") != "macro")
    scored: dict[tuple[str, str, str], list[str]] = {}
    rows = evaluations.filter(single & pl.col("value").is_not_null())
    for model, view, domain, name in rows.select("model", "view", "domain", "class").iter_rows():
        scored.setdefault((model, view, domain), []).append(name)
    mixes: dict[tuple[str, str], dict[str, float]] = {}
    if "positives" in evaluations.columns:
        counted = (pl.col("metric") == "recall") & (pl.col("positives") > 0)
        # in the order of the rows: sums of floats in another order differ in their last bits
        once = evaluations.filter(counted).unique(
            ["view", "domain", "class"], keep="first", maintain_order=True
        )
        for view, domain, name, count in once.select(
            "view", "domain", "class", "positives"
        ).iter_rows():
            mixes.setdefault((view, domain), {})[name] = count
    for view, by_domain in declared.items():
        if WHOLE in by_domain:
            mixes = {key: mix for key, mix in mixes.items() if key[0] != view}
        mixes |= {(view, domain): dict(mix) for domain, mix in by_domain.items()}
    return TargetClasses(scored, mixes)


def weights_of(
    named: pl.DataFrame, evaluations: pl.DataFrame, declared: Mapping[str, Mapping[str, Mix]]
) -> dict[str, dict[str, Weights]]:
    """How the source's values are weighted for each outcome and model.

    ``named`` are the aggregate rows of the targets, each with its outcome: an outcome of several
    domains weights each of them alike, and each of these its classes.
    """
    source = source_values(evaluations)
    if not source:
        return {}
    classes = target_classes(evaluations, declared)
    found: dict[str, dict[str, Weights]] = {}
    for (outcome, model), part in named.group_by("outcome", "model", maintain_order=True):
        shares = []
        if one := source.get(str(model)):
            for view, domain in part.select("view", "domain").iter_rows():
                if one.multilabel:
                    shares.append(_of_classes(one, classes.scored.get((str(model), view, domain))))
                else:
                    shares.append(_of_mix(one, f"{AMONG}{view}", classes.mix(view, domain)))
        found.setdefault(str(outcome), {})[str(model)] = mean_weights(shares)
    return found


def _of_classes(one: SourceValues, classes: Sequence[str] | None) -> Weights:
    """Equal weights of the classes that a row of a target is over, or the headline's."""
    if classes is None:
        return one.headline
    used = [key for key in one.value if key[1] in classes]
    return {key: 1 / len(used) for key in used}


def _of_mix(one: SourceValues, subset: str, mix: Mix | None) -> Weights:
    """The target's shares of the classes, as far as the source is labeled for them.

    They are of recalls among the target's subset of classes, where it has one. Where no mix is
    known, or it is the source's own, the accuracy stands for all classes.
    """
    domain = subset if (subset, TOP1[1]) in one.value else WHOLE
    own = one.shares(domain)
    if mix is None or not own:
        return {(domain, TOP1[1]): 1.0}
    known = {name: count for name, count in mix.items() if name in own and count > 0}
    whole = sum(known.values())
    shares = {name: count / whole for name, count in known.items()}
    if shares and not _differ(shares, own):
        return {(domain, TOP1[1]): 1.0}
    return {(domain, name): share for name, share in shares.items()}


def mean_weights(parts: Sequence[Weights]) -> Weights:
    """The mean of several weightings, empty where one of them is."""
    if not parts or not all(parts):
        return {}
    keys = dict.fromkeys(key for part in parts for key in part)
    return {key: sum(part.get(key, 0.0) for part in parts) / len(parts) for key in keys}


def source_rows(
    evaluations: pl.DataFrame, weights: Mapping[str, Mapping[str, Weights]]
) -> list[dict[str, Any]]:
    """Rows ``source:<outcome>`` of the outcomes that are over other classes than ``source`` is.

    The rows ``source`` come first, for their covariances.
    """
    source = source_values(evaluations)
    whole = {model: one.headline for model, one in source.items()}
    rows = _rows(SOURCE, source, whole)
    for outcome, of_model in weights.items():
        own = {model: of_model.get(model, {}) for model in source}
        if any(_differ(own[model], whole[model]) for model in source):
            rows += _rows(f"{SOURCE}:{outcome}", source, own)
    return rows


def _differ(one: Mapping[Any, float], other: Mapping[Any, float]) -> bool:
    """Whether two weightings are not the same but for rounding."""
    return any(abs(one.get(key, 0) - other.get(key, 0)) > 1e-9 for key in {*one, *other})


def _rows(
    name: str, source: Mapping[str, SourceValues], weights: Mapping[str, Weights]
) -> list[dict[str, Any]]:
    """The models' source metric under some weights, with its standard errors and covariances."""
    means = {model: one.mean(weights[model]) for model, one in source.items()}
    known = {
        model: influence for model, (_, _, influence) in means.items() if influence is not None
    }
    stack = np.full((len(means), *next(iter(known.values()), np.empty(0)).shape), np.nan)
    for place, model in enumerate(means):
        stack[place] = known.get(model, np.nan)
    shared = stack @ stack.T
    rows = []
    for place, (model, (value, images, _)) in enumerate(means.items()):
        row = {"model": model, "outcome": name, "metric": source[model].metric, "value": value}
        row |= {"n": images, "se": None, "covariance": None}
        if model in known:
            row |= {
                "se": float(np.sqrt(shared[place, place])),
                "covariance": shared[place].tolist(),
            }
        rows.append(row)
    return rows


def covariance(rows: pl.DataFrame, models: Iterable[str]) -> np.ndarray:
    """The covariance of the errors of a source metric's rows, in the order of the models.

    Where only standard errors are known, errors are taken as independent; NaN where there is none.
    """
    models, known = list(models), rows["model"].to_list()
    place = {model: at for at, model in enumerate(known)}
    found = np.full((len(known) + 1, len(known) + 1), np.nan)  # the last is of models without a row
    for at, row in enumerate(rows.iter_rows(named=True)):
        se, shared = row["se"], row.get("covariance")
        if shared is not None:
            found[at, :-1] = [np.nan if one is None else one for one in shared]
        elif se is not None:
            found[at, :-1] = 0
            found[at, at] = se**2
    order = [place.get(model, len(known)) for model in models]
    return found[np.ix_(order, order)]
