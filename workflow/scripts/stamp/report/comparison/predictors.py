"""Every predictor of a study's outcomes: STAMP, the source metric, and all that are metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import polars as pl

from stamp.config.registries.metrics import METRICS
from stamp.config.view_names import SOURCE
from stamp.report.analysis import AnalysisData
from stamp.report.comparison import paired
from stamp.report.outcomes import (
    MEAN,
    outcomes_of_mean,
    shown_outcomes,
    source_outcome,
    values,
    with_outcomes,
)
from stamp.stats.on_the_line import accuracy_on_the_line

STAMP, SOURCE_METRIC, ON_LINE = "stamp", "source_metric", "on_the_line"
SOURCE_MATCHED = "source_matched"
TITLES = {
    STAMP: "STAMP",
    SOURCE_METRIC: "Source metric",
    SOURCE_MATCHED: "Class-matched source metric",
    ON_LINE: "Accuracy on the line",
}
NEEDS = {
    STAMP: "",
    SOURCE_METRIC: "labels",
    SOURCE_MATCHED: "labels, class mix",
    ON_LINE: "labels, target labels, other models",
}
DIRECTIONS = {one.name: one.direction for one in METRICS} | dict.fromkeys(TITLES, 1)
SUBSETS = (5, 12)  # models at hand when one is picked; and all of them
SHARE = 0.75  # of the models, that a predictor must have to be in the common set
CLIP = 10_000  # images where their number is not known: shares stay half of one off 0 and 1


Values = dict[str, float | None]  # by model


@dataclass(frozen=True, slots=True)
class MetricValues:
    """Every metric of a study's models, averaged over the domains of each outcome once.

    ``of_model`` are those that hold for every outcome, ``estimates`` those of a target's own
    images, by outcome; ``of_mean`` are the outcomes that the mean is over.
    """

    of_model: dict[str, Values]
    estimates: dict[str, dict[str, Values]]
    of_mean: list[str]

    @classmethod
    def of(cls, data: AnalysisData) -> Self:
        """Those of a study."""
        found = cls({}, {}, outcomes_of_mean(data.outcomes, data.texts["relabelled"]))
        of_model = data.metrics.filter(pl.col("view").is_null().all().over("metric"))
        for name, model, value in of_model.select("metric", "model", "value").iter_rows():
            found.of_model.setdefault(name, {})[model] = value
        of_targets = data.metrics.filter(
            pl.col("view").is_not_null() & ~pl.col("metric").is_in(list(found.of_model))
        )
        means = (
            with_outcomes(of_targets, data.texts["outcomes"], "metric")
            .group_by("metric", "outcome", "model", maintain_order=True)
            .agg(
                pl.when(pl.col("value").is_null().any())
                .then(None)
                .otherwise(pl.col("value").mean())
                .alias("value")
            )
        )
        for name, outcome, model, value in means.iter_rows():
            found.estimates.setdefault(name, {}).setdefault(outcome, {})[model] = value
        return found

    def names(self) -> list[str]:
        """The metrics that some model was tried for."""
        return [one.name for one in METRICS if one.name in {*self.of_model, *self.estimates}]

    def values(self, name: str, outcome: str, keys: Sequence[str]) -> np.ndarray:
        """A metric of the models for an outcome, NaN where a model has none.

        An estimate for the mean is the mean over the same outcomes, of the models that have it for
        each of them.
        """
        if name in self.of_model:
            return _in_order(self.of_model[name], keys)
        by_outcome = self.estimates.get(name, {})
        names = self.of_mean if outcome == MEAN else [outcome]
        return np.mean([_in_order(by_outcome.get(each, {}), keys) for each in names], axis=0)


def _in_order(known: Values, keys: Sequence[str]) -> np.ndarray:
    return np.array([np.nan if known.get(key) is None else known[key] for key in keys], float)


def predictors(
    data: AnalysisData,
    metrics: MetricValues,
    outcome: str,
    keys: list[str],
    stamp: np.ndarray,
) -> dict[str, np.ndarray]:
    """Every predictor of an outcome, one number per model, NaN where a model has none.

    The class-matched source metric is there where it is another than the plain one for some
    outcome. Accuracy on the line is each model's outcome as the line through the other models'
    source and target values predicts it: it needs their target labels, and is here for reference.
    Values outside 0 to 1 have no probit, and no line.
    """
    beside, truth = source_outcome(data.outcomes, outcome), values(data.outcomes, outcome, keys)
    source = values(data.outcomes, beside, keys)
    n = [paired.images(data, name) or CLIP for name in (beside, outcome)]
    shares = not (np.stack([source, truth]) < 0).any() and not (np.stack([source, truth]) > 1).any()
    line = accuracy_on_the_line(source, truth, *n).loo if shares else np.full(len(keys), np.nan)
    return {
        STAMP: stamp,
        SOURCE_METRIC: values(data.outcomes, SOURCE, keys),
        **({SOURCE_MATCHED: source} if is_matched(data) else {}),
        ON_LINE: line,
        **{name: metrics.values(name, outcome, keys) for name in metrics.names()},
    }


def is_matched(data: AnalysisData) -> bool:
    """Whether some outcome has a class-matched source metric that is not the plain one."""
    return any(
        source_outcome(data.outcomes, name) != SOURCE for name in shown_outcomes(data.outcomes)
    )


def about(name: str) -> dict[str, Any]:
    if name in TITLES:
        return {"predictor": name, "name": TITLES[name], "needs": NEEDS[name]}
    metric = next(one for one in METRICS if one.name == name)
    return {"predictor": name, "name": metric.title, "needs": ", ".join(metric.needs)}


def competes() -> pl.Expr:
    """Whether a row is of a predictor that knows no target labels."""
    return ~pl.col("needs").fill_null("").str.contains("target labels")
