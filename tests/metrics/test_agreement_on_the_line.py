"""Agreement on the line: estimates from the decisions of many models."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

from stamp.metrics.agreement_on_the_line import decided, line_table
from stamp.metrics.inputs import ScaledOutputs, TargetOutputs
from stamp.metrics.value import DEGENERATE


def target(outputs: ScaledOutputs, columns: dict[str, list[int]] | None = None) -> TargetOutputs:
    """A target of one domain."""
    return TargetOutputs(outputs, pl.Series(["x"] * len(outputs.p)), columns or {})


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
            ScaledOutputs.of(z[part], truth[part], "multiclass", 1.0)
            for part in (slice(1500), slice(1500, 3000))
        ]
        models[f"m{number}"] = decided(halves[0], {"far": target(halves[1])})
        expected[f"m{number}"] = np.mean(z[1500:].argmax(axis=1) == truth[1500:])
    table = line_table(models, {"far": target(halves[1])}, "multiclass")
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
            ScaledOutputs.of(z[part], truth[part], "multilabel", 1.0)
            for part in (slice(2000), slice(2000, 4000))
        ]
        models[f"m{number}"] = decided(halves[0], {"far": target(halves[1])})
        areas = [roc_auc_score(truth[2000:, c], z[2000:, c]) for c in range(3)]
        expected[f"m{number}"] = np.mean(areas)
    table = line_table(models, {"far": target(halves[1])}, "multilabel")
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
            ScaledOutputs.of(z[part], truth[part], "multiclass", 1.0)
            for part in (slice(200), slice(200, 400))
        ]
        models[f"m{number}"] = decided(halves[0], {"far": target(halves[1])})
    table = line_table(models, {"far": target(halves[1])}, "multiclass")
    constant = table.filter(pl.col("model") == "m2")
    assert constant["value"].is_null().all() and set(constant["reason"]) == {DEGENERATE}
    assert table.filter(pl.col("model") != "m2")["value"].is_not_null().all()


def test_a_class_without_an_output_is_no_decision() -> None:
    rng = np.random.default_rng(6)
    z, labels = rng.normal(size=(50, 3)), rng.integers(0, 2, (50, 3)).astype(float)
    z[:, 1] = np.nan
    both = ScaledOutputs.of(z, labels, "multilabel", 1.0)
    found = decided(both, {"far": target(both)})
    source, right = found.source["far"], found.right["far"]
    assert np.isnan(source[:, 1]).all() and np.isnan(right[:, 1]).all()
    assert not np.isnan(source[:, [0, 2]]).any()


def test_decisions_for_a_target_are_taken_among_the_classes_that_it_is_scored_on() -> None:
    rng = np.random.default_rng(8)
    z, labels = rng.normal(size=(90, 5)), rng.integers(0, 5, 90).astype(float)
    outputs = ScaledOutputs.of(z, labels, "multiclass", 1.0)
    targets = {"some": target(outputs, {"all": [1, 3]}), "every": target(outputs)}
    found = decided(outputs, targets)
    member = np.isin(labels, [1, 3])
    expected = np.where(z[:, 1] > z[:, 3], 1, 3)
    np.testing.assert_array_equal(found.source["some"], expected[member])
    np.testing.assert_array_equal(found.targets["some"], expected)
    assert found.right["some"].mean() == np.mean(expected[member] == labels[member])
    np.testing.assert_array_equal(found.targets["every"], z.argmax(axis=1))
