"""Projection Norm: a network learns its own answers, against a training by hand."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import torch
from scipy.special import expit, softmax
from torch import nn

from stamp.core.errors import UserError
from stamp.inference.pseudo_label_training import (
    MOMENTUM,
    RATE,
    STEPS,
    PseudoLabelTraining,
    flat,
    initialised_again,
)
from stamp.metrics.projection_norm import TrainingImages, precomputed, projection_norms
from stamp.models.loaded_model import LoadedModel

SIDE, CLASSES, MEAN, STD = 3, 3, 0.4, 0.25


def images(seed: int, n: int = 40, darker: int = 1) -> np.ndarray:
    drawn = np.random.default_rng(seed).integers(0, 256, (n, SIDE, SIDE, 1), dtype=np.uint8)
    return drawn // darker


def network(seed: int = 0, classes: int = CLASSES) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Flatten(), nn.Linear(SIDE * SIDE, classes))


def training(module: nn.Module, task: str, missing: tuple[int, ...] = ()) -> PseudoLabelTraining:
    loaded = LoadedModel(module, (MEAN,), (STD,), missing)
    return PseudoLabelTraining(loaded, task, CLASSES, 7, "cpu")


def by_hand(start: np.ndarray, answers: np.ndarray, x: np.ndarray, task: str) -> np.ndarray:
    """Weights and biases [10, C] after gradient descent with momentum on all images at once."""
    w, speed = start.copy(), np.zeros_like(start)
    for step in range(STEPS):
        z = x @ w
        p = softmax(z, axis=1) if task == "multiclass" else expit(z) / z.shape[1]
        wanted = answers if task == "multiclass" else answers / z.shape[1]
        speed = MOMENTUM * speed + x.T @ (p - wanted) / len(x)
        w = w - RATE * (1 + np.cos(np.pi * step / STEPS)) / 2 * speed
    return w


def matrix(module: nn.Module) -> np.ndarray:
    layer = module[1]  # type: ignore[index]
    return np.vstack([layer.weight.detach().numpy().T, layer.bias.detach().numpy()]).astype(float)


@pytest.mark.parametrize("task", ["multiclass", "multilabel"])
def test_the_distance_is_that_of_two_trainings_from_one_start(task: str) -> None:
    own = network(1)
    found = training(own, task)
    ends = []
    start = matrix(initialised_again(own, 7))
    for pixels in (images(1), images(2, darker=4)):
        x = (pixels.reshape(len(pixels), -1) / 255 - MEAN) / STD
        x = np.hstack([x, np.ones((len(x), 1))])
        z = x @ matrix(own)
        answers = np.eye(CLASSES)[z.argmax(axis=1)] if task == "multiclass" else expit(z)
        ends.append(by_hand(start, answers, x, task))
    expected = np.linalg.norm(ends[1] - ends[0]) / np.linalg.norm(ends[0] - start)
    rows = np.arange(40)
    reference = found.trained(images(1).__getitem__, rows)
    other = found.trained(images(2, darker=4).__getitem__, rows)
    assert found.relative(reference, other) == pytest.approx(expected, rel=1e-3)


def test_a_start_is_drawn_from_the_seed_whatever_the_network_has_learned() -> None:
    first, second = network(1), network(2)
    assert not torch.equal(flat(first), flat(second))
    same = [flat(initialised_again(one, 7)) for one in (first, second)]
    assert torch.equal(*same)
    assert not torch.equal(same[0], flat(initialised_again(first, 8)))
    assert torch.equal(flat(first), flat(network(1)))  # the network itself stays


def test_a_network_that_can_not_start_again_has_a_reason() -> None:
    class Fixed(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.flatten(1)[:, :CLASSES]

    with pytest.raises(UserError, match="initialised again"):
        initialised_again(Fixed(), 0)


class Cache:
    """Pixels that are taken by row numbers, as from a pixel cache."""

    def __init__(self, pixels: np.ndarray):
        self.pixels = pixels

    def take(self, rows: np.ndarray) -> np.ndarray:
        return self.pixels[rows]


class Selected:
    def __init__(self, pixels: np.ndarray, rows: np.ndarray):
        self.cache, self.rows = Cache(pixels), rows


def some_images(count: int = 30) -> TrainingImages:
    """A target with the source's own images as one domain, and darker ones as the other."""
    near, far = images(1, 30), images(1, 30, darker=8)
    lone = images(3, 1)
    views = {
        "mixed": pl.DataFrame({"domain": ["near"] * 30 + ["far"] * 30}),
        "lone": pl.DataFrame({"domain": ["x"]}),
    }
    targets = Selected(np.concatenate([near, far, lone]), np.arange(61))
    return TrainingImages(Cache(near), np.arange(30), targets, views, count)  # type: ignore[arg-type]


@pytest.mark.parametrize("missing", [(), (1,)])
def test_every_domain_has_a_row_and_the_source_s_own_images_are_at_no_distance(
    missing: tuple[int, ...],
) -> None:
    def made() -> PseudoLabelTraining:
        return training(network(1), "multiclass", missing)

    table = projection_norms("m", made, some_images())
    rows = {(one["view"], one["domain"]): one for one in table.iter_rows(named=True)}
    assert set(rows) == {("mixed", "all"), ("mixed", "near"), ("mixed", "far"), ("lone", "all")}
    assert rows["mixed", "near"]["value"] == pytest.approx(0, abs=1e-6)
    assert rows["mixed", "far"]["value"] > 0.1 and rows["mixed", "far"]["n"] == 30
    assert rows["mixed", "all"]["n"] == 30  # as many as of a domain
    assert rows["lone", "all"]["value"] is None
    assert "2 images" in rows["lone", "all"]["reason"]
    assert table.equals(projection_norms("m", made, some_images()))


def test_a_model_that_can_not_be_trained_has_the_reason_in_every_row() -> None:
    def made() -> PseudoLabelTraining:
        raise UserError("no layer of it")

    table = projection_norms("m", made, some_images())
    assert table["value"].is_null().all() and set(table["reason"]) == {"no layer of it"}
    assert "precomputed" in precomputed("m", ["mixed"])["reason"][0]
