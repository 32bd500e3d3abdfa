"""All metrics of one model: a row for each, over the right images and classes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import entropy as stats_entropy

from stamp.config.registries.metrics import metrics_of
from stamp.core.artifacts import ids_digest, read_arrays, write_arrays, write_table
from stamp.inference.outputs import Outputs
from stamp.metrics import target_estimates
from stamp.metrics.inputs import (
    ModelOutputs,
    OutputSettings,
    ScaledOutputs,
    StreamedOutputs,
    TargetDomains,
    TargetFiles,
    TargetOutputs,
    columns_of,
)
from stamp.metrics.metrics import metric_table
from stamp.metrics.of_embeddings import transferability
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
    table = metric_table(half[0], {"far": TargetOutputs(half[1], TargetDomains(domains))})
    assert set(table["metric"]) == {metric.name for metric in metrics_of(task, stress_tests=False)}
    for metric in metrics_of(task, stress_tests=False):
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
        tables.append(metric_table(source, {"far": TargetOutputs(target, TargetDomains(domains))}))
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
    chosen = columns_of({"classes": {}, "among": ["d", "b"], "merge": {}}, settings, tmp_path)
    assert chosen == {"all": [1, 3]}
    domains = pl.Series(["x"] * 200)
    there = TargetOutputs(target, TargetDomains(domains, chosen))
    found = metric_table(source, {"far": there})
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
    assert columns_of({"classes": {}, "merge": {}, "among": None}, settings, tmp_path) == {}


def test_classes_that_a_model_lacks_are_none_of_an_estimate(tmp_path: Path) -> None:
    there = np.array([True, False, True, True])
    settings = OutputSettings(["a", "b", "c", "d"], there, "multilabel", 1.0)
    scored = {"classes": {"north": ["d", "b"], "all": ["c"]}, "merge": {}, "among": None}
    found = columns_of(scored, settings, tmp_path)
    assert found == {"north": [2], "all": [1]}


def streamed(z: np.ndarray, rows: np.ndarray, temperature: float) -> StreamedOutputs:
    """What is kept of logits: predictions of all rows, and the logits of some."""
    p = probabilities(z, "multiclass")
    some = ScaledOutputs.of(z[rows], np.full(len(rows), np.nan), "multiclass", temperature)
    return StreamedOutputs(z.argmax(axis=1), p.max(axis=1), stats_entropy(p, axis=1), rows, some)


@pytest.mark.parametrize("temperature", [1.0, 3.0])
def test_a_streamed_target_has_the_estimates_of_a_cached_one_at_the_same_temperature(
    temperature: float,
) -> None:
    rng = np.random.default_rng(10)
    z, labels = rng.normal(size=(300, 4)) * 2, rng.integers(0, 4, 300).astype(float)
    source, cached = (
        ScaledOutputs.of(z[part], labels[part], "multiclass", temperature)
        for part in (slice(150), slice(150, 300))
    )
    where = TargetDomains(pl.Series(["blur-1", "blur-2", "snow-1"] * 50))
    expected = metric_table(source, {"far": TargetOutputs(cached, where)})
    kept = streamed(z[150:], np.arange(150), temperature)
    found = metric_table(source, {"far": TargetOutputs(kept, where)})
    for name in ("atc_mc", "atc_ne", "doc", "nuclear_norm", "energy", "mde", "mano"):
        for domain in ("all", "blur-1", "snow-1"):
            rows = [one(table, metric=name, domain=domain) for table in (found, expected)]
            assert rows[0]["value"] == pytest.approx(rows[1]["value"])
            assert rows[0]["n"] == rows[1]["n"]


def test_a_sample_of_a_streamed_target_is_corrected_by_all_its_images() -> None:
    rng = np.random.default_rng(12)
    z, labels = rng.normal(size=(9000, 4)) * 2, rng.integers(0, 4, 9000).astype(float)
    z[np.arange(9000), labels.astype(int)] += rng.gamma(2, 2, 9000)
    source, cached = (
        ScaledOutputs.of(z[part], labels[part], "multiclass", 2.0)
        for part in (slice(1000), slice(1000, 9000))
    )
    where = TargetDomains(pl.Series(["x"] * 8000))
    expected = metric_table(source, {"far": TargetOutputs(cached, where)})
    errors: dict[str, list[tuple[float, float]]] = {"atc_mc": [], "atc_ne": [], "doc": []}
    for _ in range(30):
        rows = np.sort(rng.choice(8000, 200, replace=False))
        kept = streamed(z[1000:], rows, 2.0)
        found = metric_table(source, {"far": TargetOutputs(kept, where)}, None, list(errors))
        alone = metric_table(
            source, {"far": TargetOutputs(kept.sample, TargetDomains(where.domains[:200]))}
        )
        for name, pairs in errors.items():
            truth = one(expected, metric=name, domain="all")["value"]
            row = one(found, metric=name, domain="all")
            assert "T = 2 from 200 images" in row["reason"] and row["n"] == 8000
            pairs.append(
                (row["value"] - truth, one(alone, metric=name, domain="all")["value"] - truth)
            )
    for pairs in errors.values():
        corrected, plain = np.array(pairs).T
        assert np.sqrt((corrected**2).mean()) < 0.7 * np.sqrt((plain**2).mean())


def test_metrics_of_unlabeled_outputs_are_of_the_target_s_images_and_named_so() -> None:
    rng = np.random.default_rng(11)
    z, labels = rng.normal(size=(400, 5)), rng.integers(0, 5, 400).astype(float)
    source = ScaledOutputs.of(z[:200], labels[:200], "multiclass", 1.5)
    target = ScaledOutputs.of(3 * z[200:], labels[200:], "multiclass", 1.5)
    where = TargetDomains(pl.Series(["a", "b"] * 100), {"all": [0, 2, 4]})
    table = metric_table(source, {"far": TargetOutputs(target, where)})
    member = np.arange(200) % 2 == 0
    some = 3 * z[200:][member][:, [0, 2, 4]]
    p = probabilities(some, "multiclass", 1.5)
    energies = -np.log(np.exp(some).sum(axis=1))
    raised = 1 + some + some**2 / 2
    raised -= raised.min(axis=1, keepdims=True)
    sigma = raised / raised.sum(axis=1, keepdims=True)
    expected = {
        "nuclear_norm": np.linalg.svd(p, compute_uv=False).sum() / np.sqrt(3 * 100),
        "energy": -energies.mean(),
        "mde": np.log(-np.mean(energies - np.log(np.exp(energies).sum()))),
        "mano": (sigma**4).mean() ** 0.25,
    }
    for name, value in expected.items():
        row = one(table, metric=name, domain="a")
        assert (row["view"], row["n"]) == ("far", 100)
        assert row["value"] == pytest.approx(value)
        own = one(table, metric=f"{name}_source")
        assert own["view"] is None and own["value"] != pytest.approx(value)
    titles = {metric.name: metric for metric in metrics_of("multiclass")}
    for name in (*expected, "dispersion"):
        assert titles[name].of_target and not titles[f"{name}_source"].of_target
        assert titles[f"{name}_source"].title == f"{titles[name].title}, source"


CLASSES = ["a", "b", "c", "d"]
SCORED = {"classes": {"all": ["a", "c/d"]}, "merge": {"c/d": ["c", "d"]}, "among": None}


def multilabel_model(folder: Path, lacks: Sequence[int] = ()) -> tuple[Outputs, TargetFiles]:
    """A model of four classes on a source, and on a target that has two of them as one."""
    rng = np.random.default_rng(13)
    truth = (rng.random((600, 4)) < 0.3).astype(float)
    z = 2 * truth + rng.normal(size=(600, 4))
    z[:, list(lacks)] = np.nan
    truth[0, 2:], truth[1, 2:] = (np.nan, 1), (np.nan, 0)  # one part unknown
    ids = [f"i{number}" for number in range(600)]
    columns = {name: truth[:, c] for c, name in enumerate(CLASSES)}
    rows = pl.DataFrame({"image": ids, "domain": ["x"] * 600, **columns}, nan_to_null=True)
    view, file = folder / "view.parquet", folder / "logits.safetensors"
    there = rows[300:].drop("c", "d", "b").with_columns(pl.lit(1).alias("c/d"))
    write_table(view, there, {})
    card = {"model": "m", "ids": ids_digest(ids[300:]), "parameters": 1}
    write_arrays(file, {"logits": z[300:].astype(np.float32)}, card)
    return Outputs(rows[:300], z[:300].astype(np.float32), 1), TargetFiles(view, file, SCORED)


@pytest.mark.parametrize("lacks", [(), (2,), (2, 3)])
def test_a_merged_class_counts_in_every_estimate(tmp_path: Path, lacks: tuple[int, ...]) -> None:
    pool, files = multilabel_model(tmp_path, lacks)
    there = ~np.isnan(pool.logits).all(axis=0)
    settings = OutputSettings(CLASSES, there, "multilabel", 1.0)
    found = ModelOutputs.read(pool, {"far": files}, "m", settings)
    table = metric_table(found.source, found.targets)
    # the same by hand: the larger logit of the parts, the label of either
    z = np.concatenate([pool.logits, read_arrays(files.outputs)["logits"]]).astype(float)
    larger = np.where(np.isnan(z[:, 3]) | (z[:, 2] > z[:, 3]), z[:, 2], z[:, 3])
    y = pool.rows.select(CLASSES).to_numpy().astype(float)
    either = [1.0 if 1 in row else 0.0 if list(row) == [0, 0] else np.nan for row in y[:, 2:]]
    assert either[0] == 1 and np.isnan(either[1])
    p = probabilities(np.stack([z[:, 0], larger], axis=1), "multilabel")
    truth = np.stack([y[:, 0], either], axis=1)
    if len(lacks) == 2:
        p, truth = p[:, :1], truth[:, :1]
    here, away = p[:300], p[300:]
    expected = {
        "atc_mc": target_estimates.atc_multilabel(here, truth, away),
        "doc": target_estimates.doc(here, truth, away),
        "cbpe_auroc": target_estimates.cbpe_auroc(here, truth, away),
    }
    for name, value in expected.items():
        row = one(table, metric=name, domain="all")
        assert row["value"] == pytest.approx(value.value, abs=1e-7) and row["n"] == 300
    # the target's own labels, for reference alone
    assert found.targets["far"].labels is not None
    labels = pl.read_parquet(files.view).select("a", "c/d").to_numpy()[:, : p.shape[1]]
    leep = transferability.leep(away, labels, "multilabel")
    row = one(table, metric="leep_target", domain="all")
    assert (row["value"] or np.nan) == pytest.approx(leep.value, nan_ok=True)
    # what is made from outputs alone is of the model's own classes
    own = probabilities(z[300:][:, there], "multilabel")
    norm = np.linalg.norm(own, "nuc") / np.sqrt(own.shape[1]) / np.linalg.norm(own)
    assert one(table, metric="nuclear_norm", domain="all")["value"] == pytest.approx(norm)
