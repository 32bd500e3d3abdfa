"""The other predictors that STAMP is compared with: what each needs, and which way it points."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

COLUMNS = {
    "metric": pl.String,
    "view": pl.String,
    "domain": pl.String,
    "value": pl.Float64,
    "n": pl.Int64,
    "reason": pl.String,
}
BOTH = ("multiclass", "multilabel")


@dataclass(frozen=True, slots=True)
class Metric:
    """A predictor of how a model will do elsewhere.

    ``needs`` names what it takes beside a model's forward passes on the source pool: labels (of the
    source), target (images, unlabeled), models (several). ``direction`` is 1 where more should mean
    better on the targets, -1 where less should.
    """

    name: str
    title: str
    needs: tuple[str, ...]
    direction: int
    reference: str
    tasks: tuple[str, ...] = BOTH
    passes: tuple[str, ...] = ()

    @property
    def of_one_model(self) -> bool:
        """Whether it can be had from one model alone."""
        return "models" not in self.needs

    @property
    def of_target(self) -> bool:
        """Whether it is an estimate for one target, from the target's images."""
        return "target" in self.needs


METRICS = (
    Metric("entropy", "Entropy", (), -1, "mean entropy of the outputs"),
    Metric("confidence", "Mean confidence", (), 1, "mean largest probability"),
    Metric("ece", "ECE", ("labels",), -1, "Guo et al. 2017, 15 bins"),
    Metric("prediction_std", "Prediction std", (), 1, "mean std of an output over images"),
    Metric("nuclear_norm", "Nuclear norm", (), 1, "Deng et al. 2023"),
    Metric("energy", "Energy", (), 1, "Liu et al. 2020, Wang et al. 2021"),
    Metric("mde", "MDE", (), 1, "Peng et al. 2024; direction by argument, not by the source"),
    Metric("margin", "Margin", (), 1, "mean gap of the two largest probabilities"),
    Metric("atc_mc", "ATC-MC", ("labels", "target"), 1, "Garg et al. 2022"),
    Metric("atc_ne", "ATC-NE", ("labels", "target"), 1, "Garg et al. 2022", ("multiclass",)),
    Metric("doc", "DoC", ("labels", "target"), 1, "Guillory et al. 2021"),
    Metric("aline_s", "ALine-S", ("labels", "target", "models"), 1, "Baek et al. 2022"),
    Metric("aline_d", "ALine-D", ("labels", "target", "models"), 1, "Baek et al. 2022"),
    Metric("cbpe_auroc", "Expected AUROC", ("labels", "target"), 1, "CBPE", ("multilabel",)),
)


def metrics_of(task: str) -> list[Metric]:
    """The metrics of single models that a task has."""
    return [metric for metric in METRICS if task in metric.tasks and metric.of_one_model]
