"""All metrics of one model: a row for each, over the right images and classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import entropy as stats_entropy

from stamp.config.registries.metrics import metrics_of
from stamp.metrics.inputs import (
    OutputSettings,
    ScaledOutputs,
    StreamedOutputs,
    TargetOutputs,
    columns_of,
)
from stamp.metrics.metrics import metric_table
from stamp.scoring.stamp import probabilities


def one(table: pl.DataFrame, **where: str) -> dict[str, Any]:
    rows = table.filter(**where)
    assert len(rows) == 1, rows
    return rows.row(0, named=True)


@pytest.mark.parametrize("task", ["multiclass", "multilabel"])
def test_every_metric_of_a_task_gets_a_row_with_a_value_or_a_reason(task: str) -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(size=(400, 4)) * 2
    if task == "multiclass":
        labels = np.array([rng.choice(4, p=row) for row in probabilities(z, task)], dtype=float)
    else:
        labels = (rng.random((400, 4)) < probabilities(z, task)).astype(float)
    half = [
        ScaledOutputs.of(z[part], labels[part], task, 1.0) for part in (slice(200), slice(200, 400))
    ]
    domains = pl.Series(["a", "b"] * 100)
    table = metric_table(half[0], {"far": TargetOutputs(half[1], domains)})
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
    source = ScaledOutputs.of(z[:30], labels[:30], "multiclass", 1.0)
    tables = []
    for truth in (labels[30:], np.full(30, np.nan)):
        target = ScaledOutputs.of(z[30:], truth, "multiclass", 1.0)
        domains = pl.Series(["x"] * 30)
        tables.append(metric_table(source, {"far": TargetOutputs(target, domains)}))
    assert tables[0].equals(tables[1])


def test_estimates_for_a_target_are_those_of_its_own_classes_alone(tmp_path: Path) -> None:
    rng = np.random.default_rng(9)
    names = ["a", "b", "c", "d"]
    z, labels = rng.normal(size=(400, 4)) * 2, rng.integers(0, 4, 400).astype(float)
    source, target = (
        ScaledOutputs.of(z[part], labels[part], "multiclass", 1.5)
        for part in (slice(200), slice(200, 400))
    )
    settings = OutputSettings(names, np.ones(4, dtype=bool), "multiclass", 1.5)
    chosen = columns_of({"classes": {}, "among": ["d", "b"]}, settings, tmp_path)
    assert chosen == {"all": [1, 3]}
    domains = pl.Series(["x"] * 200)
    found = metric_table(source, {"far": TargetOutputs(target, domains, chosen)})
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
    assert columns_of({"classes": {}, "among": None}, settings, tmp_path) == {}


def test_classes_that_a_model_lacks_are_none_of_an_estimate(tmp_path: Path) -> None:
    there = np.array([True, False, True, True])
    settings = OutputSettings(["a", "b", "c", "d"], there, "multilabel", 1.0)
    scored = {"classes": {"north": ["d", "b"], "all": ["c"]}, "among": None}
    found = columns_of(scored, settings, tmp_path)
    assert found == {"north": [2], "all": [1]}


def test_a_streamed_target_has_the_estimates_of_its_predictions() -> None:
    rng = np.random.default_rng(10)
    z, labels = rng.normal(size=(300, 4)) * 2, rng.integers(0, 4, 300).astype(float)
    source = ScaledOutputs.of(z[:150], labels[:150], "multiclass", 3.0)
    p = probabilities(z[150:], "multiclass")
    predictions = StreamedOutputs(p.max(axis=1), stats_entropy(p, axis=1))
    domains = pl.Series(["blur-1", "blur-2", "snow-1"] * 50)
    found = metric_table(source, {"far": TargetOutputs(predictions, domains)})
    # as if the logits had been kept, at T = 1
    cached = ScaledOutputs.of(z[150:], labels[150:], "multiclass", 1.0)
    plain = ScaledOutputs.of(z[:150], labels[:150], "multiclass", 1.0)
    expected = metric_table(plain, {"far": TargetOutputs(cached, domains)})
    for name in ("atc_mc", "atc_ne", "doc"):
        for domain in ("all", "blur-1", "snow-1"):
            row = one(found, metric=name, domain=domain)
            assert row["value"] == pytest.approx(one(expected, metric=name, domain=domain)["value"])
            assert "T = 1" in row["reason"]
