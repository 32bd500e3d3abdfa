"""STAMP beside other predictors: one common set of models, oriented, corrected, nothing dropped."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from made_up_metrics import MODELS, study
from made_up_study import one
from project import ROOT
from scipy.stats import norm, spearmanr

from stamp.config.registries.metrics import METRICS
from stamp.metrics.value import COLUMNS
from stamp.report import outcomes
from stamp.report.analyses.baselines import figure
from stamp.report.analyses.baselines import table as baselines
from stamp.report.analyses.regret import table as regrets
from stamp.report.analysis import AnalysisData, nothing
from stamp.report.comparison.predictors import MetricValues
from stamp.stats.correlations.noisy_control import SimulationSettings, partial_given_noisy_control


def test_all_predictors_are_compared_over_the_models_that_have_all_of_them() -> None:
    data = study()
    table = baselines.table(data)
    keep = [number for number in range(12) if number != 3]
    truth = outcomes.values(data.outcomes, "far", MODELS)
    for name, score in (
        ("stamp", data.scores["raw"].to_numpy()),
        ("source_metric", outcomes.values(data.outcomes, "source", MODELS)),
        ("entropy", MetricValues.of(data).values("entropy", "far", MODELS)),
        ("doc", MetricValues.of(data).values("doc", "far", MODELS)),
    ):
        row = one(table, models="all", outcome="far", predictor=name)
        assert row["n"] == 11
        assert row["rho"] == pytest.approx(spearmanr(score[keep], truth[keep])[0])
        assert row["low"] <= row["oriented"] <= row["high"]
    assert one(table, models="declared", outcome="far", predictor="doc")["n"] == 10


def rare(data: AnalysisData, models: list[str]) -> AnalysisData:
    """The study with a metric that only some models have."""
    column = data.scores.select("model", value=pl.col("raw") * 2)
    common = {"metric": "mc_dropout", "view": None, "domain": None, "n": 9}
    rows = [
        {**row, **common, "value": row["value"] if row["model"] in models else None}
        | {"reason": None if row["model"] in models else "no dropout layer"}
        for row in column.iter_rows(named=True)
    ]
    more = pl.DataFrame(rows, schema={"model": pl.String, **COLUMNS})
    return dataclasses.replace(data, metrics=pl.concat([data.metrics, more]))


def test_a_metric_that_few_models_have_is_compared_over_those_and_leaves_the_rest_whole() -> None:
    table = baselines.table(rare(study(), MODELS[:6]))
    row = one(table, models="all", outcome="far", predictor="mc_dropout")
    data = study()
    members = list(range(6))
    truth = outcomes.values(data.outcomes, "far", MODELS)[members]
    score = data.scores["raw"].to_numpy()[members]
    assert (row["n"], row["common"]) == (6, False) and "6 of 12 models" in row["reason"]
    assert row["rho"] == pytest.approx(spearmanr(score, truth)[0])
    # its twin is STAMP itself, turned round: the difference is of the same six models
    assert row["minus_stamp"] == pytest.approx(-2 * spearmanr(score, truth)[0])
    assert one(table, models="all", outcome="far", predictor="entropy")["n"] == 11
    assert table.filter(outcome="average", predictor="mc_dropout").is_empty()
    few = baselines.table(rare(study(), MODELS[:2]))
    assert "at least" in one(few, models="all", outcome="far", predictor="mc_dropout")["reason"]


def test_the_mixed_layout_gives_every_predictor_over_its_own_models() -> None:
    assert "mixed" not in baselines.table(study())["models"].to_list()
    table = baselines.table(rare(study(options={"mixed": True}), MODELS[:6]))
    counts = {
        name: one(table, models="mixed", outcome="far", predictor=name)["n"]
        for name in ("stamp", "entropy", "doc", "mc_dropout")
    }
    assert counts == {"stamp": 11, "entropy": 11, "doc": 10, "mc_dropout": 6}
    assert one(table, models="mixed", outcome="average", predictor="mc_dropout")["n"] == 6


def test_where_no_model_is_excluded_both_filters_have_what_each_would_have_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = rare(study(options={"mixed": True}), MODELS[:6])
    whole = {"excluded": pl.lit(None, pl.String), "degenerate": False, "stamp": pl.col("raw")}
    data = dataclasses.replace(data, scores=data.scores.with_columns(**whole))
    names = outcomes.shown_outcomes(data.outcomes)
    assert baselines.nobody_is_excluded(data, names)
    assert not baselines.nobody_is_excluded(study(), names)
    once = baselines.table(data)
    monkeypatch.setattr(baselines, "nobody_is_excluded", lambda data, names: False)
    assert once.equals(baselines.table(data))


def test_accuracy_on_the_line_predicts_each_model_from_the_others() -> None:
    data = study()
    row = one(baselines.table(data), models="all", outcome="far", predictor="on_the_line")
    assert row["needs"] == "labels, target labels, other models"
    source = outcomes.values(data.outcomes, "source", MODELS)
    truth = outcomes.values(data.outcomes, "far", MODELS)
    # half an image of 50 away from 0 and 1, as in the analysis `probit`
    x, y = (norm.ppf(np.clip(v, 0.01, 0.99)) for v in (source, truth))
    predicted = []
    for out in range(12):
        keep = np.arange(12) != out
        slope, intercept = np.polyfit(x[keep], y[keep], 1)
        predicted.append(slope * x[out] + intercept)
    keep = np.arange(12) != 3
    assert row["rho"] == pytest.approx(spearmanr(np.array(predicted)[keep], truth[keep])[0])


def test_a_metric_where_less_is_better_is_turned_round() -> None:
    row = one(baselines.table(study()), models="all", outcome="far", predictor="entropy")
    assert (row["rho"], row["oriented"]) == (pytest.approx(-1.0), pytest.approx(1.0))


def test_a_metric_that_no_model_has_is_listed_with_the_reason() -> None:
    row = one(baselines.table(study()), models="all", outcome="far", predictor="ece")
    assert row["rho"] is None and row["reason"] == "not available: no labels"


def test_the_mean_of_an_estimate_is_of_the_models_that_have_it_for_every_target_of_the_mean() -> (
    None
):
    data = study()
    # with a mean over `far` and `near`; model 3 has no estimate anywhere, model 5 none for `near`
    tidy = data.outcomes.filter(pl.col("outcome") != "mean")
    mean = tidy.filter(pl.col("outcome").is_in(["far", "near"])).group_by(
        "model", maintain_order=True
    )
    whole = mean.agg(pl.exclude("outcome", "value").first(), pl.col("value").mean()).with_columns(
        outcome=pl.lit("mean")
    )
    lost = (pl.col("model") == MODELS[5]) & (pl.col("metric") == "doc") & (pl.col("view") == "near")
    data = dataclasses.replace(
        data,
        outcomes=pl.concat([tidy, whole.select(tidy.columns)]),
        metrics=data.metrics.with_columns(value=pl.when(lost).then(None).otherwise("value")),
        texts={**data.texts, "relabelled": []},
    )
    far, near, both = (
        MetricValues.of(data).values("doc", name, MODELS) for name in ("far", "near", "mean")
    )
    assert np.flatnonzero(np.isnan(both)).tolist() == [3, 5]
    assert np.allclose(both, (far + near) / 2, equal_nan=True)
    row = one(baselines.table(data), models="all", outcome="mean", predictor="doc")
    assert row["n"] == 10 and row["reason"] is None


def test_the_reason_is_that_of_most_of_the_models_that_are_compared() -> None:
    data = study()
    said = (
        pl.when(pl.col("model") == MODELS[0])
        .then(pl.lit("no outputs that differ"))
        .otherwise(pl.lit("no labels"))
    )
    nothing_there = pl.col("metric") == "doc"
    metrics = data.metrics.with_columns(
        value=pl.when(nothing_there).then(None).otherwise("value"),
        reason=pl.when(nothing_there).then(said).otherwise("reason"),
    )
    table = baselines.table(dataclasses.replace(data, metrics=metrics))
    row = one(table, models="all", outcome="far", predictor="doc")
    assert row["reason"] == "not available: no labels"


def test_the_average_leaves_out_a_relabelled_source() -> None:
    table = baselines.table(study())
    mean = one(table, models="all", outcome="average", predictor="doc")
    assert mean["rho"] == one(table, models="all", outcome="far", predictor="doc")["rho"]
    assert mean["title"] == "Average over 1 outcomes"


def test_an_average_over_fewer_targets_says_so_and_does_not_compete() -> None:
    data = study()
    texts = {**data.texts, "relabelled": []}
    # of the target `near` alone a perfect estimate, which no average over both targets can beat
    near = dict(data.outcomes.filter(outcome="near").select("model", "value").iter_rows())
    best = (pl.col("metric") == "doc") & (pl.col("view") == "near")
    metrics = data.metrics.with_columns(
        value=pl.when(best).then(pl.col("model").replace_strict(near)).otherwise("value")
    ).filter((pl.col("metric") != "doc") | best)
    data = dataclasses.replace(data, texts=texts, metrics=metrics)
    table = baselines.table(data)
    row = one(table, models="declared", outcome="average", predictor="doc")
    assert row["oriented"] == pytest.approx(1.0)
    assert row["reason"] == "over 1 of 2 outcomes: not compared with the other averages"
    assert one(table, models="declared", outcome="average", predictor="stamp")["reason"] is None
    assert baselines.sentence(table).startswith(
        "Of 3 predictors that need no target labels, Entropy has"
    )


def test_differences_are_of_oriented_correlations() -> None:
    table = baselines.table(study())
    rows = {
        row["predictor"]: row
        for row in table.filter(models="all", outcome="far").iter_rows(named=True)
    }
    gap = rows["entropy"]["oriented"] - rows["stamp"]["oriented"]
    assert rows["entropy"]["minus_stamp"] == pytest.approx(gap)
    assert rows["stamp"]["minus_stamp"] is None
    assert rows["entropy"]["minus_stamp_adjusted"] >= rows["entropy"]["minus_stamp_p"]


def test_a_clear_difference_passes_however_many_tests_there_are() -> None:
    data = study(settings={"permutations": 100, "resamples": 400, "level": 0.95})
    # a metric that orders the models the wrong way round, among so many that Holm could pass none
    models = data.scores["model"]
    truth = dict(data.outcomes.filter(outcome="far").select("model", "value").iter_rows())
    worst = [{"metric": "effective_rank", "model": key, "value": -truth[key]} for key in models]
    used = ["effective_rank", *data.metrics["metric"]]
    spare = [one.name for one in METRICS if one.name not in used][:14]
    noise = np.random.default_rng(0).normal(size=(len(spare), len(models)))
    others = [
        {"metric": name, "model": key, "value": float(value)}
        for name, row in zip(spare, noise, strict=True)
        for key, value in zip(models, row, strict=True)
    ]
    more = pl.DataFrame(
        worst + others, schema={"metric": pl.String, "model": pl.String} | {"value": pl.Float64}
    )
    table = baselines.table(
        dataclasses.replace(data, metrics=pl.concat([data.metrics, more], how="diagonal"))
    )
    tested = table.filter(models="declared").drop_nulls("minus_stamp_p")
    assert 2 * len(tested) / 401 > 0.05  # the least that Holm's smallest p could be
    assert one(tested, outcome="far", predictor="effective_rank")["minus_stamp_adjusted"] < 0.05
    assert (tested["minus_stamp_adjusted"] >= tested["minus_stamp_p"]).all()


def test_the_sentence_names_the_best_and_stamp_s_place() -> None:
    said = baselines.sentence(baselines.table(study()))
    assert said.startswith("Of 4 predictors that need no target labels, Entropy has")
    assert "STAMP is in place" in said and "the source metric has" in said


def test_the_command_lists_every_metric_once() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "stamp", "metrics"],
        cwd=ROOT / "workflow" / "scripts",
        env={**os.environ, "COLUMNS": "300"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    names = [line.split()[0] for line in done.stdout.splitlines()[2:]]
    assert names == [metric.name for metric in METRICS]


def test_the_figure_has_every_predictor_and_outcome() -> None:
    data = study()
    texts = {**data.texts, "title": "Title", "notice": "", "level": 0.9}
    table = baselines.table(data)
    drawn = figure.draw(table, baselines.models(data), texts)
    words = [text.get_text() for axes in drawn.axes for text in axes.texts]
    for name in ("STAMP", "Source metric *", "Entropy", "DoC *+", "Far", "average"):
        assert name in words, name
    stamp = one(table, models="declared", outcome="far", predictor="stamp")["oriented"]
    assert f"{stamp:.2f}".replace("-", "\u2212") in words
    assert "the 90 % percentile interval" in " ".join(words)
    empty = figure.draw(nothing(baselines.TABLE, "no targets"), table, texts)
    assert any("no targets" in text.get_text() for axes in empty.axes for text in axes.texts)


def test_each_common_predictor_has_what_it_adds_to_the_source_metric() -> None:
    data = study()
    table = baselines.table(data).filter(models="declared", outcome="far")
    rows = {row["predictor"]: row for row in table.iter_rows(named=True)}
    keep = [at for at in range(12) if at not in (3, 11)]  # without DoC, and excluded
    source, truth = (
        outcomes.values(data.outcomes, name, MODELS)[keep] for name in ("source", "far")
    )
    errors = np.full(len(keep), 0.01)
    wanted = SimulationSettings(seed=data.seed)
    doc = MetricValues.of(data).values("doc", "far", MODELS)[keep]
    found = partial_given_noisy_control(doc, truth, source, errors, wanted)
    assert rows["doc"]["partial"] == pytest.approx(found.rho)
    assert rows["doc"]["corrected"] == pytest.approx(found.corrected)
    assert rows["doc"]["corrected_low"] == pytest.approx(found.low)
    assert rows["doc"]["corrected_holm"] >= rows["doc"]["corrected_p"]
    assert rows["source_metric"]["partial"] is None
    lost = regrets.table(data).filter(outcome="far", predictor="doc")
    assert rows["doc"]["regret_5"] == pytest.approx(lost.filter(k=5)["regret"][0])
    assert rows["doc"]["regret_all"] == pytest.approx(lost.filter(k=10)["regret"][0])
