"""Linear probes are the penalised optimum, for labels with gaps and features of any scale."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
import torch
from scipy.optimize import approx_fprime
from sklearn.linear_model import LogisticRegression
from snakemake.iocontainers import InputFiles

import backbone_embeddings as embeddings_script
import probe as probe_script
from stamp.core.artifacts import ids_digest, read_arrays, read_json, write_json, write_table
from stamp.core.errors import UserError
from stamp.inference.logits import Forward
from stamp.models.architectures import build
from stamp.models.loaders import probe as probed
from stamp.models.training import probe
from stamp.models.training.validation import metric_of
from stamp.models.weights import write_weights
from stamp.stats.auroc import auroc


def made(n: int = 400, d: int = 12, classes: int = 3, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Correlated features and noisy 0/1 labels, one label in ten unknown."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, d)) @ (np.eye(d) + 0.5 * rng.normal(size=(d, d)))
    logits = features @ rng.normal(size=(d, classes)) * 0.4 - np.arange(classes)
    labels = (rng.random((n, classes)) < 1 / (1 + np.exp(-logits))).astype(float)
    labels[rng.random(labels.shape) < 0.1] = np.nan
    return features, labels


def numbers(labels: np.ndarray) -> np.ndarray:
    """Class numbers that depend on the 0/1 labels."""
    return np.nan_to_num(labels).astype(int) @ np.array([1, 1, 1])


def fitted(
    features: np.ndarray, labels: np.ndarray, penalty: float, **more: object
) -> probe.FittedHead:
    task = "multiclass" if labels.ndim == 1 else "multilabel"
    classes = int(labels.max()) + 1 if labels.ndim == 1 else labels.shape[1]
    options = {"classes": classes, "penalties": [penalty], "standardise": False, **more}
    both = probe.LabeledEmbeddings(features, labels)
    return probe.fit(both, both, task, **options)


@pytest.mark.parametrize("penalty", [1e-4, 1e-2, 1.0])
def test_each_class_has_the_coefficients_that_scikit_learn_finds_on_its_labeled_images(
    penalty: float,
) -> None:
    features, labels = made()
    found = fitted(features, labels, penalty)
    for c in range(labels.shape[1]):
        known = ~np.isnan(labels[:, c])
        reference = LogisticRegression(C=1 / (known.sum() * penalty), tol=1e-10, max_iter=10_000)
        reference.fit(features[known], labels[known, c])
        assert found.weight[c] == pytest.approx(reference.coef_[0], abs=1e-4)
        assert found.bias[c] == pytest.approx(reference.intercept_[0], abs=1e-4)


@pytest.mark.parametrize("penalty", [1e-3, 1e-1])
def test_a_multinomial_probe_has_the_coefficients_that_scikit_learn_finds(penalty: float) -> None:
    features, labels = made()
    classes = numbers(labels).astype(float)
    found = fitted(features, classes, penalty)
    reference = LogisticRegression(C=1 / (len(classes) * penalty), tol=1e-10, max_iter=10_000)
    reference.fit(features, classes)
    assert found.weight == pytest.approx(reference.coef_, abs=1e-4)
    bias = reference.intercept_ - reference.intercept_.mean()
    assert found.bias == pytest.approx(bias, abs=1e-4)


def test_one_feature_of_two_values_gives_the_log_odds_of_the_two_by_two_table() -> None:
    table = {(0, 0): 40, (0, 1): 10, (1, 0): 15, (1, 1): 35}
    rows = np.array([cell for cell, count in table.items() for _ in range(count)], dtype=float)
    found = fitted(rows[:, :1], rows[:, 1:], 1e-9)
    assert found.bias[0] == pytest.approx(np.log(10 / 40), abs=1e-5)
    assert found.weight[0, 0] == pytest.approx(np.log(35 / 15) - np.log(10 / 40), abs=1e-5)


@pytest.mark.parametrize("multiclass", [False, True])
def test_the_gradient_is_that_of_finite_differences(multiclass: bool) -> None:
    features, labels = made(n=60, d=4)
    wanted = probe.targets(numbers(labels).astype(float) if multiclass else labels, [0, 1, 2])
    parameters = np.random.default_rng(1).normal(size=(3, 5))

    def value(flat: np.ndarray) -> float:
        return probe.objective(flat.reshape(3, 5), features, wanted, 0.3)[0]

    gradient = probe.objective(parameters, features, wanted, 0.3)[1]
    assert gradient.ravel() == pytest.approx(approx_fprime(parameters.ravel(), value), abs=1e-6)


def test_logits_do_not_depend_on_the_scale_of_standardised_features() -> None:
    features, labels = made()
    rng = np.random.default_rng(2)
    scale = np.exp(rng.uniform(-7, 7, size=features.shape[1]))
    moved = features * scale + rng.normal(size=features.shape[1]) * scale
    plain = fitted(features, labels, 1e-2, standardise=True)
    other = fitted(moved, labels, 1e-2, standardise=True)
    logits = [x @ each.weight.T + each.bias for x, each in ((features, plain), (moved, other))]
    assert logits[0] == pytest.approx(logits[1], abs=1e-5)
    assert not np.allclose(fitted(features, labels, 1e-2).weight, plain.weight, atol=1e-3)


def test_images_without_any_label_and_features_that_never_vary_change_nothing() -> None:
    features, labels = made()
    plain = fitted(features, labels, 1e-2, standardise=True)
    more = np.concatenate([features, 100 * features[:50]])
    unlabeled = np.concatenate([labels, np.full((50, 3), np.nan)])
    again = fitted(
        np.column_stack([more, np.full(len(more), 0.1)]), unlabeled, 1e-2, standardise=True
    )
    assert again.weight[:, :-1] == pytest.approx(plain.weight, abs=1e-6)
    assert np.array_equal(again.weight[:, -1], np.zeros(3))


def test_the_penalty_is_the_best_on_the_validation_images_and_the_strongest_of_equals() -> None:
    features, labels = made(n=400, d=40)
    penalties = [1e-6, 1e-3, 1e-1, 1.0, 1e3]
    train, unseen = (features[:80], labels[:80]), (features[80:], labels[80:])
    found = probe.fit(
        probe.LabeledEmbeddings(*train),
        probe.LabeledEmbeddings(*unseen),
        "multilabel",
        3,
        penalties,
        True,
    )
    assert [each["penalty"] for each in found.curve] == sorted(penalties, reverse=True)
    metrics = {each["penalty"]: each["metric"] for each in found.curve}
    assert len(set(metrics.values())) > 2
    assert metrics[found.penalty] == max(metrics.values())
    assert metric_of(unseen[0] @ found.weight.T + found.bias, unseen[1]) == metrics[found.penalty]
    easy = np.linspace(-1, 1, 50)[:, None]
    both = probe.LabeledEmbeddings(easy, (easy > 0.1) * 1.0)
    tied = probe.fit(both, both, "multilabel", 1, [0.01, 1, 0.1], True)
    assert [each["metric"] for each in tied.curve] == [1.0, 1.0, 1.0]
    assert tied.penalty == 1


def test_a_class_without_both_labels_is_constant_at_its_smoothed_log_odds_and_said_so() -> None:
    features, labels = made(classes=5, n=300)
    labels[:, 1] = np.where(np.isnan(labels[:, 1]), np.nan, 0)
    labels[:, 3] = np.nan
    labels[:, 4] = 1
    found = fitted(features, labels, 1e-2)
    assert found.constant == {
        1: "no positive training image",
        3: "no training label",
        4: "no negative training image",
    }
    assert np.array_equal(found.weight[[1, 3, 4]], np.zeros((3, features.shape[1])))
    negatives = int((labels[:, 1] == 0).sum())
    expected = [np.log(0.5 / (negatives + 0.5)), 0.0, np.log(300.5 / 0.5)]
    assert found.bias[[1, 3, 4]] == pytest.approx(expected)
    alone = fitted(features, labels[:, [0, 2]], 1e-2)
    assert found.weight[[0, 2]] == pytest.approx(alone.weight, abs=1e-5)


def test_a_class_number_that_training_never_saw_is_hardly_ever_predicted() -> None:
    features, labels = made()
    classes = numbers(labels).astype(float)
    found = fitted(features, classes, 1e-2, classes=6)
    assert found.constant == {4: "no positive training image", 5: "no positive training image"}
    logits = features @ found.weight.T + found.bias
    assert set(logits.argmax(axis=1)) <= {0, 1, 2, 3}
    unseen = np.exp(logits - np.logaddexp.reduce(logits, axis=1, keepdims=True))[:, 4:]
    assert unseen.max() < 0.02
    assert found.weight[:4] == pytest.approx(fitted(features, classes, 1e-2).weight, abs=1e-5)


def test_a_solver_that_is_stopped_too_early_is_not_believed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    features, labels = made()
    monkeypatch.setattr(probe, "STEPS", 1)
    with pytest.raises(UserError, match="tolerance at none of the penalties"):
        fitted(features, labels, 1e-4)


def test_more_features_than_images_are_solved_to_the_tolerance_at_every_default_penalty() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(60, 100)).astype(np.float32)
    labels = (rng.random((60, 2)) < 0.3).astype(float)
    both = probe.LabeledEmbeddings(features, labels)
    found = probe.fit(both, both, "multilabel", 2, probe.DEFAULTS["penalty"], True)
    assert all(each["converged"] for each in found.curve)


@pytest.mark.parametrize("labels", [np.full((20, 2), np.nan), np.zeros((20, 2)), np.zeros(20)])
def test_labels_that_tell_nothing_apart_are_one_line(labels: np.ndarray) -> None:
    features = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(UserError, match=r"image has a label|both a positive|no classes apart"):
        fitted(features, labels, 1.0)


SIZE, ARCH = 16, {"layers": [1, 1, 1, 1], "channels": [4, 4, 8, 8]}


def job(folder: Path) -> SimpleNamespace:
    """Jobs of the rules `features` and `probe`, on files as the workflow writes them."""
    rng = np.random.default_rng(0)
    files = {}
    for view, n in (("train", 150), ("val", 60)):
        labels = rng.integers(0, 2, size=n)
        images = rng.integers(0, 100, size=(n, SIZE, SIZE, 1)) + 60 * labels[:, None, None, None]
        ids = [f"{view}{row}" for row in range(n)]
        np.save(folder / f"{view}.npy", images.astype(np.uint8))
        write_json(folder / f"{view}.json", {"ids": ids_digest(ids), "pixels": view})
        table = pl.DataFrame({"image": ids, "light": labels, "never": np.zeros(n, dtype=int)})
        write_table(folder / f"{view}.parquet", table, {"study": "s", "view": view})
        files[view] = SimpleNamespace(
            pixels=folder / f"{view}.npy",
            record=folder / f"{view}.json",
            view=folder / f"{view}.parquet",
        )
    weights = folder / "backbone.safetensors"
    torch.manual_seed(0)
    write_weights(build("resnet18", ARCH, 0, 3, SIZE), weights, {})
    backbone = {"timm": "resnet18", "args": ARCH, "file": str(weights)}
    return SimpleNamespace(
        files=files,
        weights=weights,
        load={"backbone": backbone, "preprocessing": {"size": SIZE, "channels": 1}},
        classes=["light", "never"],
        digests=[sha256(weights.read_bytes()).hexdigest()],
    )


def extracted(made: SimpleNamespace, folder: Path, view: str) -> Path:
    target = folder / f"{view}.safetensors"
    embeddings_script.main(
        SimpleNamespace(
            input=InputFiles(fromdict={**vars(made.files[view]), "weights": [str(made.weights)]}),
            output=[target],
            wildcards=SimpleNamespace(study="s", view=view, backbone="b"),
            params=SimpleNamespace(
                load=made.load,
                versions={"torch": "1"},
                files=made.digests,
                pixels={"module": "stamp.images.pixel_cache"},
                batch=64,
                numerics={},
            ),
            resources={"gpu": 0},
            threads=1,
        )
    )
    return target


def test_the_scripts_give_a_head_under_which_the_backbone_gives_the_probes_own_logits(
    tmp_path: Path,
) -> None:
    """Features by one script, the head by the other, logits by the loader: all the same numbers."""
    made = job(tmp_path)
    found = {view: extracted(made, tmp_path, view) for view in ("train", "val")}
    arrays = read_arrays(found["val"], backbone="b", view="val")["embeddings"]
    assert arrays.shape == (60, 8)
    smk = SimpleNamespace(
        input=SimpleNamespace(
            view=made.files["train"].view,
            embeddings=found["train"],
            val_view=made.files["val"].view,
            val_embeddings=found["val"],
        ),
        output=SimpleNamespace(
            weights=tmp_path / "head.safetensors", record=tmp_path / "head.json"
        ),
        wildcards=SimpleNamespace(study="s", model="m"),
        params=SimpleNamespace(
            backbone="b", task="multilabel", classes=made.classes, head={"penalty": [0.01, 1.0]}
        ),
    )
    probe_script.main(smk)
    record = read_json(smk.output.record)
    assert record["constant"] == {"never": "no positive training image"}
    assert record["penalty"] in (0.01, 1.0)
    assert [record["backbone_sha256"]] == made.digests
    assert record["weights_sha256"] == sha256(smk.output.weights.read_bytes()).hexdigest()
    head = read_arrays(smk.output.weights, model="m")
    loaded = probed.load({"source": "probe", **made.load}, made.classes, smk.output.weights)
    pixels = torch.from_numpy(np.load(made.files["val"].pixels))
    logits = Forward(loaded, "cpu")(pixels)
    assert logits == pytest.approx(arrays @ head["weight"].T + head["bias"], abs=1e-4)
    truth = pl.read_parquet(made.files["val"].view)["light"].to_numpy()
    assert auroc(logits[:, 0], truth) > 0.8


def test_features_of_another_backbone_or_view_are_refused_by_name(tmp_path: Path) -> None:
    made = job(tmp_path)
    found = {view: extracted(made, tmp_path, view) for view in ("train", "val")}
    files = {"view": made.files["train"].view, "val_view": made.files["val"].view}
    smk = SimpleNamespace(
        wildcards=SimpleNamespace(study="s", model="m"),
        params=SimpleNamespace(backbone="other", task="multilabel", classes=made.classes, head={}),
    )
    smk.input = SimpleNamespace(**files, embeddings=found["train"], val_embeddings=found["val"])
    with pytest.raises(UserError, match="made with backbone 'b', but 'other' is needed"):
        probe_script.main(smk)
    smk.params.backbone = "b"
    smk.input = SimpleNamespace(**files, embeddings=found["train"], val_embeddings=found["train"])
    with pytest.raises(UserError, match="made with view 'train', but 'val' is needed"):
        probe_script.main(smk)


def test_embeddings_that_are_not_finite_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    made = job(tmp_path)
    weights = Path(made.load["backbone"]["file"])
    broken = build("resnet18", ARCH, 0, 3, SIZE)
    torch.nn.init.constant_(broken.conv1.weight, float("nan"))
    write_weights(broken, weights, {})
    made.digests = [sha256(weights.read_bytes()).hexdigest()]
    with pytest.raises(UserError, match=r"^backbone 'b': embeddings are not finite"):
        extracted(made, tmp_path, "val")
    assert not (tmp_path / "val.safetensors").exists()
