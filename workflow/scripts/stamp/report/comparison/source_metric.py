"""The source metric that each outcome is set beside: over the same classes, with its errors.

An outcome of a target is a mean over some classes: those that are labeled there often enough and
that the model has an output for, or those that its predictions are taken among. The source metric
beside it is over the same ones, as far as the source is labeled for them. Models are measured on
the same source images, so their errors go together: each row has its covariances with all models.
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
Weights = dict[str, float]  # of the values of one model at the source, by class or domain


@dataclass(frozen=True, slots=True)
class SourceValues:
    """One model's values at the source by class (multilabel) or by domain (multiclass).

    ``influence`` is what each cluster of images adds to their errors, where that was kept.
    """

    metric: str
    value: dict[str, float]
    n: dict[str, int | None]
    influence: dict[str, np.ndarray]
    headline: Weights  # of the aggregate over all classes

    def mean(self, weights: Weights) -> tuple[float | None, int | None, np.ndarray | None]:
        """A weighted mean, the number of images behind it, and its clusters' influence."""
        if not weights:
            return None, None, None
        value = sum(weight * self.value[key] for key, weight in weights.items())
        images = max((count for key in weights if (count := self.n[key]) is not None), default=None)
        if not all(key in self.influence for key in weights):
            return value, images, None
        parts = [weight * self.influence[key] for key, weight in weights.items()]
        return value, images, np.sum(parts, axis=0)


def source_values(evaluations: pl.DataFrame) -> dict[str, SourceValues]:
    """What every model reaches at the source, by class or by domain."""
    rows = evaluations.filter(pl.col("view") == SOURCE)
    at = "class" if (rows["class"] == "macro").any() else "domain"
    if at == "class":
        single = pl.col("domain").is_in(["all", MERGED]) & (pl.col("class") != "macro")
    else:
        single = pl.col("class") == "top1"
    found = {}
    for (model,), every in rows.filter(single).group_by("model", maintain_order=True):
        part = every.drop_nulls("value")
        known = part.drop_nulls("influence") if "influence" in part.columns else part.clear()
        whole = part.filter(pl.col("domain") == "all")[at].to_list()
        found[str(model)] = SourceValues(
            metric=every["metric"][0],
            value=dict(part.select(at, "value").iter_rows()),
            n=dict(part.select(at, "n").iter_rows()),
            influence={row[at]: np.array(row["influence"]) for row in known.iter_rows(named=True)},
            headline={name: 1 / len(whole) for name in whole},
        )
    return found


def weights_of(named: pl.DataFrame, evaluations: pl.DataFrame) -> dict[str, dict[str, Weights]]:
    """How the source's values are weighted for each outcome and model.

    ``named`` are the aggregate rows of the targets, each with its outcome: an outcome of several
    domains weights each of them alike, and each of these its classes.
    """
    source = source_values(evaluations)
    if not source:
        return {}
    single = (pl.col("metric") == "auroc") & (pl.col("class") != "macro")
    scored = evaluations.filter(single & pl.col("value").is_not_null())
    classes: dict[tuple[str, str, str], list[str]] = {}
    for model, view, domain, name in scored.select("model", "view", "domain", "class").iter_rows():
        classes.setdefault((model, view, domain), []).append(name)
    found: dict[str, dict[str, Weights]] = {}
    for (outcome, model), part in named.group_by("outcome", "model", maintain_order=True):
        shares = []
        if one := source.get(str(model)):
            for view, domain in part.select("view", "domain").iter_rows():
                scored_on = classes.get((str(model), view, domain))
                shares.append(_weights(one, f"{AMONG}{view}", scored_on))
        found.setdefault(str(outcome), {})[str(model)] = mean_weights(shares)
    return found


def _weights(one: SourceValues, subset: str, classes: Sequence[str] | None) -> Weights:
    """Those of one row of a target: its subset of classes, its single classes, or the headline."""
    if subset in one.value:
        return {subset: 1.0}
    if classes is None:
        return one.headline
    used = [name for name in classes if name in one.value]
    return {name: 1 / len(used) for name in used}


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


def _differ(one: Weights, other: Weights) -> bool:
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
