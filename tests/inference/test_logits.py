"""Forward passes give the network's own numbers, and refuse outputs that can't be scored."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from stamp.config.preprocessing import Preprocessing
from stamp.config.registries.model_sources import SOURCES
from stamp.core.artifacts import array_metadata, read_arrays
from stamp.core.errors import UserError
from stamp.images.pixel_cache import PixelCache
from stamp.inference import logits
from stamp.models.architectures import build
from stamp.models.loaded_model import LoadedModel
from stamp.models.loaders.registry import load_model
from stamp.models.weights import read_weights, write_weights

CLASSES = ["a", "b", "c"]
PIXELS = Preprocessing(16, 1)


class Fixed(nn.Module):
    """Gives the same outputs for every image."""

    def __init__(self, row: list[float]):
        super().__init__()
        self.row = nn.Parameter(torch.tensor(row))

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.row.expand(len(pixels), -1)


@pytest.fixture
def cache(tmp_path: Path) -> PixelCache:
    from stamp.core.artifacts import ids_digest, write_json

    images = np.random.default_rng(0).integers(0, 256, size=(37, 16, 16, 1), dtype=np.uint8)
    np.save(tmp_path / "x.npy", images)
    ids = [f"i{k}" for k in range(37)]
    write_json(tmp_path / "x.json", {"ids": ids_digest(ids)})
    return PixelCache(tmp_path / "x.npy", tmp_path / "x.json", ids)


def extract(target: Path, cache: PixelCache, loaded: LoadedModel, batch: int = 128) -> None:
    execution = logits.Execution("cpu", batch=batch)
    metadata = {"model": "m", "view": "source"}
    logits.extract_logits(target, cache, loaded, CLASSES, metadata, execution)


def test_logits_are_those_of_the_network_on_normalised_pixels(
    tmp_path: Path, cache: PixelCache
) -> None:
    torch.manual_seed(0)
    network = build("resnet18", {"layers": [1, 1, 1, 1], "channels": [4, 4, 8, 8]}, 3, 1, 16).eval()
    target = tmp_path / "out.safetensors"
    loaded = LoadedModel(network, (0.4,), (0.2,))
    extract(target, cache, loaded, batch=8)
    plain = torch.from_numpy(cache.rows(0, 37)).permute(0, 3, 1, 2).double() / 255
    with torch.inference_mode():
        expected = network.double()((plain - 0.4) / 0.2).numpy()
    found = read_arrays(target, model="m", view="source")["logits"]
    assert np.allclose(found, expected, atol=1e-5)
    network.float()
    assert int(array_metadata(target)["parameters"]) == loaded.parameters
    assert array_metadata(target)["images"] == "37"


def test_the_batch_size_changes_nothing_that_matters(tmp_path: Path, cache: PixelCache) -> None:
    torch.manual_seed(0)
    network = build("linear", {}, 3, 1, 16)
    found = []
    for size in (5, 37, 64):
        target = tmp_path / f"{size}.safetensors"
        extract(target, cache, LoadedModel(network, (0.5,), (0.5,)), size)
        found.append(read_arrays(target)["logits"])
    assert np.allclose(found[0], found[1], atol=1e-5)
    assert np.allclose(found[0], found[2], atol=1e-5)


@pytest.mark.parametrize(
    ("row", "line"),
    [
        ([0.0, 1.0], r"model 'm': outputs have shape \[2\], but the study has 3 classes"),
        ([0.0, float("nan"), 1.0], "model 'm': outputs are not finite"),
        ([0.0, float("inf"), 1.0], "model 'm': outputs are not finite"),
    ],
)
def test_unusable_outputs_are_refused_and_nothing_is_written(
    tmp_path: Path, cache: PixelCache, row: list[float], line: str
) -> None:
    target = tmp_path / "out.safetensors"
    with pytest.raises(UserError, match=line):
        extract(target, cache, LoadedModel(Fixed(row), (0.5,), (0.5,)))
    assert not list(tmp_path.glob("*out*"))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_cuda_where_there_is_none_is_one_line() -> None:
    with pytest.raises(UserError, match="torch finds no CUDA device"):
        logits.Forward(LoadedModel(Fixed([0.0]), (0.5,), (0.5,)), "cuda")


def block(**more: object) -> dict:
    return {
        "source": "timm",
        "name": "resnet10t",
        "preprocessing": {"size": 32, "channels": 3},
        **more,
    }


@pytest.mark.parametrize("ending", ["safetensors", "pth"])
def test_a_timm_model_from_a_local_file_has_the_files_weights(tmp_path: Path, ending: str) -> None:
    torch.manual_seed(1)
    network = build("resnet10t", {}, 3, 3, 32).eval()
    path = tmp_path / f"w.{ending}"
    if ending == "pth":
        torch.save({"state_dict": network.state_dict()}, path)
    else:
        write_weights(network, path, {"model": "m"})
    loaded = load_model(block(file=str(path)), CLASSES, None)
    pixels = torch.randn(2, 3, 32, 32)
    with torch.inference_mode():
        assert torch.equal(loaded.module.eval()(pixels), network(pixels))
    assert loaded.mean == pytest.approx((0.485, 0.456, 0.406))


def test_weights_of_another_architecture_are_refused(tmp_path: Path) -> None:
    write_weights(build("linear", {}, 3, 1, 16), tmp_path / "w.safetensors", {})
    with pytest.raises(UserError, match=r"w\.safetensors: does not fit the architecture"):
        load_model(block(file=str(tmp_path / "w.safetensors")), CLASSES, None)


def test_a_weights_file_with_code_in_it_is_refused(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "ran",))

    path = tmp_path / "w.pth"
    torch.save({"state_dict": {"w": Trap()}}, path)
    with pytest.raises(UserError, match="holds more than weights and was refused"):
        read_weights(nn.Linear(2, 2), path)
    assert not (tmp_path / "ran").exists()


def test_a_missing_weights_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"gone\.safetensors: no such weights file"):
        read_weights(nn.Linear(2, 2), tmp_path / "gone.safetensors")


def test_an_unknown_architecture_is_suggested() -> None:
    with pytest.raises(
        UserError, match=r"unknown architecture 'resnet5O': did you mean 'resnet50'"
    ):
        build("resnet5O", {}, 3, 3, 32)


def test_an_architecture_outside_timm_is_refused() -> None:
    with pytest.raises(UserError, match="unknown architecture"):
        build("subprocess:Popen", {}, 3, 3, 32)


def test_an_unknown_argument_of_an_architecture_is_one_line() -> None:
    with pytest.raises(UserError, match="can't be built with") as caught:
        build("resnet10t", {"wings": 2}, 3, 3, 32)
    assert "\n" not in str(caught.value)


def test_every_source_has_a_loader() -> None:
    import importlib

    for source in SOURCES.values():
        assert callable(importlib.import_module(source.module).load)


def test_torchvision_imports_whether_or_not_its_operators_load() -> None:
    import torchvision.transforms

    import stamp.models.torchvision_ops as ops

    assert torchvision.transforms
    assert hasattr(torch.ops.torchvision, "nms")
    assert ops.declare_missing() == ops.declare_missing()


COMPILER = """
import sys
import torch
from stamp.models.torchvision_ops import timm
assert not [name for name in sys.modules if name.startswith("torch._dynamo")]
network = timm.create_model("resnet18", num_classes=3).eval()
with torch.inference_mode():
    assert network(torch.zeros(1, 3, 32, 32)).shape == (1, 3)
assert "torch._dynamo" not in sys.modules
from torchvision.ops.roi_align import is_compile_supported
assert isinstance(is_compile_supported("cpu"), bool) and "torch._dynamo" in sys.modules
assert torch.compile(lambda x: x + 1, backend="eager")(torch.ones(1)).item() == 2
assert torch.compiler.disable(len) is not len  # the real one is back
"""


def test_torch_s_compiler_is_imported_when_something_compiles_and_not_before() -> None:
    library = str(Path(logits.__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": library}
    done = subprocess.run(
        [sys.executable, "-c", COMPILER], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("side", "batch", "size"), [(48, 128, 128), (224, 128, 20), (224, 7, 7)])
def test_a_cpu_takes_large_images_a_few_at_a_time(side: int, batch: int, size: int) -> None:
    loaded = LoadedModel(Fixed([0.0]), (0.5,), (0.5,))
    execution = logits.Execution("cpu", batch=batch)
    assert logits.fitting_forward(loaded, execution, side**2).size == size


def test_switches_that_change_numbers_are_off_unless_asked_for(
    tmp_path: Path, cache: PixelCache
) -> None:
    flags = torch.backends.cuda.matmul, torch.backends.cudnn
    loaded, metadata = LoadedModel(Fixed([0.0, 1.0, 2.0]), (0.5,), (0.5,)), {"model": "m"}
    for on in (True, False):
        numerics = dict.fromkeys(["tf32", "cudnn_benchmark"], True) if on else {}
        target = tmp_path / f"{on}.safetensors"
        execution = logits.Execution("cpu", numerics=numerics)
        logits.extract_logits(
            target, cache, loaded, CLASSES, {**metadata, "view": "source"}, execution
        )
        assert [each.allow_tf32 for each in flags] == [on, on]
        assert torch.backends.cudnn.benchmark == on
        told = array_metadata(target).get("numerics")
        assert told == ("cudnn_benchmark tf32" if on else None)


def test_a_model_is_compiled_where_the_run_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[nn.Module] = []

    def compile_(module: nn.Module) -> nn.Module:
        compiled.append(module)
        return module

    monkeypatch.setattr(torch, "compile", compile_)
    loaded = LoadedModel(Fixed([0.0]), (0.5,), (0.5,))
    for numerics, count in (({}, 0), ({"compile": True}, 1)):
        execution = logits.Execution("cpu", numerics=numerics)
        forward = logits.fitting_forward(loaded, execution, 16)
        assert forward(torch.zeros(3, 4, 4, 1, dtype=torch.uint8)).shape == (3, 1)
        assert len(compiled) == count
