"""What picking a model by a predictor costs, against the enumeration of all choices."""

from __future__ import annotations

import dataclasses
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from made_up_metrics import MODELS, study
from made_up_study import one

from stamp.config.registries.metrics import METRICS
from stamp.report import analysis, outcomes
from stamp.report.analyses.regret import table as regrets
from stamp.report.comparison.predictors import MetricValues


def test_regret_is_the_mean_loss_over_all_choices_of_five_models() -> None:
    data = study()
    found, metrics = regrets.table(data), MetricValues.of(data)
    keys = analysis.kept(data, "declared", "far")["model"].to_list()
    truth = outcomes.values(data.outcomes, "far", keys)
    direction = {metric.name: metric.direction for metric in METRICS}
    scores = {
        "stamp": analysis.kept(data, "declared", "far")["score"].to_numpy(),
        "source_metric": outcomes.values(data.outcomes, "source", keys),
        "entropy": direction["entropy"] * metrics.values("entropy", "far", keys),
    }
    shared = found.filter(outcome="far", k=5)["predictor"].to_list()
    every = [metrics.values(name, "far", keys) for name in shared if name in direction]
    members = np.flatnonzero(~np.isnan(np.vstack([*scores.values(), *every, truth])).any(axis=0))
    best = np.mean([truth[list(some)].max() for some in combinations(members, 5)])
    for name, score in scores.items():
        picked = [
            truth[max(some, key=lambda at: score[at])] for some in combinations(members.tolist(), 5)
        ]
        row = one(found, outcome="far", predictor=name, k=5)
        assert row["n"] == len(members)
        assert row["regret"] == pytest.approx(best - np.mean(picked))
    row = one(found, outcome="far", predictor="random", k=5)
    assert row["regret"] == pytest.approx(best - truth[members].mean())
    source = one(found, outcome="far", predictor="source_metric", k=5)["regret"]
    stamp = one(found, outcome="far", predictor="stamp", k=5)
    assert stamp["minus_source"] == pytest.approx(stamp["regret"] - source)
    assert stamp["minus_source_low"] <= stamp["minus_source_high"]


def test_among_all_models_the_first_is_picked_and_nobody_loses_more_than_the_worst() -> None:
    data = study()
    found = regrets.table(data)
    whole = found.filter(pl.col("k") == pl.col("n"), pl.col("outcome") == "far")
    truth = outcomes.values(data.outcomes, "far", MODELS)
    assert (whole["regret"] >= -1e-12).all()
    assert (whole["regret"] <= np.nanmax(truth) - np.nanmin(truth)).all()


def test_a_study_without_targets_has_the_reason_alone() -> None:
    data = study()
    only = data.outcomes.filter(pl.col("outcome") == "source")
    empty = dataclasses.replace(data, outcomes=only)
    table = regrets.table(empty)
    assert table["reason"].to_list() == [analysis.NO_TARGETS]
    assert analysis.NO_TARGETS in regrets.sentence(table)
    assert "STAMP loses" in regrets.sentence(regrets.table(data))
