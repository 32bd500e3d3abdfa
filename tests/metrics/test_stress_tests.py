"""Stress tests of one model against plain loops, closed forms and a bootstrap."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from PIL import Image, ImageOps
from sklearn.metrics import roc_auc_score
from torch import nn

from stamp.core.artifacts import ids_digest, write_json
from stamp.core.errors import UserError
from stamp.images.pixel_cache import PixelCache
from stamp.inference.extra_outputs.manifest import write_manifest, write_precomputed
from stamp.inference.extra_outputs.output_files import OutputFiles
from stamp.inference.extra_outputs.runner import Runner
from stamp.inference.extra_outputs.selected_images import SelectedImages
from stamp.inference.extra_outputs.stress_tests import settings as stress_settings
from stamp.inference.extra_outputs.stress_tests import stress_tests
from stamp.inference.logits import Execution
from stamp.inference.outputs import Outputs
from stamp.metrics.inputs import OutputSettings, TargetDomains, TargetFiles
from stamp.metrics.stress_tests import (
    StressOutputs,
    StressTable,
    difference,
    labeled_metric,
    mean_estimate,
    stress_metric,
    stress_stability,
)
from stamp.models.loaded_model import LoadedModel
from stamp.scoring.evaluate import LabeledImages, clusters, evaluate

SIZE, COUNT, SEED = 16, 90, 4
CLASSES = ["a", "b", "c"]
IDS = [f"i{number}" for number in range(COUNT)]
CHANGES = {"jpeg": "1", "posterise": "1", "pixelation": "1"}


def as_saved(picture: Image.Image) -> Image.Image:
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=20)
    return Image.open(file)


def halved(picture: Image.Image) -> Image.Image:
    small = picture.resize((SIZE // 2, SIZE // 2), Image.Resampling.BOX)
    return small.resize((SIZE, SIZE), Image.Resampling.NEAREST)


PLAIN: dict[str, Callable[[Image.Image], Image.Image]] = {
    "jpeg": as_saved,
    "posterise": lambda picture: ImageOps.posterize(picture, 3),
    "pixelation": halved,
}


class Small(nn.Module):
    """A small network with fixed random weights."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.layers = nn.Sequential(
            nn.Conv2d(1, 6, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(6 * 49, len(CLASSES))
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


class Blind(nn.Module):
    """A network that ignores the picture, and likes the second class best."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tensor([0.1, 2.0, -1.0]).expand(len(x), 3).clone()


def pictures() -> np.ndarray:
    rng = np.random.default_rng(1)
    return rng.integers(0, 256, (COUNT, SIZE, SIZE, 1), dtype=np.uint8)


def logits_of(module: nn.Module, pixels: np.ndarray) -> np.ndarray:
    """Logits image by image, without any of the code under test."""
    with torch.no_grad():
        scaled = [(torch.tensor(one[..., 0] / 255.0).float() - 0.4) / 0.25 for one in pixels]
        return np.concatenate([module(one[None, None]).numpy() for one in scaled])


def view(task: str) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    columns: dict[str, Any] = {
        "image": IDS,
        "role": ["pool"] * COUNT,
        "group": [f"patient {number // 3}" for number in range(COUNT)],
        "domain": ["home"] * COUNT,
        "split": ["test" if number % 5 else "train" for number in range(COUNT)],
    }
    if task == "multiclass":
        label = rng.choice(3, COUNT, p=[0.2, 0.5, 0.3])
        columns["label"] = pl.Series(
            [None if at % 10 == 3 else int(one) for at, one in enumerate(label)]
        )
    else:
        drawn = rng.random((COUNT, 3)) < (0.4, 0.5, 0.3)
        columns |= {name: drawn[:, place].astype(int) for place, name in enumerate(CLASSES)}
    return pl.DataFrame(columns)


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., StressOutputs]:
    """Runs a network on the labeled images under the changes, as the rule does."""

    def make(
        module: nn.Module, task: str, changes: Any = CHANGES, split: str | None = None
    ) -> StressOutputs:
        pixels, rows = pictures(), view(task)
        np.save(tmp_path / "x.npy", pixels)
        write_json(tmp_path / "x.json", {"ids": ids_digest(IDS)})
        cache = PixelCache(tmp_path / "x.npy", tmp_path / "x.json", IDS)
        names = ["label"] if task == "multiclass" else CLASSES
        labels = rows.select(pl.col(names).cast(pl.Float64)).to_numpy()
        images = SelectedImages.of_labeled(cache, rows, labels, split, 60)
        loaded = LoadedModel(module.eval(), (0.4,), (0.25,), ())
        what = stress_settings(changes, 60)
        about = {"model": "m", "view": "source"}
        files = OutputFiles(tmp_path, "m", {}, what, about, stress_tests(list(changes)))
        entries = files.make(
            list(changes), lambda: Runner(loaded, 3, images, what, SEED, Execution("cpu"))
        )
        write_manifest(tmp_path / "m.json", "m", "s", entries)
        clean = logits_of(module, pixels).astype(np.float32)
        return StressOutputs.read(tmp_path / "m.json", Outputs(rows, clean, None))

    return make


def settings(task: str, classes: list[str] = CLASSES) -> OutputSettings:
    return OutputSettings(classes, np.ones(len(classes), dtype=bool), task, 1.0)


@pytest.mark.parametrize("task", ["multiclass", "multilabel"])
def test_the_metric_under_a_change_is_that_of_a_plain_loop_over_files(
    made: Callable[..., StressOutputs], task: str
) -> None:
    module = Small()
    stress = made(module, task, split="test")
    rows = view(task).with_row_index("at").filter(pl.col("split") == "test")
    rows = (rows.drop_nulls("label") if task == "multiclass" else rows).head(60)
    assert stress.clean.rows["image"].to_list() == rows["image"].to_list()
    clean, found = stress.metrics(settings(task), minimum=3)
    for name, change in {"clean": lambda picture: picture, **PLAIN}.items():
        right, outputs = [], []
        for row in rows.iter_rows(named=True):
            picture = Image.fromarray(pictures()[row["at"], :, :, 0])
            pixels = np.asarray(change(picture))[..., None]
            z = logits_of(module, pixels[None])[0]
            outputs.append(z)
            if task == "multiclass":
                right.append(int(z.argmax()) == row["label"])
        own = clean if name == "clean" else found[name]
        rounded = 0.02 if name == "pixelation" else 1e-6  # PIL rounds halves up
        if task == "multiclass":
            assert own.value == pytest.approx(np.mean(right), abs=rounded)
        else:
            scores = np.stack(outputs)
            areas = [roc_auc_score(rows[one], scores[:, at]) for at, one in enumerate(CLASSES)]
            assert own.value == pytest.approx(np.mean(areas), abs=rounded)
    assert stress_metric(stress, settings(task), minimum=3).value == pytest.approx(
        np.mean([one.value for one in found.values()])
    )


def test_a_model_that_ignores_the_picture_loses_nothing_and_has_the_majoritys_accuracy(
    made: Callable[..., StressOutputs],
) -> None:
    changes = dict.fromkeys(("noise", "blur", "occlusion", "darker"), "1")
    stress = made(Blind(), "multiclass", changes)
    share = (stress.clean.rows["label"] == 1).mean()
    clean, found = stress.metrics(settings("multiclass"))
    assert clean.value == share and [one.value for one in found.values()] == [share] * 4
    assert all(difference(clean, one).value == 0 for one in found.values())
    assert all(
        (one == 0).all() for one in stress.squared_distances(settings("multiclass")).values()
    )
    assert stress_stability(stress, settings("multiclass"), total=0.5).value == 1
    both = made(Blind(), "multilabel", changes)
    assert stress_metric(both, settings("multilabel")).value == 0.5


def test_stability_is_one_minus_the_mean_squared_distance_over_av(
    made: Callable[..., StressOutputs],
) -> None:
    stress = made(Small(), "multilabel")
    moved = []
    for name in CHANGES:
        p, q = (
            1 / (1 + np.exp(-one.logits.astype(float)))
            for one in (stress.clean, stress.changed[name])
        )
        moved.append(
            [sum((a - b) ** 2 for a, b in zip(*two, strict=True)) for two in zip(p, q, strict=True)]
        )
    found = stress_stability(stress, settings("multilabel"), total=0.3).value
    assert found == pytest.approx(1 - np.mean(moved) / 0.3, abs=1e-6)
    assert found < 1


def test_outputs_repeat_with_the_seed_and_an_edited_change_is_made_again_alone(
    made: Callable[..., StressOutputs], tmp_path: Path
) -> None:
    changes = {"noise": "1", "blur": "1"}
    first = made(Small(), "multiclass", changes)
    before = {name: (tmp_path / name / "m.safetensors").stat().st_mtime_ns for name in changes}
    again = made(Small(), "multiclass", changes | {"noise": "2", "shift": "1"})
    after = {name: (tmp_path / name / "m.safetensors").stat().st_mtime_ns for name in changes}
    assert after["blur"] == before["blur"] and after["noise"] > before["noise"]
    assert (first.changed["noise"].logits == again.changed["noise"].logits).all()
    assert set(again.changed) == {"noise", "blur", "shift"}


def test_a_change_that_the_images_can_not_take_leaves_no_mean(
    made: Callable[..., StressOutputs],
) -> None:
    stress = made(Small(), "multiclass", {"blur": "1", "saturation": "1"})
    assert list(stress.changed) == ["blur"]
    assert "'saturation' changes colours" in stress.missing["saturation"]
    for found in (
        stress_metric(stress, settings("multiclass")),
        stress_stability(stress, settings("multiclass"), 0.5),
    ):
        assert np.isnan(found.value) and found.reason.startswith("saturation: ")


def test_a_model_of_precomputed_logits_has_a_reason_and_no_value(tmp_path: Path) -> None:
    write_precomputed(tmp_path / "m.json", "m", "s", list(CHANGES))
    source = Outputs(view("multilabel"), np.zeros((COUNT, 3), dtype=np.float32), None)
    stress = StressOutputs.read(tmp_path / "m.json", source)
    assert set(stress.missing) == set(CHANGES) and len(stress.clean.rows) == 0
    table = StressTable(stress, settings("multilabel"), 0.5).rows({}, {})
    assert table["metric"].to_list() == ["stress_stability", "stress_metric"]
    assert table["value"].null_count() == 2
    assert all("precomputed" in reason for reason in table["reason"])


def test_a_pool_without_labels_is_told_by_its_split(made: Callable[..., StressOutputs]) -> None:
    with pytest.raises(UserError, match="no image of the pairs of the split 'val' is labeled"):
        made(Small(), "multiclass", split="val")


@pytest.mark.parametrize("task", ["multiclass", "multilabel"])
def test_the_metric_and_its_error_are_those_of_the_evaluation(task: str) -> None:
    rng = np.random.default_rng(7)
    rows, logits = view(task), rng.normal(size=(COUNT, 3))
    names = ["label"] if task == "multiclass" else CLASSES
    labels = rows.select(pl.col(names).cast(pl.Float64)).to_numpy()
    images = LabeledImages(
        labels[:, 0] if task == "multiclass" else labels, rows["domain"], clusters(rows)
    )
    expected = evaluate(logits, images, task, CLASSES).row(0, named=True)
    found = labeled_metric(Outputs(rows, logits, None), settings(task))
    assert (found.value, found.se) == pytest.approx((expected["value"], expected["se"]))
    assert found.n == expected["n"]


@pytest.mark.parametrize("task", ["multiclass", "multilabel"])
def test_the_error_of_a_mean_over_changes_is_that_of_resampled_patients(task: str) -> None:
    rng = np.random.default_rng(8)
    rows = view(task)
    truth = rows.select(pl.col(["label"] if task == "multiclass" else CLASSES)).to_numpy()
    signal = (
        np.nan_to_num(truth.astype(float))
        if task == "multilabel"
        else np.eye(3)[np.nan_to_num(truth[:, 0].astype(float)).astype(int)]
    )
    shared = rng.normal(size=(COUNT, 3))
    several = [
        Outputs(rows, signal + shared + 0.5 * rng.normal(size=(COUNT, 3)), None) for _ in range(4)
    ]
    found = mean_estimate(labeled_metric(one, settings(task), minimum=3) for one in several)
    patients = rows["group"].unique().sort().to_list()
    members = {one: np.flatnonzero((rows["group"] == one).to_numpy()) for one in patients}
    drawn = []
    for _ in range(300):
        at = np.concatenate([members[one] for one in rng.choice(patients, len(patients))])
        parts = [Outputs(rows[at], one.logits[at], None) for one in several]
        drawn.append(
            np.mean([labeled_metric(one, settings(task), minimum=3).value for one in parts])
        )
    assert found.se == pytest.approx(np.std(drawn), rel=0.2)


def test_the_classes_of_a_target_decide_what_its_metric_is_over(
    made: Callable[..., StressOutputs], tmp_path: Path
) -> None:
    stress = made(Small(), "multilabel")
    own = settings("multilabel")
    merge = {"a or b": ["a", "b"]}
    everywhere = {"classes": {}, "merge": {}, "among": None}
    few = {"classes": {"far": ["c"], "near": ["a or b", "c"]}, "merge": merge, "among": None}
    targets = {
        "one": TargetFiles("", "", everywhere),
        "two": TargetFiles("", "", few),
    }
    where = {
        "one": TargetDomains(pl.Series(["z"] * 4)),
        "two": TargetDomains(pl.Series(["far", "near"] * 2)),
    }
    table = StressTable(stress, own, 0.5, minimum=3).rows(targets, where)
    value = {
        (row["view"], row["domain"]): row["value"]
        for row in table.filter(pl.col("metric") == "stress_metric").iter_rows(named=True)
    }

    def mean(score: Callable[[np.ndarray], np.ndarray], truth: np.ndarray) -> float:
        return float(
            np.mean([roc_auc_score(truth, score(one.logits)) for one in stress.changed.values()])
        )

    rows = stress.clean.rows
    either = ((rows["a"] == 1) | (rows["b"] == 1)).to_numpy()
    last = mean(lambda z: z[:, 2], rows["c"].to_numpy())
    assert value["two", "far"] == pytest.approx(last)
    both = mean(lambda z: z[:, :2].max(axis=1), either)
    assert value["two", "near"] == pytest.approx((last + both) / 2)
    assert (
        value["one", "all"]
        == value["two", "all"]
        == pytest.approx(stress_metric(stress, own, minimum=3).value)
    )


def test_predictions_for_some_classes_are_taken_among_them() -> None:
    rng = np.random.default_rng(9)
    rows, logits = view("multiclass"), rng.normal(size=(COUNT, 3))
    found = labeled_metric(Outputs(rows, logits, None), settings("multiclass"), [0, 2])
    inside = rows.with_row_index("at").filter(pl.col("label").is_in([0, 2]))
    right = [
        (0 if logits[row["at"], 0] > logits[row["at"], 2] else 2) == row["label"]
        for row in inside.iter_rows(named=True)
    ]
    assert found.value == np.mean(right) and found.n == len(right)
