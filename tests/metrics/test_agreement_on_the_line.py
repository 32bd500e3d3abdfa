"""Agreement on the line: estimates from the decisions of many models."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import kendalltau, spearmanr
from sklearn.metrics import roc_auc_score

from stamp.core.errors import UserError
from stamp.metrics.agreement_on_the_line import line_table
from stamp.metrics.decisions import NONE, Decisions, decided, read_decisions, write_decisions
from stamp.metrics.inputs import ScaledOutputs, StreamedOutputs, TargetDomains, TargetOutputs
from stamp.metrics.value import DEGENERATE
from stamp.stats.agreement import concordances, packed_order, random_pairs
from stamp.stats.on_the_line import aline


def target(outputs: ScaledOutputs, columns: dict[str, list[int]] | None = None) -> TargetOutputs:
    """A target of one domain."""
    return TargetOutputs(outputs, TargetDomains(pl.Series(["x"] * len(outputs.p)), columns or {}))


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
        models[f"m{number}"] = decided(halves[0], {"far": target(halves[1])}, False)["far"]
        expected[f"m{number}"] = np.mean(z[1500:].argmax(axis=1) == truth[1500:])
    table = line_table("far", target(halves[1]).where, models.items(), 4)
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
        models[f"m{number}"] = decided(halves[0], {"far": target(halves[1])}, False)["far"]
        areas = [roc_auc_score(truth[2000:, c], z[2000:, c]) for c in range(3)]
        expected[f"m{number}"] = np.mean(areas)
    table = line_table("far", target(halves[1]).where, models.items(), 2)
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
        found = decided(halves[0], {"far": target(halves[1])}, degenerate=number == 2)
        models[f"m{number}"] = found["far"]
    table = line_table("far", target(halves[1]).where, models.items(), 3)
    constant = table.filter(pl.col("model") == "m2")
    assert constant["value"].is_null().all() and set(constant["reason"]) == {DEGENERATE}
    assert table.filter(pl.col("model") != "m2")["value"].is_not_null().all()


def test_a_class_without_an_output_is_no_decision() -> None:
    rng = np.random.default_rng(6)
    z, labels = rng.normal(size=(50, 3)), rng.integers(0, 2, (50, 3)).astype(float)
    z[:, 1] = np.nan
    both = ScaledOutputs.of(z, labels, "multilabel", 1.0)
    found = decided(both, {"far": target(both)}, False)["far"]
    assert (found.source[:, 1] == NONE).all() and (found.target[:, 1] == NONE).all()
    assert found.known.tolist() == [50, 0, 50] and (found.source_ranks[:, 1] == 0).all()
    assert (found.source[:, [0, 2]] != NONE).all()


def test_decisions_for_a_target_are_taken_among_the_classes_that_it_is_scored_on() -> None:
    rng = np.random.default_rng(8)
    z, labels = rng.normal(size=(90, 5)), rng.integers(0, 5, 90).astype(float)
    outputs = ScaledOutputs.of(z, labels, "multiclass", 1.0)
    targets = {"some": target(outputs, {"all": [1, 3]}), "every": target(outputs)}
    found = decided(outputs, targets, False)
    member = np.isin(labels, [1, 3])
    expected = np.where(z[:, 1] > z[:, 3], 1, 3)
    np.testing.assert_array_equal(found["some"].source, expected[member])
    np.testing.assert_array_equal(found["some"].target, expected)
    assert found["some"].known[0] == member.sum()
    assert found["some"].right[0] == (expected[member] == labels[member]).sum()
    np.testing.assert_array_equal(found["every"].target, z.argmax(axis=1))


def test_decisions_of_a_streamed_target_are_its_predictions() -> None:
    rng = np.random.default_rng(9)
    z, labels = rng.normal(size=(90, 5)), rng.integers(0, 5, 90).astype(float)
    source = ScaledOutputs.of(z, labels, "multiclass", 1.0)
    where = TargetDomains(pl.Series(["a", "b"] * 45), {"all": [1, 3]})
    predicted = np.where(z[:, 1] > z[:, 3], 1, 3)
    sure, nobody = np.ones(90), source.part(np.zeros(90, dtype=bool))
    kept = StreamedOutputs(predicted, sure, sure, np.zeros(0, dtype=int), nobody)
    streamed = decided(source, {"far": TargetOutputs(kept, where)}, False)["far"]
    cached = decided(source, {"far": TargetOutputs(source, where)}, False)["far"]
    np.testing.assert_array_equal(streamed.target, cached.target)


def several(task: str, count: int = 6) -> tuple[dict[str, Decisions], TargetDomains, np.ndarray]:
    """The decisions of models on 500 source and 400 target images of two domains."""
    rng = np.random.default_rng(14)
    truth = rng.integers(0, 4, 900) if task == "multiclass" else rng.random((900, 4)) < 0.3
    hot = truth[:, None] == np.arange(4) if task == "multiclass" else truth
    where = TargetDomains(pl.Series(["a"] * 150 + ["b"] * 250), {"b": [0, 3]})
    models, scores = {}, []
    for number in range(count):
        z = (1 + 0.4 * number) * hot + rng.normal(size=(900, 4))
        z[500:] += 0.5 * rng.normal(size=(400, 4))
        halves = [
            ScaledOutputs.of(z[part], truth[part].astype(float), task, 1.0)
            for part in (slice(500), slice(500, 900))
        ]
        models[f"m{number}"] = decided(halves[0], {"far": TargetOutputs(halves[1], where)}, False)[
            "far"
        ]
        scores.append(z)
    return models, where, np.stack(scores)


def test_every_domain_has_the_line_of_its_own_images_and_classes() -> None:
    models, where, z = several("multilabel")
    table = line_table("far", where, models.items(), 2)
    # by hand, for the domain with two classes
    here, there = (
        np.stack([getattr(one, side) for one in models.values()])[:, :, [0, 3]]
        for side in ("source", "target")
    )
    there = there[:, 150:]
    agree = [
        np.array([[np.mean(a == b) for a in side] for b in side], dtype=float)
        for side in (here, there)
    ]
    one = next(iter(models.values()))
    assert one.known.tolist() == [500] * 4
    accuracy = [(one.right[0] + one.right[3]) / 1000 for one in models.values()]
    line = aline(accuracy, *agree, n=500)
    rows = table.filter(domain="b", metric="aline_d")
    assert rows["n"].to_list() == [250] * 6
    assert rows["value"].to_list() == pytest.approx(line.estimate_d.tolist())
    # and concordance against scipy's tau over all pairs, which the sampled one approaches
    taus = kendalltau(z[0, :500, 0], z[5, :500, 0]).statistic
    order = [packed_order(models[key].source_ranks[:, :1], random_pairs(500)) for key in models]
    assert concordances(order)[0, 5] == pytest.approx((taus + 1) / 2, abs=0.02)


@pytest.mark.parametrize("task", ["multiclass", "multilabel"])
def test_what_is_kept_of_a_model_gives_the_same_lines_and_names_its_model(
    tmp_path: Path, task: str
) -> None:
    models, where, _ = several(task)
    straight = line_table("far", where, models.items(), 4)
    for key, one in models.items():
        write_decisions(tmp_path / key, {"far": one, "near": one}, {"model": key, "study": "s"})
    kept = ((key, read_decisions(tmp_path / key, "far", model=key)) for key in models)
    assert line_table("far", where, kept, 4).equals(straight)
    with pytest.raises(UserError, match="m1"):
        read_decisions(tmp_path / "m0", "far", model="m1")
