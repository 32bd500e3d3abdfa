"""Training repeats itself, learns what can be learned, and does to the labels what it says."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from stamp.core.errors import UserError
from stamp.inference.logits import Forward
from stamp.models.training import train as training
from stamp.models.training.augment import augment

CLASSES = ["left", "right"]


def task(n: int = 240) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Bright on the left or on the right, in noise."""
    rng = np.random.default_rng(0)
    labels = np.arange(n) % 2
    images = rng.integers(0, 120, size=(n, 16, 16, 1))
    for row, label in enumerate(labels):
        images[row, :, 8 * label : 8 * label + 8] += 100
    return images.astype(np.uint8), labels.astype(float), [str(k) for k in labels]


def block(**recipe: object) -> dict:
    arch = {"layers": [1, 1, 1, 1], "channels": [4, 8, 8, 8], "stem_type": "deep", "stem_width": 4}
    return {
        "source": "train",
        "arch": "resnet18",
        "arch_args": arch,
        "preprocessing": {"size": 16, "channels": 1},
        "epochs": 3,
        "batch": 16,
        **recipe,
    }


def accuracy(trained: training.Trained, pixels: np.ndarray, labels: np.ndarray) -> float:
    outputs = Forward(trained.loaded, "cpu")(torch.from_numpy(pixels))
    return float((outputs.argmax(1) == labels).mean())


def fit(seed: int = 0, **recipe: object) -> training.Trained:
    pixels, labels, groups = task()
    images = training.TrainingImages(pixels, labels, groups, "multiclass")
    return training.train(block(**recipe), CLASSES, images, seed, 1, "m")


@pytest.mark.parametrize(
    ("backbone", "least"), [("supervised", 0.9), ("selfsupervised", 0.9), ("random", 0.6)]
)
def test_every_backbone_learns_an_easy_task(backbone: str, least: float) -> None:
    """Eight random features carry only part of it; a trained backbone carries it all."""
    pixels, labels, _ = task()
    assert accuracy(fit(backbone=backbone), pixels, labels) > least


def test_one_seed_gives_the_same_weights_bit_for_bit_and_another_does_not() -> None:
    first, again, other = fit(0), fit(0), fit(1)
    weights = [dict(each.loaded.module.named_parameters()) for each in (first, again, other)]
    assert all(torch.equal(weights[0][key], weights[1][key]) for key in weights[0])
    assert any(not torch.equal(weights[0][key], weights[2][key]) for key in weights[0])


def test_a_frozen_backbone_keeps_its_weights() -> None:
    torch.manual_seed(0)
    untouched = training.network(block(), CLASSES).module
    trained = fit(0, backbone="random").loaded.module
    for name, weight in untouched.named_parameters():
        if not name.startswith("fc."):
            assert torch.equal(weight, dict(trained.named_parameters())[name])


def test_a_linear_head_is_the_penalised_optimum_that_scikit_learn_finds() -> None:
    from sklearn.linear_model import LogisticRegression

    pixels, labels, _ = task()
    trained = fit(arch="linear", arch_args={}, backbone="random")
    x = (pixels.reshape(len(pixels), -1) / 255 - 0.5) / 0.25
    x = (x - x.mean(0)) / x.std(0, ddof=1)
    c = 1 / (2 * training.HEAD_PENALTY * len(x))
    reference = LogisticRegression(C=c, tol=1e-8, max_iter=5000)
    # two softmax outputs with L2 on both equal one logistic output with half the penalty
    reference.set_params(C=c * 2).fit(x, labels)
    outputs = Forward(trained.loaded, "cpu")(torch.from_numpy(pixels))
    margin = outputs[:, 1] - outputs[:, 0]
    assert np.corrcoef(margin, reference.decision_function(x))[0, 1] > 0.999


def test_label_noise_flips_the_share_asked_for_and_never_keeps_a_hit_label() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 10, size=20_000).astype(float)
    noisy = training.corrupt(labels, 0.3, 10, rng)
    assert np.mean(noisy != labels) == pytest.approx(0.3, abs=0.01)
    many = rng.integers(0, 2, size=(5000, 4)).astype(float)
    many[::7, 1] = np.nan
    flipped = training.corrupt(many, 0.2, 4, rng)
    assert np.array_equal(np.isnan(many), np.isnan(flipped))
    known = ~np.isnan(many)
    assert np.mean(flipped[known] != many[known]) == pytest.approx(0.2, abs=0.01)


def test_a_fraction_takes_whole_patients_or_the_same_share_of_each_class() -> None:
    rng = np.random.default_rng(0)
    patients = [f"p{k // 4}" for k in range(200)]
    rows = training.choose(patients, 0.2, "multilabel", rng)
    assert len(rows) == 40
    assert len({patients[row] for row in rows}) == 10
    classes = ["a"] * 150 + ["b"] * 50
    rows = training.choose(classes, 0.1, "multiclass", rng)
    assert sorted(classes[row] for row in rows) == ["a"] * 15 + ["b"] * 5


def test_augmented_pictures_stay_pictures_and_depend_on_the_generator_only() -> None:
    images = torch.rand(8, 1, 20, 20)
    kept = images.clone()
    first = augment(images, torch.Generator().manual_seed(3))
    again = augment(images, torch.Generator().manual_seed(3))
    assert torch.equal(first, again)
    assert torch.equal(images, kept)
    assert first.shape == images.shape
    assert first.min() >= 0
    assert first.max() <= 1
    assert not torch.equal(first, images)


def test_a_diverging_training_is_one_line() -> None:
    with pytest.raises(UserError, match="training diverged"):
        fit(learning_rate=1e30)


def test_no_labeled_image_is_one_line() -> None:
    pixels, labels, groups = task()
    with pytest.raises(UserError, match="no training image has a label"):
        images = training.TrainingImages(pixels, labels * np.nan, groups, "multiclass")
        training.train(block(), CLASSES, images, 0, 1, "m")


def test_mixup_is_cross_entropy_with_the_mixed_labels_of_the_mixed_images() -> None:
    torch.manual_seed(0)
    pixels, labels, _ = task(12)
    loaded = training.network(block(arch="linear", arch_args={}), CLASSES)
    recipe = {**training.DEFAULTS, "mixup": 0.4}
    trainer = training.Trainer(loaded, torch.from_numpy(pixels), recipe, seed=5)
    images, target = trainer.batch(torch.arange(12), False), torch.from_numpy(labels).long()
    share = float(np.random.default_rng([5, 1]).beta(0.4, 0.4))
    assert 0 < share < 1
    soft = torch.nn.functional.one_hot(target, 2).double()
    soft = share * soft + (1 - share) * soft.flip(0)
    logits = loaded.module(share * images + (1 - share) * images.flip(0)).double()
    expected = -(soft * logits.log_softmax(1)).sum(1).mean()
    found = float(trainer.mixed(images, target).detach())
    assert found == pytest.approx(float(expected.detach()), rel=1e-5)
    assert any(
        not torch.equal(*both)
        for both in zip(
            fit(0).loaded.module.parameters(),
            fit(0, mixup=0.2).loaded.module.parameters(),
            strict=True,
        )
    )
