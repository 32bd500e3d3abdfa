"""The score from Python: against loops over all pairs, and what it says of bad input."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import stamp
from stamp.api.score import MOST_PAIRS
from stamp.cli import one_model
from stamp.config.study_file import PairSettings, StatisticsSettings, StudyFile
from stamp.report.flags import words

QUICK = stamp.Settings(resamples=50)


def softmax(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def distance(p: np.ndarray, a: int, b: int) -> float:
    return float(((p[a] - p[b]) ** 2).sum())


@pytest.fixture
def digits() -> tuple[np.ndarray, np.ndarray]:
    """Logits and labels: as many images of each class, so that random pairs are uniform."""
    rng = np.random.default_rng(1)
    labels = np.repeat(np.arange(4), 6)
    return 2 * np.eye(4)[labels] + rng.normal(0, 1, (24, 4)), labels


def test_the_score_of_class_pairs_is_that_of_a_loop_over_all_pairs(
    digits: tuple[np.ndarray, np.ndarray],
) -> None:
    logits, labels = digits
    p = softmax(logits)
    every = list(combinations(range(len(p)), 2))
    within = np.mean([distance(p, a, b) for a, b in every if labels[a] == labels[b]])
    total = np.mean([distance(p, a, b) for a, b in every if labels[a] != labels[b]])
    found = stamp.score(logits, stamp.Images(labels=labels), QUICK)
    assert found.kind == "class" and found.images == 24
    assert found.score.n_semantic == 4 * 15
    assert found.stamp == pytest.approx(1 - within / total, rel=1e-6)
    assert found.low < found.stamp < found.high


def test_the_score_of_visits_is_that_of_a_loop_over_consecutive_ones() -> None:
    rng = np.random.default_rng(2)
    groups = [f"p{number}" for number in range(8) for _ in range(3)]
    visits = np.tile([2, 0, 1], 8)
    logits = rng.normal(0, 1, (24, 5)) + np.repeat(rng.normal(0, 2, (8, 5)), 3, axis=0)
    p = 1 / (1 + np.exp(-logits / 1.7))
    by_visit = [3 * patient + np.array([1, 2, 0]) for patient in range(8)]
    near = [pair for rows in by_visit for pair in pairwise(rows)]
    # an image counts as often as it is an end of a pair: the middle visit twice
    ends = np.bincount(np.ravel(near), minlength=24)
    far = [(a, b) for a, b in combinations(range(24), 2) if groups[a] != groups[b]]
    weights = [ends[a] * ends[b] for a, b in far]
    total = np.average([distance(p, a, b) for a, b in far], weights=weights)
    within = np.mean([distance(p, a, b) for a, b in near])
    how = stamp.Settings(task="multilabel", temperature=1.7, resamples=50)
    found = stamp.score(logits, stamp.Images(groups=groups, visits=visits), how)
    assert found.kind == "temporal" and found.groups == 8
    assert found.stamp == pytest.approx(1 - within / total, rel=1e-6)


def test_probabilities_tensors_and_batches_give_the_score_of_the_logits(
    digits: tuple[np.ndarray, np.ndarray],
) -> None:
    logits, labels = digits
    images = stamp.Images(labels=labels)
    plain = stamp.score(logits, images, QUICK)
    soft = stamp.Settings(resamples=50, probabilities=True)
    assert stamp.score(softmax(logits), images, soft).stamp == pytest.approx(plain.stamp)
    tensor = torch.tensor(logits, requires_grad=True)
    again = stamp.score(tensor, stamp.Images(labels=torch.tensor(labels)), QUICK)
    assert (again.stamp, again.low) == (plain.stamp, plain.low)
    half = stamp.score(tensor.bfloat16(), images, QUICK)
    assert half.stamp == pytest.approx(plain.stamp, abs=0.01)
    growing = stamp.Accumulator(QUICK)
    for start in range(0, 24, 7):
        rows = slice(start, start + 7)
        growing.update(torch.tensor(logits[rows]), stamp.Images(labels=labels[rows]))
    batched = growing.compute()
    assert (batched.stamp, batched.high, batched.sample) == (plain.stamp, plain.high, plain.sample)
    growing.reset()
    with pytest.raises(stamp.UserError, match="update"):
        growing.compute()


def test_flags_say_what_is_wrong_with_the_outputs(digits: tuple[np.ndarray, np.ndarray]) -> None:
    logits, labels = digits
    images = stamp.Images(labels=labels)
    names = {flag.flag.name for flag in stamp.score(0 * logits, images, QUICK).flags}
    assert "degenerate" in names and "few" in names
    assert np.isnan(stamp.score(0 * logits, images, QUICK).stamp)
    hard = stamp.Settings(resamples=50, probabilities=True)
    names = {flag.flag.name for flag in stamp.score(np.eye(4)[labels], images, hard).flags}
    assert "hard" in names
    partial = np.where(np.arange(4) == 3, np.nan, logits)
    how = stamp.Settings(resamples=50, classes=["a", "b", "c", "d"])
    told = [flag.words for flag in stamp.score(partial, images, how).flags]
    assert words({"missing": "d"}) in told


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"outputs": np.zeros(24)}, "outputs"),
        ({"labels": np.zeros(23)}, "23"),
        ({"labels": np.full(24, 7.0)}, "7"),
        ({"labels": None}, "labels"),
        ({"groups": ["a"] * 3}, "groups"),
        ({"ids": ["a"] * 24}, "'a'"),
        ({"task": "regression"}, "regression"),
        ({"probabilities": True}, "are these logits"),
        ({"classes": ["a"]}, "settings.classes"),
        ({"max_pairs": 10_000}, "10000"),
        ({"outputs": np.full((24, 4), np.inf)}, "not finite"),
        ({"labels": np.arange(24) % 24, "outputs": np.zeros((24, 24))}, "class pair"),
        ({"kind": "temporal"}, "visit"),
    ],
)
def test_a_mistake_is_one_line_that_names_it(
    digits: tuple[np.ndarray, np.ndarray], change: dict[str, Any], named: str
) -> None:
    given = {"labels": digits[1], **change}
    images = {name: given[name] for name in stamp.Images.__dataclass_fields__ if name in given}
    how = {name: given[name] for name in stamp.Settings.__dataclass_fields__ if name in given}
    with pytest.raises(stamp.UserError, match=named) as caught:
        stamp.score(given.get("outputs", digits[0]), stamp.Images(**images), stamp.Settings(**how))
    assert "\n" not in str(caught.value)


def test_the_defaults_are_those_of_a_study() -> None:
    how, fields = stamp.Settings(), PairSettings.model_fields
    for name in ("mode", "order", "random", "pool"):
        assert getattr(how, name) == fields[name].default
    for name in ("resamples", "level"):
        assert getattr(how, name) == StatisticsSettings.model_fields[name].default
    assert how.estimator == StudyFile.model_fields["estimator"].default
    assert MOST_PAIRS == one_model.MOST_PAIRS


def test_the_import_is_light_and_offers_what_it_names() -> None:
    code = (
        "import gc, sys; own = gc.get_threshold(); import stamp;"
        "heavy = {'torch', 'snakemake', 'polars', 'numpy', 'pydantic'};"
        "assert not heavy & set(sys.modules);"
        "[getattr(stamp, name) for name in stamp.__all__];"
        "assert set(stamp.__all__) <= set(dir(stamp));"
        "assert not {'torch', 'snakemake', 'matplotlib'} & set(sys.modules);"
        "assert gc.get_threshold() == own"
    )
    folder = Path(stamp.__file__).parents[1]
    subprocess.run([sys.executable, "-c", code], check=True, cwd=folder)
    with pytest.raises(AttributeError, match="scores"):
        _ = stamp.scores
