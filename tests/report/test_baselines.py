"""STAMP beside other predictors: one common set of models, oriented, corrected, nothing dropped."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from made_up_metrics import MODELS, study
from made_up_study import one
from project import ROOT
from scipy.stats import entropy as stats_entropy
from scipy.stats import norm, spearmanr
from sklearn.metrics import roc_auc_score

from stamp.config.metrics import COLUMNS, METRICS, metrics_of
from stamp.metrics.agreement_on_the_line import decided, line_rows
from stamp.metrics.further import DEGENERATE
from stamp.metrics.measure import Material, Records, columns_of, metric_rows
from stamp.report import outcomes
from stamp.report.analyses.baselines import figure
from stamp.report.analyses.baselines import table as baselines
from stamp.report.analysis import AnalysisData, nothing
from stamp.scoring.stamp import probabilities


def test_all_predictors_are_compared_over_the_models_that_have_all_of_them() -> None:
    data = study()
    table = baselines.table(data)
    keep = [number for number in range(12) if number != 3]
    truth = outcomes.values(data.outcomes, "far", MODELS)
    for name, score in (
        ("stamp", data.scores["raw"].to_numpy()),
        ("source_metric", outcomes.values(data.outcomes, "source", MODELS)),
        ("entropy", baselines.metric_values(data, "entropy", "far", MODELS)),
        ("doc", baselines.metric_values(data, "doc", "far", MODELS)),
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
    assert baselines.sentence(table).startswith("Of 3 predictors, Entropy has the largest")


def test_differences_are_of_oriented_correlations() -> None:
    table = baselines.table(study())
    rows = {
        row["predictor"]: row
        for row in table.filter(models="all", outcome="far").iter_rows(named=True)
    }
    gap = rows["entropy"]["oriented"] - rows["stamp"]["oriented"]
    assert rows["entropy"]["minus_stamp"] == pytest.approx(gap)
    assert rows["stamp"]["minus_stamp"] is None
    assert rows["entropy"]["minus_stamp_holm"] >= rows["entropy"]["minus_stamp_p"]


def test_where_resamples_are_too_few_for_so_many_tests_the_sentence_says_that_none_could() -> None:
    few = baselines.table(study())
    tests = len(few.filter(models="declared").drop_nulls("minus_stamp_p"))
    assert few.filter(models="declared")["least_holm"][0] == pytest.approx(2 * tests / 301)
    assert "none could" in baselines.sentence(few.with_columns(least_holm=pl.lit(0.06)))
    settings = {"permutations": 100, "resamples": 2000, "level": 0.95}
    many = baselines.table(study(settings=settings))
    assert many["least_holm"].max() < 0.05
    assert "none could" not in baselines.sentence(many)


def test_the_sentence_names_the_best_and_stamp_s_place() -> None:
    said = baselines.sentence(baselines.table(study()))
    assert said.startswith("Of 4 predictors, Entropy has the largest oriented")
    assert "STAMP is in place" in said and "the source metric has" in said


@pytest.mark.parametrize("task", ["multiclass", "multilabel"])
def test_every_metric_of_a_task_gets_a_row_with_a_value_or_a_reason(task: str) -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(size=(400, 4)) * 2
    if task == "multiclass":
        labels = np.array([rng.choice(4, p=row) for row in probabilities(z, task)], dtype=float)
    else:
        labels = (rng.random((400, 4)) < probabilities(z, task)).astype(float)
    half = [Material.of(z[part], labels[part], task, 1.0) for part in (slice(200), slice(200, 400))]
    domains = pl.Series(["a", "b"] * 100)
    table = metric_rows(half[0], {"far": (half[1], domains)}, {}, task, 1.0)
    assert set(table["metric"]) == {metric.name for metric in metrics_of(task)}
    for metric in metrics_of(task):
        own = table.filter(pl.col("metric") == metric.name)
        where = {None} if not metric.of_target else {"all", "a", "b"}
        assert set(own["domain"].to_list()) == where
    empty = table.filter(pl.col("value").is_null() & pl.col("reason").is_null())
    assert empty.is_empty()


def test_a_target_s_labels_change_no_estimate() -> None:
    rng = np.random.default_rng(1)
    z, labels = rng.normal(size=(60, 3)), rng.integers(0, 3, 60).astype(float)
    source = Material.of(z[:30], labels[:30], "multiclass", 1.0)
    tables = []
    for truth in (labels[30:], np.full(30, np.nan)):
        target = Material.of(z[30:], truth, "multiclass", 1.0)
        domains = pl.Series(["x"] * 30)
        tables.append(metric_rows(source, {"far": (target, domains)}, {}, "multiclass", 1.0))
    assert tables[0].equals(tables[1])


def test_the_command_lists_every_metric_once() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "stamp", "metrics"],
        cwd=ROOT / "workflow" / "scripts",
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    names = [line.split()[0] for line in done.stdout.splitlines()[2:]]
    assert names == [metric.name for metric in METRICS]


def test_agreement_on_the_line_is_that_of_the_decisions() -> None:
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 4, 3000).astype(float)
    models, expected = {}, {}
    for number in range(8):
        skill = 0.4 + 0.06 * number
        z = rng.normal(size=(3000, 4))
        hit = rng.random(3000) < np.where(np.arange(3000) < 1500, skill, skill - 0.15)
        z[np.arange(3000), truth.astype(int)] += np.where(hit, 9, 0)
        halves = [
            Material.of(z[part], truth[part], "multiclass", 1.0)
            for part in (slice(1500), slice(1500, 3000))
        ]
        models[f"m{number}"] = decided(halves[0], {"far": halves[1]}, "multiclass")
        expected[f"m{number}"] = np.mean(z[1500:].argmax(axis=1) == truth[1500:])
    table = line_rows(models, {"far": pl.Series(["x"] * 1500)}, {}, "multiclass")
    assert set(table["metric"]) == {"aline_s", "aline_d"} and len(table) == 16
    for row in table.filter(pl.col("metric") == "aline_d").iter_rows(named=True):
        assert row["value"] == pytest.approx(expected[row["model"]], abs=0.06)


def test_concordance_on_the_line_estimates_aurocs() -> None:
    rng = np.random.default_rng(7)
    truth = (rng.random((4000, 3)) < 0.3).astype(float)
    models, expected = {}, {}
    for number in range(8):
        skill = np.where(np.arange(4000) < 2000, 1, 0.6)[:, None] * (0.8 + 0.25 * number)
        z = skill * truth + rng.normal(size=truth.shape)
        halves = [
            Material.of(z[part], truth[part], "multilabel", 1.0)
            for part in (slice(2000), slice(2000, 4000))
        ]
        models[f"m{number}"] = decided(halves[0], {"far": halves[1]}, "multilabel")
        areas = [roc_auc_score(truth[2000:, c], z[2000:, c]) for c in range(3)]
        expected[f"m{number}"] = np.mean(areas)
    table = line_rows(models, {"far": pl.Series(["x"] * 2000)}, {}, "multilabel")
    assert set(table["metric"]) == {"aline_s", "aline_d", "aline_d_auroc"}
    rows = table.filter(pl.col("metric") == "aline_d_auroc")
    found = [row["value"] for row in rows.iter_rows(named=True)]
    truths = [expected[row["model"]] for row in rows.iter_rows(named=True)]
    assert spearmanr(found, truths)[0] > 0.9


def test_a_constant_model_has_no_estimate_from_the_line() -> None:
    rng = np.random.default_rng(8)
    truth = rng.integers(0, 3, 400).astype(float)
    models = {}
    for number in range(5):
        z = rng.normal(size=(400, 3)) + (0.5 + number) * (truth[:, None] == np.arange(3))
        z = np.zeros_like(z) if number == 2 else z
        halves = [
            Material.of(z[part], truth[part], "multiclass", 1.0)
            for part in (slice(200), slice(200, 400))
        ]
        models[f"m{number}"] = decided(halves[0], {"far": halves[1]}, "multiclass")
    table = line_rows(models, {"far": pl.Series(["x"] * 200)}, {}, "multiclass")
    constant = table.filter(pl.col("model") == "m2")
    assert constant["value"].is_null().all() and set(constant["reason"]) == {DEGENERATE}
    assert table.filter(pl.col("model") != "m2")["value"].is_not_null().all()


def test_a_class_without_an_output_is_no_decision() -> None:
    rng = np.random.default_rng(6)
    z, labels = rng.normal(size=(50, 3)), rng.integers(0, 2, (50, 3)).astype(float)
    z[:, 1] = np.nan
    both = Material.of(z, labels, "multilabel", 1.0)
    found = decided(both, {"far": both}, "multilabel")
    source, right = found.source["far"], found.right["far"]
    assert np.isnan(source[:, 1]).all() and np.isnan(right[:, 1]).all()
    assert not np.isnan(source[:, [0, 2]]).any()


def test_decisions_for_a_target_are_taken_among_the_classes_that_it_is_scored_on() -> None:
    rng = np.random.default_rng(8)
    z, labels = rng.normal(size=(90, 5)), rng.integers(0, 5, 90).astype(float)
    material = Material.of(z, labels, "multiclass", 1.0)
    targets = {"some": material, "every": material}
    found = decided(material, targets, "multiclass", {"some": {"all": [1, 3]}})
    member = np.isin(labels, [1, 3])
    expected = np.where(z[:, 1] > z[:, 3], 1, 3)
    np.testing.assert_array_equal(found.source["some"], expected[member])
    np.testing.assert_array_equal(found.targets["some"], expected)
    assert found.right["some"].mean() == np.mean(expected[member] == labels[member])
    np.testing.assert_array_equal(found.targets["every"], z.argmax(axis=1))


def test_estimates_for_a_target_are_those_of_its_own_classes_alone(tmp_path: Path) -> None:
    rng = np.random.default_rng(9)
    names = ["a", "b", "c", "d"]
    z, labels = rng.normal(size=(400, 4)) * 2, rng.integers(0, 4, 400).astype(float)
    source, target = (
        Material.of(z[part], labels[part], "multiclass", 1.5)
        for part in (slice(200), slice(200, 400))
    )
    settings = {"classes": {}, "among": ["d", "b"]}
    every = np.ones(4, dtype=bool)
    chosen = columns_of(settings, names, every, "multiclass", tmp_path)
    assert chosen == {"all": [1, 3]}
    domains = pl.Series(["x"] * 200)
    found = metric_rows(source, {"far": (target, domains)}, {"far": chosen}, "multiclass", 1.5)
    # the same by hand: only images of b and d, only their logits
    member = np.isin(labels[:200], [1, 3])
    p, q = (
        probabilities(part[:, [1, 3]], "multiclass", 1.5) for part in (z[:200][member], z[200:])
    )
    right = p.argmax(axis=1) == (labels[:200][member] == 3)
    expected = {
        "atc_mc": np.mean(q.max(axis=1) >= np.sort(p.max(axis=1))[(~right).sum()]),
        "doc": right.mean() + q.max(axis=1).mean() - p.max(axis=1).mean(),
    }
    for name, value in expected.items():
        assert one(found, metric=name, domain="all")["value"] == pytest.approx(value)
    none = columns_of({"classes": {}, "among": None}, names, every, "multiclass", tmp_path)
    assert none == {}


def test_classes_that_a_model_lacks_are_none_of_an_estimate(tmp_path: Path) -> None:
    there = np.array([True, False, True, True])
    settings = {"classes": {"north": ["d", "b"], "all": ["c"]}, "among": None}
    found = columns_of(settings, ["a", "b", "c", "d"], there, "multilabel", tmp_path)
    assert found == {"north": [2], "all": [1]}


def test_a_streamed_target_has_the_estimates_of_its_records() -> None:
    rng = np.random.default_rng(10)
    z, labels = rng.normal(size=(300, 4)) * 2, rng.integers(0, 4, 300).astype(float)
    source = Material.of(z[:150], labels[:150], "multiclass", 3.0)
    p = probabilities(z[150:], "multiclass")
    records = Records(p.max(axis=1), stats_entropy(p, axis=1))
    domains = pl.Series(["blur-1", "blur-2", "snow-1"] * 50)
    streamed = {"far": (records, domains)}
    found = metric_rows(source, {}, {}, "multiclass", 3.0, streamed=streamed)
    # as if the logits had been kept, at T = 1
    cached = Material.of(z[150:], labels[150:], "multiclass", 1.0)
    plain = Material.of(z[:150], labels[:150], "multiclass", 1.0)
    expected = metric_rows(plain, {"far": (cached, domains)}, {}, "multiclass", 1.0)
    for name in ("atc_mc", "atc_ne", "doc"):
        for domain in ("all", "blur-1", "snow-1"):
            row = one(found, metric=name, domain=domain)
            assert row["value"] == pytest.approx(one(expected, metric=name, domain=domain)["value"])
            assert "T = 1" in row["reason"]


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
