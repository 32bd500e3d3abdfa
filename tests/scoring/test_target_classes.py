"""Classes that a model has no output for, and classes that a target merges."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.special import expit
from sklearn.metrics import roc_auc_score

from stamp.core.errors import UserError
from stamp.inference.logits import check_outputs
from stamp.inference.outputs import Outputs, merged, present
from stamp.scoring.calibrate import fit_temperature
from stamp.scoring.class_matched_score import class_matched_scores
from stamp.scoring.evaluate import LabeledImages, evaluate
from stamp.scoring.score import ScoreSettings, score_pool

CLASSES = ["Edema", "Mass", "Nodule"]
SETTINGS = ScoreSettings(
    task="multilabel",
    classes=CLASSES,
    semantic="temporal",
    random="different_group",
    number=40,
    scale=True,
    resamples=50,
    level=0.95,
    seed=0,
)


def pool(logits: np.ndarray) -> Outputs:
    images = [f"i{k}" for k in range(len(logits))]
    groups = [f"g{k // 2}" for k in range(len(logits))]
    return Outputs(pl.DataFrame({"image": images, "group": groups}), logits, 1)


def pairs(images: int) -> pl.DataFrame:
    semantic = [(f"i{k}", f"i{k + 1}", "temporal") for k in range(0, images, 2)]
    random = [(f"i{k}", f"i{(k + 7) % images}", "random") for k in range(images)]
    return pl.DataFrame(semantic + random, schema=["a", "b", "kind"], orient="row")


@pytest.fixture
def logits() -> np.ndarray:
    rng = np.random.default_rng(1)
    return rng.normal(size=(60, 3)) + np.repeat(rng.normal(size=(30, 3)), 2, axis=0)


def without(logits: np.ndarray, column: int) -> np.ndarray:
    changed = logits.copy()
    changed[:, column] = np.nan
    return changed


def test_a_score_leaves_out_a_class_without_an_output(logits: np.ndarray) -> None:
    gap = score_pool(pool(without(logits, 1)), pairs(60), "temporal", SETTINGS, 1.0)
    p = expit(logits[:, [0, 2]])
    rows = np.arange(0, 60, 2)
    within = np.mean(np.sum((p[rows] - p[rows + 1]) ** 2, axis=1))
    every = np.arange(40)  # the design uses the first 40 random pairs
    total = np.mean(np.sum((p[every] - p[(every + 7) % 60]) ** 2, axis=1))
    assert gap.sampled_stamp == pytest.approx(1 - within / (total + 1e-8), abs=1e-12)
    assert gap.estimator == "exact" and gap.within == pytest.approx(within)


def test_an_auroc_without_an_output_is_null_with_its_reason(logits: np.ndarray) -> None:
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 2, size=(60, 3)).astype(float)
    domains = pl.Series(["x"] * 60)
    table = evaluate(without(logits, 2), LabeledImages(labels, domains), "multilabel", CLASSES, 5)
    row = table.filter(pl.col("class") == "Nodule").row(0, named=True)
    assert row["value"] is None and row["reason"] == "the model has no output for it"
    macro = table.row(0, named=True)
    known = [roc_auc_score(labels[:, k], logits[:, k]) for k in range(2)]
    assert macro["value"] == pytest.approx(np.mean(known))
    assert macro["reason"] == "2 of 3 classes (Nodule: the model has no output for it)"


def test_a_class_without_an_output_is_never_predicted() -> None:
    logits = np.array([[0.1, np.nan, 0.2], [-5.0, np.nan, -7.0]])
    domains = pl.Series(["x", "x"])
    table = evaluate(logits, LabeledImages(np.array([2.0, 1.0]), domains), "multiclass", CLASSES)
    assert table["value"][0] == 0.5


@pytest.mark.parametrize("task", ["multilabel", "multiclass"])
def test_the_temperature_is_that_of_the_classes_that_are_there(
    task: str, logits: np.ndarray
) -> None:
    rng = np.random.default_rng(3)
    if task == "multilabel":
        labels = rng.integers(0, 2, size=(60, 3)).astype(float)
        rest = labels[:, [0, 2]]
    else:
        labels = rng.integers(0, 3, size=60).astype(float)
        rest = np.select([labels == 0, labels == 2], [0.0, 1.0], np.nan)
    whole = fit_temperature(without(logits, 1), labels, task)
    assert whole == fit_temperature(logits[:, [0, 2]], rest, task)


def test_a_merged_class_has_the_largest_of_its_parts_that_are_there(logits: np.ndarray) -> None:
    found = merged(logits, CLASSES, {"Nodule/Mass": ["Mass", "Nodule"]})
    assert found.shape == (60, 4)
    np.testing.assert_array_equal(found[:, 3], logits[:, 1:].max(axis=1))
    one = merged(without(logits, 1), CLASSES, {"Nodule/Mass": ["Mass", "Nodule"]})
    np.testing.assert_array_equal(one[:, 3], logits[:, 2])
    none = merged(np.full((4, 3), np.nan), CLASSES, {"Nodule/Mass": ["Mass", "Nodule"]})
    assert not present(none).any()


def test_a_matched_score_takes_a_merged_class_as_one_output(logits: np.ndarray) -> None:
    merge = {"Nodule/Mass": ["Mass", "Nodule"]}
    wanted = {"all": ["Nodule/Mass"], "edema": ["Edema"]}
    rows = class_matched_scores(pool(logits), pairs(60), SETTINGS, 1.0, wanted, merge)
    single = logits[:, 1:].max(axis=1, keepdims=True)
    alone = score_pool(pool(single), pairs(60), "temporal", SETTINGS, 1.0)
    assert rows["stamp"][0] == pytest.approx(alone.stamp)
    assert rows["classes"][0] == "Nodule/Mass"
    partial = pool(without(logits, 0))
    gap = class_matched_scores(partial, pairs(60), SETTINGS, 1.0, wanted, merge)
    assert gap["stamp"][1] is None and gap["stamp"][0] == rows["stamp"][0]


def test_only_the_declared_gaps_may_be_not_finite() -> None:
    check_outputs(np.array([[0.0, np.nan]]), 2, "m", missing=(1,))
    with pytest.raises(UserError, match="not finite"):
        check_outputs(np.array([[np.nan, np.nan]]), 2, "m", missing=(1,))
