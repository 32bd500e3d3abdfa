"""Extra inference outputs: the network's own numbers, kept by what they were made from."""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from torch import nn

import extra_outputs as script
from stamp.config.registries.analyses import ANALYSES
from stamp.config.registries.extra_outputs import KINDS, OF_STUDY, OF_TARGETS, in_order
from stamp.config.registries.metrics import METRICS
from stamp.config.study_file import ExtraOutputSettings
from stamp.core.artifacts import ids_digest, read_arrays, read_json, write_json, write_table
from stamp.core.errors import UserError
from stamp.core.file_digest import read_sha256
from stamp.images.augmentations import AUGMENTATIONS, VIEWS
from stamp.images.pixel_cache import PixelCache
from stamp.inference.extra_outputs import jacobian, output_files, runner
from stamp.inference.extra_outputs.gradcam import GradCam, top
from stamp.inference.extra_outputs.manifest import (
    NotAvailable,
    note_of,
    read_output,
    write_manifest,
)
from stamp.inference.extra_outputs.mc_dropout import dropout_layers
from stamp.inference.extra_outputs.output_files import OutputFiles
from stamp.inference.extra_outputs.registry import EXTRA_OUTPUTS, MAKERS
from stamp.inference.extra_outputs.runner import Runner
from stamp.inference.extra_outputs.seeding import noise
from stamp.inference.extra_outputs.selected_images import SelectedImages
from stamp.inference.logits import Execution, Forward
from stamp.models.architectures import build
from stamp.models.loaded_model import LoadedModel
from stamp.models.torchvision_ops import timm

SIZE, COUNT, CLASSES, SEED = 32, 24, 3, 11
IDS = [f"i{number}" for number in range(30)]  # 26 of the pool, 4 of calibration
STUDY = {"task": "multilabel", "temperature": 2.0, "pairs": "digest"}
DEFAULTS = ExtraOutputSettings().settings
SETTINGS = {**DEFAULTS, **STUDY, "images": COUNT, "samples": 4, "perturbations": 3}
RESNET = {"layers": [1, 1, 1, 1], "channels": [4, 4, 8, 8]}
EVERY = [kind for kind in KINDS if kind not in OF_TARGETS]


@pytest.fixture
def images(tmp_path: Path) -> SelectedImages:
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (len(IDS), SIZE, SIZE, 1), dtype=np.uint8)
    np.save(tmp_path / "x.npy", pixels)
    write_json(tmp_path / "x.json", {"ids": ids_digest(IDS)})
    cache = PixelCache(tmp_path / "x.npy", tmp_path / "x.json", IDS)
    view = pl.DataFrame({"image": IDS, "role": ["pool"] * 26 + ["calibration"] * 4})
    ends = [(IDS[k], IDS[k + 1]) for k in range(0, 26, 2)]
    pairs = pl.DataFrame(
        [{"kind": "temporal", "a": a, "b": b} for a, b in ends]
        + [{"kind": "random", "a": IDS[0], "b": IDS[9]}]
    )
    return SelectedImages.of_source(cache, view, pairs, "temporal", COUNT)


def network(arch: str = "resnet18", arguments: Any = None) -> nn.Module:
    torch.manual_seed(0)
    module = build(arch, RESNET if arguments is None else arguments, CLASSES, 1, SIZE)
    for parameter in module.parameters():
        parameter.data += 0.05 * torch.randn_like(parameter)
    return module.eval()


def loaded(module: nn.Module, missing: tuple[int, ...] = ()) -> LoadedModel:
    return LoadedModel(module, (0.4,), (0.25,), missing)


def run(
    folder: Path,
    images: SelectedImages,
    module: nn.Module | LoadedModel,
    kinds: list[str],
    settings: Any = None,
    made_from: Any = None,
) -> Path:
    """The manifest of a model's extra outputs."""
    settings = settings or SETTINGS
    what = module if isinstance(module, LoadedModel) else loaded(module)
    files = files_in(folder, settings, made_from)
    entries = files.make(
        kinds, lambda: Runner(what, CLASSES, images, settings, SEED, Execution("cpu"))
    )
    write_manifest(folder / "m.json", "m", "s", entries)
    return folder / "m.json"


def files_in(
    folder: Path, settings: Any = SETTINGS, made_from: Any = None, view: str = "source"
) -> OutputFiles:
    metadata = {"model": "m", "view": view}
    return OutputFiles(folder, "m", made_from or {"load": 1}, settings, metadata, EXTRA_OUTPUTS)


def outputs(module: nn.Module, pixels: torch.Tensor) -> np.ndarray:
    """Logits of uint8 pixels without any of the code under test."""
    x = (pixels.permute(0, 3, 1, 2).float() / 255 - 0.4) / 0.25
    with torch.no_grad():
        return module(x).numpy()


def pixels_of(images: SelectedImages) -> torch.Tensor:
    return torch.from_numpy(images.cache.rows(0, COUNT))


def test_every_kind_has_a_recipe_and_nobody_asks_for_another() -> None:
    assert list(MAKERS) == list(KINDS)
    assert {kind for analysis in ANALYSES.values() for kind in analysis.extra_outputs} <= set(KINDS)
    assert {kind for metric in METRICS for kind in metric.extra_outputs} <= set(KINDS)
    used = {setting for settings in KINDS.values() for setting in settings}
    assert used == {*DEFAULTS, *OF_STUDY} and not set(DEFAULTS) & set(OF_STUDY)
    assert in_order(["tta", "flip", "tta"]) == ["flip", "tta"]
    with pytest.raises(ValueError, match="unknown kinds of extra outputs"):
        in_order(["flop"])


def test_the_first_pool_images_and_the_pairs_within_them_are_taken(images: SelectedImages) -> None:
    assert images.selected_ids == IDS[:COUNT]
    a, b = images.pairs
    assert [
        (images.selected_ids[i], images.selected_ids[j]) for i, j in zip(a, b, strict=True)
    ] == [(IDS[k], IDS[k + 1]) for k in range(0, COUNT, 2)]
    a, b = images.semantic  # all of them, as rows of the view
    assert [(IDS[i], IDS[j]) for i, j in zip(a, b, strict=True)] == [
        (IDS[k], IDS[k + 1]) for k in range(0, 26, 2)
    ]


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_augmented_images_are_forwarded(tmp_path: Path, images: SelectedImages, name: str) -> None:
    module = network()
    found = read_output(run(tmp_path, images, module, [name]), name, IDS)
    changed = AUGMENTATIONS[name](pixels_of(images), IDS[:COUNT], SEED)
    assert np.allclose(found["logits"], outputs(module, changed), atol=1e-4)
    assert found["rows"].tolist() == list(range(COUNT))
    assert found["rows"].dtype == np.int32


def test_the_fixed_views_are_planes_of_one_array(tmp_path: Path, images: SelectedImages) -> None:
    module = network()
    found = read_output(run(tmp_path, images, module, ["tta"]), "tta", IDS)["logits"]
    assert found.shape == (9, COUNT, CLASSES)
    for plane, view in enumerate(VIEWS.values()):
        assert np.allclose(found[plane], outputs(module, view(pixels_of(images))), atol=1e-4)


def test_embeddings_lead_to_the_logits_and_cover_every_row(
    tmp_path: Path, images: SelectedImages
) -> None:
    module: Any = network()
    found = read_output(run(tmp_path, images, module, ["embeddings"]), "embeddings", IDS)
    assert set(found) == {"embeddings", "early", "mid", "late", "penultimate"}
    with torch.no_grad():
        logits = module.fc(torch.from_numpy(found["embeddings"])).numpy()
    everything = torch.from_numpy(images.cache.rows(0, len(IDS)))
    assert np.allclose(logits, outputs(module, everything), atol=1e-4)
    # the last block's output is pooled into the classifier's input
    assert np.allclose(found["penultimate"], found["embeddings"], atol=1e-5)


def test_rotated_images_have_embeddings_of_their_own(
    tmp_path: Path, images: SelectedImages
) -> None:
    module: Any = network()
    found = read_output(
        run(tmp_path, images, module, ["rotation_prediction"]), "rotation_prediction", IDS
    )
    for plane, quarters in enumerate((1, 2, 3)):
        turned = torch.from_numpy(np.rot90(pixels_of(images).numpy(), quarters, axes=(1, 2)).copy())
        with torch.no_grad():
            logits = module.fc(torch.from_numpy(found["embeddings"][plane])).numpy()
        assert np.allclose(logits, outputs(module, turned), atol=1e-4)


def target_views(folder: Path) -> tuple[list[PixelCache], list[pl.DataFrame], np.ndarray]:
    """Two targets, of 20 images in two domains and of 5 in one, and all their pixels."""
    rng, caches, views, every = np.random.default_rng(4), [], [], []
    for name, count in (("far", 20), ("near", 5)):
        ids = [f"{name}{number}" for number in range(count)]
        pixels = rng.integers(0, 256, (count, SIZE, SIZE, 1), dtype=np.uint8)
        np.save(folder / f"{name}.npy", pixels)
        write_json(folder / f"{name}.json", {"ids": ids_digest(ids)})
        caches.append(PixelCache(folder / f"{name}.npy", folder / f"{name}.json", ids))
        domains = ["d" if number < 16 and count == 20 else "e" for number in range(count)]
        views.append(pl.DataFrame({"image": ids, "domain": domains}))
        every.append(pixels)
    return caches, views, np.concatenate(every)


def test_of_targets_some_images_of_every_domain_are_taken(tmp_path: Path) -> None:
    caches, views, _ = target_views(tmp_path)
    few = SelectedImages.of_targets(caches, views, 6, SEED)
    # 6 of the 16 of a domain, its 4 of the other, all 5 of the second target
    assert len(few.rows) == 6 + 4 + 5 and sorted(set(few.rows)) == few.rows.tolist()
    assert sum(row < 16 for row in few.rows) == 6 and few.rows[-9:].tolist() == list(range(16, 25))
    assert few.selected_ids[-5:] == [f"near{number}" for number in range(5)]
    again = SelectedImages.of_targets(caches[:1], [views[0].reverse()], 6, SEED)
    assert set(again.selected_ids) == set(few.selected_ids[:10])  # whatever the order of the view
    other = SelectedImages.of_targets(caches, views, 6, SEED + 1)
    assert set(other.selected_ids) != set(few.selected_ids) and other.digest != few.digest
    assert len(SelectedImages.of_targets(caches, views, 100, SEED).rows) == 25


def test_embeddings_of_targets_lead_to_their_logits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    caches, views, pixels = target_views(tmp_path)
    monkeypatch.setattr(runner.Runner.batches, "__defaults__", (4,))
    module: Any = network()
    images = SelectedImages.of_targets(caches, views, 6, SEED)
    entries = files_in(tmp_path, view="targets").make(
        ["target_embeddings"],
        lambda: Runner(loaded(module), CLASSES, images, SETTINGS, SEED, Execution("cpu")),
    )
    write_manifest(tmp_path / "m.json", "m", "s", entries)
    found = read_output(tmp_path / "m.json", "target_embeddings", images.ids)
    assert found["rows"].tolist() == images.rows.tolist()
    assert entries["target_embeddings"]["forwarded"] == len(images.rows)
    with torch.no_grad():
        logits = module.fc(torch.from_numpy(found["embeddings"])).numpy()
    assert np.allclose(logits, outputs(module, torch.from_numpy(pixels[images.rows])), atol=1e-4)
    with pytest.raises(UserError, match="ids"):
        read_output(tmp_path / "m.json", "target_embeddings", images.ids[::-1])


def test_a_linear_model_has_embeddings_but_no_taps_and_says_why(
    tmp_path: Path, images: SelectedImages
) -> None:
    manifest = run(tmp_path, images, network("linear", {}), EVERY)
    found = read_output(manifest, "embeddings", IDS)
    assert set(found) == {"embeddings"} and found["embeddings"].shape == (len(IDS), SIZE * SIZE)
    entry = files_in(tmp_path).kept("embeddings", read_key(manifest, "embeddings"))
    assert entry is not None and entry["taps"] == "no blocks are known in Linear"
    with pytest.raises(NotAvailable, match="no blocks are known in Linear"):
        read_output(manifest, "gradcam")
    assert note_of(manifest, "mc_dropout").startswith("dropout of 0.1 before the last layer")


def read_key(manifest: Path, kind: str) -> str:
    return read_json(manifest)["extra_outputs"][kind]["key"]


class BlackBox(nn.Module):
    """Pixels in, logits out, and no word of what is inside."""

    def __init__(self) -> None:
        super().__init__()
        self.call = network()

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return self.call(pixels)


def test_a_black_box_gives_outputs_and_a_reason_for_all_else(
    tmp_path: Path, images: SelectedImages
) -> None:
    manifest = run(tmp_path, images, BlackBox(), EVERY)
    refused = {}
    for kind in EVERY:
        try:
            read_output(manifest, kind, IDS)
        except NotAvailable as reason:
            refused[kind] = str(reason)
    assert set(refused) == {
        "embeddings",
        "rotation_prediction",
        "gradcam",
        "mc_dropout",
        "jacobian",
    }
    assert refused["jacobian"].startswith("gradients can't be taken: no path leads")
    assert refused["embeddings"] == "its last linear layer is not known"
    assert refused["gradcam"] == "no blocks are known in BlackBox"
    assert "embeddings" not in read_output(manifest, "composite")


class Ends(nn.Module):
    """A network with a norm, a dropout and stochastic depth, all of which differ in train mode."""

    def __init__(self, p: float):
        super().__init__()
        from timm.layers import DropPath

        self.norm = nn.BatchNorm2d(1)
        self.path = DropPath(0.5)
        self.drop = nn.Dropout(p)
        self.fc = nn.Linear(SIZE * SIZE, CLASSES)

    def get_classifier(self) -> nn.Module:
        return self.fc

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.fc(self.drop(self.path(self.norm(pixels)).flatten(1)))


def test_only_dropout_is_on_and_its_passes_scatter_as_they_should(
    tmp_path: Path, images: SelectedImages
) -> None:
    assert timm is not None
    torch.manual_seed(3)
    module = Ends(0.2).eval()
    settings = {**SETTINGS, "samples": 300}
    found = read_output(run(tmp_path, images, module, ["mc_dropout"], settings), "mc_dropout", IDS)
    assert found["logits"].shape == (300, COUNT, CLASSES)
    x = ((pixels_of(images).permute(0, 3, 1, 2).float() / 255 - 0.4) / 0.25).flatten(1)
    x = x / np.sqrt(1 + 1e-5)  # the norm in eval mode: mean 0, variance 1
    with torch.no_grad():
        mean = module.fc(x).numpy()
        # a product w x b / (1 - p) with b on or off has variance (w x)^2 p / (1 - p)
        variance = ((x**2) @ (module.fc.weight**2).T).numpy() * 0.2 / 0.8
    assert np.allclose(found["logits"].mean(axis=0), mean, atol=5 * np.sqrt(variance.max() / 300))
    ratio = found["logits"].var(axis=0, ddof=1) / variance
    assert ratio.mean() == pytest.approx(1, abs=0.05)
    assert not any(part.training for part in module.modules())
    assert float(module.norm.running_mean) == 0  # the norm learned nothing


def test_dropout_passes_repeat_and_leave_the_random_state_alone(
    tmp_path: Path, images: SelectedImages
) -> None:
    torch.manual_seed(3)
    module = Ends(0.2).eval()
    state = torch.get_rng_state()
    first = read_output(run(tmp_path / "1", images, module, ["mc_dropout"]), "mc_dropout")["logits"]
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(99)
    again = read_output(run(tmp_path / "2", images, module, ["mc_dropout"]), "mc_dropout")["logits"]
    assert np.array_equal(first, again)
    assert not np.allclose(first[0], first[1])


def test_dropout_that_drops_nothing_does_not_count(tmp_path: Path, images: SelectedImages) -> None:
    assert dropout_layers(Ends(0.0)) == []
    settings = {**SETTINGS, "head_dropout": None}
    manifest = run(tmp_path, images, Ends(0.0).eval(), ["mc_dropout"], settings)
    with pytest.raises(NotAvailable, match="it has no dropout layer with p > 0"):
        read_output(manifest, "mc_dropout")


def test_dropout_before_the_last_layer_is_named_as_what_it_is(
    tmp_path: Path, images: SelectedImages
) -> None:
    module = Ends(0.0).eval()
    manifest = run(tmp_path, images, module, ["mc_dropout"])
    assert note_of(manifest, "mc_dropout").startswith("dropout of 0.1 before the last layer")
    found = read_output(manifest, "mc_dropout")["logits"]
    assert found.std(axis=0).min() > 0
    assert not any(part._forward_pre_hooks for part in module.modules())


class Scaled(Ends):
    """A network with a step after its last linear layer."""

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return 2 * super().forward(pixels)


def test_dropout_before_the_last_layer_needs_one_pass_through_what_comes_before_it(
    tmp_path: Path, images: SelectedImages
) -> None:
    settings = {**SETTINGS, "samples": 5}
    found, forwarded = {}, {}
    for name, kind in (("ends", Ends), ("goes on", Scaled)):
        torch.manual_seed(3)
        manifest = run(tmp_path / name, images, kind(0.0).eval(), ["mc_dropout"], settings)
        found[name] = read_output(manifest, "mc_dropout", IDS)["logits"]
        forwarded[name] = read_json(manifest)["extra_outputs"]["mc_dropout"]["forwarded"]
    # the one takes the short way, the other five whole passes, with the same masks
    assert forwarded == {"ends": COUNT, "goes on": 5 * COUNT}
    np.testing.assert_allclose(2 * found["ends"], found["goes on"], rtol=1e-4, atol=1e-5)


class Symmetric(nn.Module):
    """A network that can't tell left from right."""

    def __init__(self) -> None:
        super().__init__()
        first = nn.Conv2d(1, 4, 3, padding=1)
        first.weight.data = (first.weight.data + first.weight.data.flip(3)) / 2
        self.layer1 = nn.Sequential(first, nn.ReLU())
        self.fc = nn.Linear(4, CLASSES)

    def get_classifier(self) -> nn.Module:
        return self.fc

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.fc(self.layer1(pixels).mean(dim=(2, 3)))


def test_maps_of_a_symmetric_network_overlap_fully_and_those_of_others_do_not(
    tmp_path: Path, images: SelectedImages
) -> None:
    torch.manual_seed(1)
    same = read_output(run(tmp_path / "1", images, Symmetric().eval(), ["gradcam"]), "gradcam", IDS)
    known = same["dice"][np.isfinite(same["dice"])]
    assert len(known) > COUNT / 2 and known.min() > 0.98
    other = read_output(run(tmp_path / "2", images, network(), ["gradcam"]), "gradcam", IDS)
    assert np.nanmean(other["dice"]) < 0.9
    assert other["pair_dice"].shape == (COUNT // 2,)


def test_a_pair_of_one_image_overlaps_fully(tmp_path: Path, images: SelectedImages) -> None:
    place = np.arange(5)
    twice = replace(images, pairs=(place, place))
    torch.manual_seed(1)
    found = read_output(run(tmp_path, twice, Symmetric().eval(), ["gradcam"]), "gradcam")
    assert np.all((found["pair_dice"] == 1) | np.isnan(found["pair_dice"]))
    assert np.isfinite(found["pair_dice"]).any()


def test_perturbations_have_the_norm_asked_for_and_move_a_linear_model_as_they_must(
    tmp_path: Path, images: SelectedImages
) -> None:
    module: Any = network("linear", {})
    found = read_output(run(tmp_path, images, module, ["perturbations"]), "perturbations", IDS)
    x = (pixels_of(images).permute(0, 3, 1, 2).float() / 255 - 0.4) / 0.25
    length = np.linalg.norm(x.flatten(1).numpy(), axis=1)
    assert np.allclose(found["norms"], 0.01 * length[None], rtol=1e-5)
    assert np.allclose(found["base"], outputs(module, pixels_of(images)), atol=1e-4)
    for plane in range(3):
        d = noise(IDS[:COUNT], x.shape[1:], SEED, "perturbed", plane).flatten(1).numpy()
        d *= (0.01 * length / np.linalg.norm(d, axis=1))[:, None]
        moved = d @ module.head.weight.detach().numpy().T
        assert np.allclose(found["logits"][plane] - found["base"], moved, atol=1e-4)


def test_noise_is_that_of_an_image_alone() -> None:
    whole = noise(["a", "b", "c"], (1, 4, 4), 0, "perturbed", 2)
    assert torch.equal(noise(["c"], (1, 4, 4), 0, "perturbed", 2)[0], whole[2])
    assert not torch.equal(noise(["c"], (1, 4, 4), 0, "perturbed", 1)[0], whole[2])
    many = noise([str(k) for k in range(400)], (1, 8, 8), 0, "perturbed", 0)
    assert float(many.mean()) == pytest.approx(0, abs=0.03)
    assert float(many.std()) == pytest.approx(1, abs=0.03)


@pytest.mark.parametrize("task", ["multilabel", "multiclass"])
@pytest.mark.parametrize("missing", [(), (1,)])
def test_a_linear_model_is_as_sensitive_as_its_weights_and_outputs_say(
    tmp_path: Path, images: SelectedImages, task: str, missing: tuple[int, ...]
) -> None:
    module: Any = network("linear", {})
    # probabilities that are not all 0 or 1, singular values that are apart
    weight = torch.tensor([[0.02], [0.04], [0.08]]) * module.head.weight.detach()
    module.head.weight.data = weight
    settings = {**SETTINGS, "task": task, "power_iterations": 60, "jacobian_images": 7}
    manifest = run(tmp_path, images, loaded(module, missing), ["jacobian"], settings)
    found = read_output(manifest, "jacobian", IDS)
    assert found["rows"].tolist() == list(range(7))
    there = [c for c in range(CLASSES) if c not in missing]
    z = outputs(module, pixels_of(images))[:7, there].astype(float) / 2
    for norm, one in zip(found["norms"], z, strict=True):
        if task == "multiclass":
            p = np.exp(one) / np.exp(one).sum()
            slope = np.diag(p) - np.outer(p, p)
        else:
            p = 1 / (1 + np.exp(-one))
            slope = np.diag(p * (1 - p))
        values = np.linalg.svd(slope @ weight.numpy()[there] / 2, compute_uv=False)
        assert norm == pytest.approx(values[0], rel=1e-3)


def test_sensitivity_does_not_depend_on_the_batch_and_repeats(
    tmp_path: Path, images: SelectedImages, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for size in (1, 5, 24, 24):
        monkeypatch.setattr(jacobian, "SMALLEST_BATCH", size)
        manifest = run(tmp_path / f"{size}{len(found)}", images, network(), ["jacobian"])
        found.append(read_output(manifest, "jacobian", IDS)["norms"])
    assert found[0].std() > 0
    assert np.allclose(found[0], found[1], rtol=1e-4) and np.allclose(found[1], found[2], rtol=1e-4)
    assert np.array_equal(found[2], found[3])


def test_no_small_step_changes_more_than_the_jacobian_allows(
    tmp_path: Path, images: SelectedImages
) -> None:
    settings = {**SETTINGS, "perturbation_norm": 1e-3, "jacobian_images": 6}
    manifest = run(tmp_path, images, network(), ["perturbations", "jacobian"], settings)
    steps, norms = (read_output(manifest, kind) for kind in ("perturbations", "jacobian"))
    before, after = (
        1 / (1 + np.exp(-steps[name].astype(float) / 2)) for name in ("base", "logits")
    )
    slopes = np.linalg.norm(after - before, axis=2) / steps["norms"]
    assert (slopes.max(axis=0)[:6] < norms["norms"]).all()


class Script(nn.Module):
    """A network that keeps its gradients to itself, as a TorchScript file may."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(SIZE * SIZE, CLASSES)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return self.fc(pixels.flatten(1))


class Once(torch.autograd.Function):
    """A layer that can be differentiated once."""

    @staticmethod
    def forward(ctx: Any, values: torch.Tensor) -> torch.Tensor:
        return values * 2

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, slope: torch.Tensor) -> torch.Tensor:
        return slope * 2


class Own(nn.Module):
    """Logits that come out of such a layer."""

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return Once.apply(pixels.flatten(1)[:, :CLASSES])


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_a_network_that_can_not_be_differentiated_has_a_reason_and_no_file(
    tmp_path: Path, images: SelectedImages
) -> None:
    cases = {"script": (torch.jit.script(Script()), "no path leads"), "own": (Own(), "only once")}
    for name, (module, reason) in cases.items():
        manifest = run(tmp_path / name, images, module.eval(), ["jacobian", "pixel_distances"])
        with pytest.raises(NotAvailable, match=f"gradients can't be taken: .*{reason}"):
            read_output(manifest, "jacobian")
        assert [file.name for file in (tmp_path / name / "jacobian").iterdir()] == ["m.json"]
        assert len(read_output(manifest, "pixel_distances", IDS)["squared"]) == 13


def test_the_distances_of_semantic_pairs_are_those_of_the_normalised_images(
    tmp_path: Path, images: SelectedImages
) -> None:
    mean, std = (0.4, 0.5, 0.6), (0.2, 0.25, 0.3)
    colour = LoadedModel(nn.Flatten(), mean, std)  # gray images go to all of its channels
    found = read_output(run(tmp_path, images, colour, ["pixel_distances"]), "pixel_distances", IDS)
    assert found["a"].tolist() == list(range(0, 26, 2))
    pixels = images.cache.rows(0, 30)[..., 0].astype(float) / 255
    for a, b, squared in zip(found["a"], found["b"], found["squared"], strict=True):
        total = 0.0
        for m, s in zip(mean, std, strict=True):
            total += float(((((pixels[a] - m) / s) - ((pixels[b] - m) / s)) ** 2).sum())
        assert squared == pytest.approx(total, rel=1e-5)


def test_classes_that_a_model_has_not_stay_missing(tmp_path: Path, images: SelectedImages) -> None:
    manifest = run(
        tmp_path, images, loaded(network(), missing=(1,)), ["flip", "tta", "perturbations"]
    )
    for kind in ("flip", "tta", "perturbations"):
        found = read_output(manifest, kind)["logits"]
        assert np.isnan(found[..., 1]).all() and np.isfinite(found[..., [0, 2]]).all()


class Fragile(nn.Module):
    """Fails on rotated images: the corners are black there."""

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        corner = pixels[:, 0, 0, 0] + 0.4 / 0.25
        return torch.log(corner.clamp(min=0))[:, None].expand(-1, CLASSES)


def test_outputs_that_are_no_numbers_are_a_reason_and_leave_no_file(
    tmp_path: Path, images: SelectedImages
) -> None:
    manifest = run(tmp_path, images, Fragile(), ["rotation"])
    with pytest.raises(NotAvailable, match="outputs are not finite"):
        read_output(manifest, "rotation")
    assert [file.name for file in (tmp_path / "rotation").iterdir()] == ["m.json"]


def test_a_full_disk_is_no_property_of_the_model(
    tmp_path: Path, images: SelectedImages, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(output_files.ArrayWriter, "put", full)
    with pytest.raises(UserError, match="no space left"):
        run(tmp_path, images, network(), ["flip"])
    assert not list((tmp_path / "flip").iterdir())


# --- what is kept --------------------------------------------------------------------------------


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kinds that are made from here on."""
    names: list[str] = []
    for kind, make in MAKERS.items():

        def counted(runner: Runner, kind: str = kind, make: Callable = make) -> Any:
            names.append(kind)
            return make(runner)

        monkeypatch.setitem(MAKERS, kind, counted)
    return names


def test_a_new_kind_makes_just_that_kind(
    tmp_path: Path, images: SelectedImages, made: list[str]
) -> None:
    run(tmp_path, images, network(), ["flip", "mc_dropout"])
    assert made == ["flip", "mc_dropout"]
    manifest = run(tmp_path, images, network(), ["flip", "tta", "mc_dropout"])
    assert made == ["flip", "mc_dropout", "tta"]  # the reason for no dropout is kept as well
    before = manifest.read_text()
    run(tmp_path, images, network(), ["flip", "tta", "mc_dropout"])
    assert len(made) == 3 and manifest.read_text() == before


def test_a_model_is_loaded_only_if_something_has_to_be_made(
    tmp_path: Path, images: SelectedImages
) -> None:
    run(tmp_path, images, network(), ["flip"])

    def load() -> Runner:
        raise AssertionError("loaded")

    entries = files_in(tmp_path).make(["flip"], load)
    assert entries["flip"]["images"] == COUNT
    with pytest.raises(AssertionError, match="loaded"):
        files_in(tmp_path, made_from={"load": 2}).make(["flip"], load)


def test_a_setting_concerns_the_kinds_that_use_it(
    tmp_path: Path, images: SelectedImages, made: list[str]
) -> None:
    kinds = ["embeddings", "flip", "perturbations"]
    run(tmp_path, images, network(), kinds)
    made.clear()
    run(tmp_path, images, network(), kinds, {**SETTINGS, "perturbation_norm": 0.02})
    assert made == ["perturbations"]
    made.clear()
    run(tmp_path, images, network(), kinds, {**SETTINGS, "images": 9, "perturbation_norm": 0.02})
    assert made == ["flip", "perturbations"]


def test_temperature_and_pairs_concern_the_kinds_that_use_them(
    tmp_path: Path, images: SelectedImages, made: list[str]
) -> None:
    kinds = ["flip", "perturbations", "jacobian", "pixel_distances"]
    run(tmp_path, images, network("linear", {}), kinds)
    for change, again in {
        ("temperature", 1.0): ["jacobian"],
        ("task", "multiclass"): ["jacobian"],
        ("power_iterations", 2): ["jacobian"],
        ("jacobian_images", 3): ["jacobian"],
        ("pairs", "others"): ["pixel_distances"],
    }.items():
        made.clear()
        run(tmp_path, images, network("linear", {}), kinds, {**SETTINGS, change[0]: change[1]})
        assert made == again
        run(tmp_path, images, network("linear", {}), kinds)


def test_a_damaged_file_is_made_again(
    tmp_path: Path, images: SelectedImages, made: list[str]
) -> None:
    manifest = run(tmp_path, images, network(), ["flip"])
    file = tmp_path / "flip" / "m.safetensors"
    right = file.read_bytes()
    file.write_bytes(right[:-1] + b"x")
    run(tmp_path, images, network(), ["flip"])
    assert made == ["flip", "flip"] and file.read_bytes() == right
    file.unlink()
    with pytest.raises(UserError, match=r"m\.safetensors: is gone"):
        read_output(manifest, "flip")


def test_outputs_on_other_images_or_of_another_making_are_refused(
    tmp_path: Path, images: SelectedImages
) -> None:
    manifest = run(tmp_path, images, network(), ["flip", "embeddings"])
    with pytest.raises(UserError, match="made with ids"):
        read_output(manifest, "flip", [f"x{one}" for one in IDS])
    with pytest.raises(UserError, match="made with ids"):
        read_output(manifest, "embeddings", IDS[:-1])
    with pytest.raises(NotAvailable, match="'tta' was not asked for"):
        read_output(manifest, "tta")
    old = manifest.read_text()
    run(tmp_path, images, network(), ["flip"], made_from={"load": 2})
    manifest.write_text(old)
    with pytest.raises(UserError, match="made with key"):
        read_output(manifest, "flip")


def test_the_manifest_says_what_was_done_and_what_it_cost(
    tmp_path: Path, images: SelectedImages
) -> None:
    manifest = run(
        tmp_path,
        images,
        network(),
        ["embeddings", "tta", "gradcam", "perturbations", "jacobian", "pixel_distances"],
    )
    entries = read_json(manifest)["extra_outputs"]
    done = {kind: (entry["images"], entry["forwarded"]) for kind, entry in entries.items()}
    assert done == {
        "embeddings": (30, 30),
        "tta": (24, 24 * 9),
        "gradcam": (24, 24 * 2 + 12),
        "perturbations": (24, 24 * 4),
        "jacobian": (24, 24),
        "pixel_distances": (26, 0),
    }
    for kind, entry in entries.items():
        assert entry["seconds"] >= 0  # a fast pass may round to none
        content = (tmp_path / kind / "m.safetensors").read_bytes()
        assert entry["digest"] == hashlib.sha256(content).hexdigest()
        assert entry["digest"] == read_sha256(tmp_path / entry["file"])
        assert read_arrays(tmp_path / entry["file"], model="m", view="source", kind=kind)


class Files(dict):
    """Input files by name, as Snakemake gives them."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


def test_a_model_with_precomputed_logits_has_a_reason_for_every_kind(tmp_path: Path) -> None:
    view = pl.DataFrame({"image": IDS, "role": ["pool"] * len(IDS)})
    write_table(tmp_path / "view.parquet", view, {"study": "s", "view": "source"})
    job = SimpleNamespace(
        params=SimpleNamespace(kinds=["embeddings", "flip"], pixels={}),
        wildcards=SimpleNamespace(study="s", model="m"),
        input=Files(view=tmp_path / "view.parquet", pixels=[]),
        output=[tmp_path / "m.json"],
    )
    script.main(job)
    for kind in ("embeddings", "flip"):
        with pytest.raises(NotAvailable, match="precomputed"):
            read_output(tmp_path / "m.json", kind)


@pytest.mark.parametrize("kind", ["embeddings", "tta", "gradcam", "jacobian"])
def test_a_kind_that_does_not_fit_into_memory_is_made_with_smaller_batches(
    tmp_path: Path, images: SelectedImages, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The module has the memory for two images; what it gives is what it gives without a limit."""
    module, sizes = network(), []
    free = read_output(run(tmp_path / "free", images, module, [kind]), kind)

    def limit(layer: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        sizes.append(len(inputs[0]))
        if len(inputs[0]) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")

    module.register_forward_pre_hook(limit)
    small = read_output(run(tmp_path / "small", images, module, [kind]), kind)
    assert max(sizes) > 2 and free.keys() == small.keys()
    for name, values in free.items():
        np.testing.assert_allclose(small[name], values, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_maps_and_their_largest_pixels_do_not_depend_on_the_batch(
    images: SelectedImages, size: int
) -> None:
    """Maps of 2 x 2 places, enlarged to 32 x 32: many pixels share the value of the last one."""
    forward = Forward(loaded(network()), "cpu")
    pixels = forward.normalised(pixels_of(images))
    cam = GradCam(forward.module, pixels[:2])
    whole, classes = cam(pixels)
    parts, chosen = zip(*(cam(part) for part in pixels.split(size)), strict=True)
    assert torch.equal(torch.cat(chosen), classes)
    assert torch.allclose(torch.cat(parts), whole, rtol=0, atol=5e-5)
    assert torch.equal(torch.cat([top(part) for part in parts]), top(whole))
