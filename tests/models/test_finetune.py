"""Fine-tuning trains what each stage says, learns, keeps its best epoch, survives a kill."""

from __future__ import annotations

import copy
import math
import os
import pickle
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from snakemake.iocontainers import InputFiles
from torch import nn

from finetune import main
from stamp.core.artifacts import array_metadata, ids_digest, read_json, write_json, write_table
from stamp.core.errors import UserError
from stamp.images.pixel_cache import PixelCache
from stamp.inference.logits import Forward
from stamp.models.classifier import body_parameters, head_parameters
from stamp.models.loaded_model import LoadedModel
from stamp.models.training import block_shuffle, epoch_checkpoint, finetune, splits
from stamp.stats.auroc import auroc

CLASSES = ["bright", "dark"]
HEAD, BODY = 2.5e-2, 1e-2
SIZE = 32
ARCH = {
    "layers": [1, 1, 1, 1],
    "channels": [8, 16, 16, 32],
    "stem_type": "deep",
    "stem_width": 4,
    "drop_rate": 0.1,
}


def pictures(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Noise with a bright blob, a dark one, both or neither; some unlabeled."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, size=(n, 2)).astype(float)
    images = rng.integers(90, 160, size=(n, SIZE, SIZE, 1))
    images[:, 6:16, 6:16] += (90 * labels[:, 0, None, None, None]).astype(int)
    images[:, 16:26, 16:26] -= (90 * labels[:, 1, None, None, None]).astype(int)
    labels[rng.random(labels.shape) < 0.1] = np.nan
    return images.astype(np.uint8), labels


def stored(folder: Path, name: str, images: np.ndarray) -> PixelCache:
    ids = [f"{name}{row}" for row in range(len(images))]
    np.save(folder / f"{name}.npy", images)
    write_json(folder / f"{name}.json", {"ids": ids_digest(ids)})
    return PixelCache(folder / f"{name}.npy", folder / f"{name}.json", ids)


def part(folder: Path, name: str, n: int, seed: int) -> splits.TrainingSplit:
    images, labels = pictures(n, seed)
    cache = stored(folder, name, images)
    return splits.split_of(cache, labels, read_json(folder / f"{name}.json"))


def block(stage1: int = 1, stage2: int = 2, **recipe: object) -> dict[str, Any]:
    rates = {"learning_rate": HEAD, "backbone_learning_rate": BODY}
    return {
        "source": "finetune",
        "arch": "resnet18",
        "arch_args": ARCH,
        "initial": {"none": True},
        "mean": [0.5],
        "std": [0.25],
        "preprocessing": {"size": SIZE, "channels": 1},
        "recipe": {
            "stage1": {"epochs": stage1, "learning_rate": HEAD},
            "stage2": {"epochs": stage2, **rates},
            "batch": 16,
            **recipe,
        },
    }


def fit(folder: Path, load: dict[str, Any] | None = None, **more: Any) -> finetune.Finetuned:
    folder.mkdir(exist_ok=True, parents=True)
    parts = part(folder, "train", 200, 1), part(folder, "val", 80, 2)
    how = replace(settings_in(folder), **{"seed": 5, **more})
    return finetune.finetune(load or block(), CLASSES, *parts, how)


def settings_in(folder: Path) -> finetune.RunSettings:
    return finetune.RunSettings(0, 1, "cpu", folder / "m.pt", "m")


def states(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, torch.Tensor]]:
    """The network as it is before the first epoch and after each, filled while a run goes on."""
    seen: list[dict[str, torch.Tensor]] = []
    built, written = finetune.network, finetune.write_checkpoint

    def network(*arguments: Any, **options: Any) -> LoadedModel:
        loaded = built(*arguments, **options)
        seen.append(copy.deepcopy(loaded.module.state_dict()))
        return loaded

    def write(path: Path, digest: str, state: dict[str, Any]) -> None:
        seen.append(copy.deepcopy(state["model"]))
        written(path, digest, state)

    monkeypatch.setattr(finetune, "network", network)
    monkeypatch.setattr(finetune, "write_checkpoint", write)
    return seen


def changed(before: dict[str, torch.Tensor], after: dict[str, torch.Tensor]) -> set[str]:
    return {name for name in before if not torch.equal(before[name], after[name])}


def test_the_first_stage_changes_the_head_and_the_second_all_weights_and_norms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = states(monkeypatch)
    fit(tmp_path, block(stage1=1, stage2=1))
    start, first, second = seen
    assert changed(start, first) == {"fc.weight", "fc.bias"}
    assert changed(first, second) == set(start)
    assert any("running_mean" in name for name in start)


def test_the_second_stage_gives_the_head_its_larger_rate_and_decays_no_norm_or_bias() -> None:
    recipe = finetune.recipe_of(block())
    module = finetune.network(block(), CLASSES).module
    groups = finetune.parameter_groups(module, recipe, 2)
    of = {id(value): group for group in groups for value in group["params"]}
    assert (
        len(of) == sum(len(group["params"]) for group in groups) == len(list(module.parameters()))
    )
    for value in head_parameters(module):
        assert of[id(value)]["peak"] == HEAD
    for value in body_parameters(module):
        assert of[id(value)]["peak"] == BODY
    norms = [layer for layer in module.modules() if isinstance(layer, nn.BatchNorm2d)]
    spared = {id(value) for norm in norms for value in norm.parameters()}
    for name, value in module.named_parameters():
        decay = 0 if name.endswith("bias") or id(value) in spared else 0.01
        assert of[id(value)]["weight_decay"] == decay
    first = finetune.parameter_groups(module, recipe, 1)
    heads = {id(value) for value in head_parameters(module)}
    assert {id(value) for group in first for value in group["params"]} == heads


def test_names_that_a_network_does_not_want_to_decay_do_not() -> None:
    class Positions(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.position = nn.Parameter(torch.zeros(1, 4, 4))
            self.weight = nn.Parameter(torch.zeros(4, 4))
            self.fc = nn.Linear(4, 2)

        def no_weight_decay(self) -> set[str]:
            return {"position"}

        def get_classifier(self) -> nn.Module:
            return self.fc

    module = Positions()
    groups = finetune.parameter_groups(module, finetune.recipe_of({}), 2)
    decays = {id(v): group["weight_decay"] > 0 for group in groups for v in group["params"]}
    assert {name for name, value in module.named_parameters() if decays[id(value)]} == {
        "weight",
        "fc.weight",
    }


def test_it_learns_what_can_be_learned_and_tells_each_epoch(tmp_path: Path) -> None:
    done = fit(tmp_path, block(stage1=1, stage2=5))
    images, labels = pictures(150, 9)
    logits = Forward(done.loaded, "cpu")(torch.from_numpy(images))
    for c in range(2):
        assert auroc(logits[:, c], labels[:, c]) > 0.8
    assert [record["epoch"] for record in done.curve] == [1, 2, 3, 4, 5, 6]
    assert [record["stage"] for record in done.curve] == [1, 2, 2, 2, 2, 2]
    assert done.curve[0]["backbone_learning_rate"] == 0
    for record in done.curve[1:]:
        assert record["learning_rate"] == pytest.approx(2.5 * record["backbone_learning_rate"])
    assert done.curve[-1]["train_loss"] < done.curve[1]["train_loss"]
    assert done.curve[done.best - 1]["metric"] == max(record["metric"] for record in done.curve)
    assert not done.loaded.module.training


def test_it_learns_classes_that_exclude_each_other(tmp_path: Path) -> None:
    parts = []
    for name, n in (("train", 200), ("val", 80)):
        images, labels = pictures(n, n)
        kept = stored(tmp_path, name, images)
        wanted = labels[:, 0] + 2 * labels[:, 1]  # NaN where either is unknown
        parts.append(splits.split_of(kept, wanted, {}))
    load, names = block(stage1=0, stage2=6), ["none", "bright", "dark", "both"]
    done = finetune.finetune(load, names, *parts, settings_in(tmp_path))
    assert done.curve[done.best - 1]["metric"] > 0.6


def test_the_weights_are_those_of_the_first_best_epoch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = states(monkeypatch)
    metrics = iter([0.4, 0.7, 0.6, 0.7])
    monkeypatch.setattr(finetune, "metric_of", lambda *_: next(metrics))
    done = fit(tmp_path, block(stage1=1, stage2=3))
    assert done.best == 2
    assert not changed(seen[2], dict(done.loaded.module.state_dict()))
    assert changed(seen[2], seen[4])


def test_a_stage_that_stops_improving_is_left_after_as_many_epochs_as_patience(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics = iter([0.9, 0.5, 0.6, 0.6, 0.6])
    monkeypatch.setattr(finetune, "metric_of", lambda *_: next(metrics))
    done = fit(tmp_path, block(stage1=1, stage2=4, patience=2))
    assert (len(done.curve), done.best) == (3, 1)


def test_smoothed_binary_cross_entropy_is_the_mean_over_known_labels_by_hand() -> None:
    logits = np.array([[0.3, -2.0, 5.0], [1.0, 0.0, -0.5]])
    labels = np.array([[1.0, 0.0, np.nan], [np.nan, 1.0, 0.0]])
    expected = []
    for z, y in zip(logits.ravel(), labels.ravel(), strict=True):
        if not np.isnan(y):
            p, smooth = 1 / (1 + math.exp(-z)), 0.95 if y else 0.05
            expected.append(-smooth * math.log(p) - (1 - smooth) * math.log(1 - p))
    precomputed_logits = torch.tensor(logits, requires_grad=True)
    found = finetune.loss_of(precomputed_logits, torch.tensor(labels), 0.1)
    assert float(found.detach()) == pytest.approx(sum(expected) / 4)
    found.backward()
    assert precomputed_logits.grad is not None
    assert torch.equal(precomputed_logits.grad == 0, torch.isnan(torch.tensor(labels)))


def test_smoothed_cross_entropy_is_the_mean_over_images_by_hand() -> None:
    logits, labels = np.array([[0.3, -2.0, 5.0], [1.0, 0.0, -0.5]]), np.array([2.0, 1.0])
    log_p = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    smooth = np.full((2, 3), 0.1 / 3) + 0.9 * np.eye(3)[[2, 1]]
    found = finetune.loss_of(torch.tensor(logits), torch.tensor(labels), 0.1)
    assert float(found) == pytest.approx(-(smooth * log_p).sum(axis=1).mean())


def test_the_rate_rises_on_a_line_and_falls_on_half_a_cosine_as_torch_has_it() -> None:
    optimiser = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    reference = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=40)
    for step in range(40):
        assert finetune.annealed(step, 40, 0.0) == pytest.approx(reference.get_last_lr()[0])
        assert finetune.annealed(step + 10, 50, 0.2) == finetune.annealed(step, 40, 0.0)
        optimiser.step()
        reference.step()
    rising = [finetune.annealed(step, 50, 0.2) for step in range(11)]
    assert np.diff(rising) == pytest.approx(np.full(10, 1 / 11))
    assert rising[-1] == 1


def test_the_optimiser_steps_at_the_annealed_rate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[tuple[float, float]] = []
    step = finetune.FinetuneRun.step

    def watched(run: finetune.FinetuneRun, loss: torch.Tensor, share: float) -> None:
        step(run, loss, share)
        rates = [group["lr"] for group in run.optimiser.param_groups]
        used.append((rates[0], rates[-1]))

    monkeypatch.setattr(finetune.FinetuneRun, "step", watched)
    fit(tmp_path, block(stage1=1, stage2=2))
    assert len(used) == 3 * 12
    first = [finetune.annealed(at, 12, 0.05) for at in range(12)]
    second = [finetune.annealed(at, 24, 0.05) for at in range(24)]
    assert [head for head, _ in used] == pytest.approx([HEAD * share for share in first + second])
    assert [body for _, body in used[12:]] == pytest.approx([BODY * share for share in second])


def test_a_changed_radiograph_keeps_its_sides_its_range_and_follows_the_generator_alone() -> None:
    images = torch.zeros(64, 1, 40, 40)
    images[..., 4:16] = 0.8
    kept = images.clone()
    first = finetune.jitter(images, torch.Generator().manual_seed(3))
    assert torch.equal(first, finetune.jitter(images, torch.Generator().manual_seed(3)))
    assert torch.equal(images, kept)
    assert float(first.min()) >= 0
    assert float(first.max()) <= 1
    assert bool((first[..., :20].mean(dim=(1, 2, 3)) > first[..., 20:].mean(dim=(1, 2, 3))).all())
    assert len({round(float(one), 6) for one in first.mean(dim=(1, 2, 3))}) > 60


def test_gray_pixels_fill_the_three_channels_of_a_colour_network(tmp_path: Path) -> None:
    class Means(nn.Module):
        def forward(self, pixels: torch.Tensor) -> torch.Tensor:
            return pixels.mean(dim=(2, 3))

    loaded = LoadedModel(Means(), (0.4, 0.5, 0.6), (0.2, 0.3, 0.4))
    parts = part(tmp_path, "train", 20, 1), part(tmp_path, "val", 20, 2)
    run = finetune.FinetuneRun(loaded, finetune.recipe_of({}), *parts, "cpu")
    pixels = np.full((2, 8, 8, 1), 204, dtype=np.uint8)
    expected = [(0.8 - 0.4) / 0.2, (0.8 - 0.5) / 0.3, (0.8 - 0.6) / 0.4]
    found = run.forward(torch.from_numpy(pixels))
    assert found.numpy() == pytest.approx(np.array([expected, expected]), rel=1e-5)


def same(first: finetune.Finetuned, second: finetune.Finetuned) -> bool:
    states = [dict(each.loaded.module.state_dict()) for each in (first, second)]
    curves = [each.curve for each in (first, second)]
    return not changed(*states) and curves[0] == curves[1] and first.best == second.best


def test_a_run_killed_after_an_epoch_goes_on_and_ends_with_the_same_bits(tmp_path: Path) -> None:
    """The other process is this file; it is killed while it trains."""
    load = block(stage1=1, stage2=3)
    whole = fit(tmp_path / "whole", load)
    folder = tmp_path / "killed"
    folder.mkdir()
    checkpoint = folder / "m.pt"
    paths = os.pathsep.join(path for path in sys.path if path)
    child = subprocess.Popen(
        [sys.executable, __file__, str(folder)], env={**os.environ, "PYTHONPATH": paths}
    )
    try:
        until = time.monotonic() + 120
        while not checkpoint.exists() and child.poll() is None and time.monotonic() < until:
            time.sleep(0.002)
    finally:
        child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    saved = torch.load(checkpoint, weights_only=True)["state"]["curve"]
    assert 1 <= len(saved) < len(whole.curve)
    resumed = fit(folder, load)
    assert resumed.curve[: len(saved)] == saved
    assert same(whole, resumed)


def test_a_run_interrupted_after_any_epoch_ends_with_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stop(Exception):
        pass

    load = block(stage1=1, stage2=2)
    whole = fit(tmp_path / "whole", load)
    written = finetune.write_checkpoint

    def stopping(*arguments: Any) -> None:
        written(*arguments)
        raise Stop

    monkeypatch.setattr(finetune, "write_checkpoint", stopping)
    for _ in range(3):
        with pytest.raises(Stop):
            fit(tmp_path / "parts", load)
    assert same(whole, fit(tmp_path / "parts", load))


def test_a_checkpoint_of_another_run_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    epochs, write = [], finetune.write_checkpoint

    def counting(*arguments: Any) -> None:
        epochs.append(arguments)
        write(*arguments)

    monkeypatch.setattr(finetune, "write_checkpoint", counting)
    first = fit(tmp_path, block(stage1=1, stage2=0))
    again = fit(tmp_path, block(stage1=1, stage2=0))
    assert again.curve == first.curve and len(epochs) == 1  # nothing was trained
    other = fit(tmp_path, block(stage1=1, stage2=0, label_smoothing=0.2))
    assert other.curve[0]["train_loss"] != first.curve[0]["train_loss"]
    seeded = fit(tmp_path, block(stage1=1, stage2=0), seed=6)
    assert seeded.curve[0]["train_loss"] != first.curve[0]["train_loss"]
    newer = fit(tmp_path, block(stage1=1, stage2=0), made_with={"torch": "another"})
    assert len(epochs) == 4  # trained again, to the same
    assert newer.curve[0]["train_loss"] == first.curve[0]["train_loss"]


@pytest.mark.parametrize("kind", ["text", "code"])
def test_a_checkpoint_that_can_not_be_read_or_carries_code_is_passed_over(
    tmp_path: Path, kind: str
) -> None:
    struck = tmp_path / "struck"

    class Bad:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (struck,))

    (tmp_path / "m.pt").write_bytes(
        b"nothing" if kind == "text" else pickle.dumps(Bad(), protocol=2)
    )
    assert epoch_checkpoint.read_checkpoint(tmp_path / "m.pt", "digest") is None
    assert not struck.exists()


def test_a_diverging_training_is_one_line_that_names_the_stage(tmp_path: Path) -> None:
    load = block(stage1=0, stage2=1)
    load["recipe"]["stage2"] |= {"learning_rate": 1e30, "backbone_learning_rate": 1e30}
    with pytest.raises(UserError, match=r"training diverged in epoch 1; lower .* of stage2"):
        fit(tmp_path, load)
    assert not (tmp_path / "m.pt").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_device_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="torch finds no CUDA device"):
        fit(tmp_path, device="cuda")


def test_splits_that_can_not_be_trained_or_chosen_on_are_one_line(tmp_path: Path) -> None:
    images, labels = pictures(20, 0)
    kept = stored(tmp_path, "some", images)
    sound = splits.split_of(kept, labels, {})
    unlabeled = splits.split_of(kept, labels * np.nan, {})
    alike = splits.split_of(kept, np.zeros_like(labels), {})
    for train, val, words in (
        (unlabeled, sound, "no training image has a label"),
        (sound, unlabeled, "no validation image has a label"),
        (sound, alike, "no class has both a positive and a negative validation image"),
    ):
        with pytest.raises(UserError, match=words):
            finetune.finetune(block(), CLASSES, train, val, settings_in(tmp_path))
    with pytest.raises(UserError, match="no epochs"):
        fit(tmp_path, block(stage1=0, stage2=0))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(rows=st.lists(st.integers(0, 36), max_size=50))
def test_rows_are_taken_from_the_disk_in_any_order_and_number(
    tmp_path: Path, rows: list[int]
) -> None:
    images = np.random.default_rng(0).integers(0, 256, size=(37, 5, 4, 3), dtype=np.uint8)
    cache = stored(tmp_path, "x", images)
    assert np.array_equal(cache.take(np.array(rows, dtype=int)), images[rows])


def test_rows_that_are_not_there_and_a_cut_file_are_refused(tmp_path: Path) -> None:
    cache = stored(tmp_path, "x", np.zeros((7, 4, 4, 1), dtype=np.uint8))
    for wrong in ([7], [-1]):
        with pytest.raises(IndexError):
            cache.take(np.array(wrong))
    with open(tmp_path / "x.npy", "r+b") as file:
        file.truncate(cache.offset + 6 * 16 + 3)
    assert len(cache.take(np.array([5]))) == 1
    with pytest.raises(UserError, match=r"x\.npy: the file ends too early"):
        cache.take(np.array([5, 6]))


def job(folder: Path) -> SimpleNamespace:
    """A job of the rule, on files as the workflow writes them."""
    files = {}
    for view, mark, n in (("train", "", 60), ("val", "val_", 40)):
        images, labels = pictures(n, n)
        stored(folder, view, images)
        table = pl.DataFrame({"image": [f"{view}{row}" for row in range(n)]}).with_columns(
            pl.Series(name, labels[:, c]).fill_nan(None).cast(pl.Int8)
            for c, name in enumerate(CLASSES)
        )
        write_table(folder / f"{view}.parquet", table, {"study": "s", "view": view})
        files |= {f"{mark}pixels": folder / f"{view}.npy", f"{mark}record": folder / f"{view}.json"}
        files[f"{mark}view"] = folder / f"{view}.parquet"
    return SimpleNamespace(
        input=InputFiles(fromdict=files),
        output=SimpleNamespace(weights=folder / "m.safetensors", record=folder / "record.json"),
        wildcards=SimpleNamespace(study="s", model="m"),
        params=SimpleNamespace(
            load=block(stage1=1, stage2=1),
            versions={"torch": "1"},
            task="multilabel",
            classes=CLASSES,
            seed=7,
            code="abc",
            files=[],
            checkpoint=str(folder / "checkpoints" / "m.pt"),
        ),
        resources={"gpu": 0},
        threads=1,
        log=[],
    )


def test_the_script_writes_weights_and_record_and_leaves_no_checkpoint(tmp_path: Path) -> None:
    from stamp.models.loaders.finetune import load

    smk = job(tmp_path)
    main(smk)
    record = read_json(smk.output.record)
    known = [int((~np.isnan(pictures(n, n)[1])).any(axis=1).sum()) for n in (60, 40)]
    assert (record["model"], record["images"], record["val_images"]) == ("m", *known)
    assert len(record["curve"]) == 2
    assert array_metadata(smk.output.weights)["best"] == str(record["best"])
    assert load(smk.params.load, CLASSES, smk.output.weights).parameters > 0
    assert not any((tmp_path / "checkpoints").iterdir())


def test_the_script_names_the_model_that_diverged_and_writes_nothing(tmp_path: Path) -> None:
    smk = job(tmp_path)
    smk.params.load["recipe"]["stage1"]["learning_rate"] = 1e38
    smk.params.load["recipe"]["stage2"]["learning_rate"] = 1e38
    with pytest.raises(UserError, match=r"^model 'm': training diverged"):
        main(smk)
    assert not smk.output.weights.exists()


if __name__ == "__main__":
    quick = finetune.FinetuneRun.step

    def slow(run: finetune.FinetuneRun, loss: torch.Tensor, share: float) -> None:
        time.sleep(0.08)  # so that the kill comes before the end
        quick(run, loss, share)

    finetune.FinetuneRun.step = slow
    fit(Path(sys.argv[1]), block(stage1=1, stage2=3))


def test_a_cache_beyond_memory_is_read_in_blocks_and_trains_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = fit(tmp_path / "plain")
    monkeypatch.setattr(finetune, "fits_in_memory", lambda cache: False)
    monkeypatch.setattr(block_shuffle, "BLOCK", 10 * SIZE * SIZE)
    blocks = fit(tmp_path / "blocks")
    assert "shuffled" not in plain.card and blocks.card["shuffled"] == "blocks"
    assert len(blocks.curve) == len(plain.curve)
    assert blocks.curve[-1]["train_loss"] != plain.curve[-1]["train_loss"]
    assert blocks.curve[-1]["train_loss"] < blocks.curve[0]["train_loss"]
