"""A user's own models: the same network in every form has the same outputs; mistakes are a line."""

from __future__ import annotations

import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from networks import ARCH, ARGS, MEAN, STD, network, write_onnx, write_outputs, write_torchscript
from project import ROOT
from scipy.special import expit, log_softmax, logit, softmax
from torch import nn

from stamp.config.zoo import filled, weight_files
from stamp.core.errors import UserError
from stamp.inference.extra_outputs.jacobian import spectral_norms
from stamp.inference.logits import Forward
from stamp.models import probabilities
from stamp.models.classifier import classifier
from stamp.models.loaders import onnx as onnx_file
from stamp.models.loaders import precomputed as given
from stamp.models.loaders.registry import load_model
from stamp.models.taps import Taps
from stamp.models.weights import write_weights

CLASSES = ["Edema", "Effusion", "Mass", "Nodule"]
SIZE = 24
PIXELS = {"size": SIZE, "channels": 1}
COMMON = {"mean": MEAN, "std": STD, "preprocessing": PIXELS}
CODE = """
import torch
from stamp.models.architectures import build
from stamp.models.weights import read_weights

def chest(weights, width=4):
    made = build("resnet18", {arguments}, width, 1, 24)
    read_weights(made, weights)
    return made

def squares():
    return lambda pixels: pixels.square().mean(dim=(2, 3)).expand(-1, 4)

def broken():
    return 1 / 0

def number():
    return 3

def leaves():
    raise SystemExit(0)

def leaves_late():
    return lambda pixels: leaves()

def late():
    return lambda pixels: pixels @ torch.ones(7, 7)

class Late(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(7, 7))

    def forward(self, pixels):
        return pixels @ self.weight
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The network and a ``load`` block for each form of it."""
    folder = tmp_path_factory.mktemp("own")
    module = network(len(CLASSES), SIZE)
    write_weights(module, folder / "w.safetensors", {})
    (folder / "own_code.py").write_text(CODE.replace("{arguments}", repr(ARGS)))
    files = {
        "torchscript": write_torchscript(module, folder / "w.pt", SIZE),
        "onnx": write_onnx(module, folder / "w.onnx", SIZE),
        "one": write_onnx(module, folder / "one.onnx", SIZE, batch=1),
        "three": write_onnx(module, folder / "three.onnx", SIZE, batch=3),
        "sigmoid": write_torchscript(
            nn.Sequential(module, nn.Sigmoid()), folder / "sigmoid.pt", SIZE
        ),
        "softmax": write_onnx(nn.Sequential(module, nn.Softmax(1)), folder / "p.onnx", SIZE),
    }
    kinds = {key: "torchscript" if file.suffix == ".pt" else "onnx" for key, file in files.items()}
    blocks: dict[str, Any] = {
        key: {"source": kinds[key], "file": str(file), **COMMON} for key, file in files.items()
    }
    weights = str(folder / "w.safetensors")
    blocks["sigmoid"]["probabilities"], blocks["softmax"]["probabilities"] = "sigmoid", "softmax"
    blocks["checkpoint"] = {
        "source": "checkpoint",
        "arch": ARCH,
        "arch_args": ARGS,
        "file": weights,
        **COMMON,
    }
    blocks["python"] = {"source": "python", "function": "own_code:chest", "file": weights, **COMMON}
    blocks["python"]["code"] = "digest"
    return {"module": module, "blocks": blocks, "folder": folder}


def batch(images: int = 7) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (images, SIZE, SIZE, 1), dtype=torch.uint8, generator=generator)


def wanted(module: Any, images: torch.Tensor) -> np.ndarray:
    with torch.inference_mode():
        pixels = (images.permute(0, 3, 1, 2) / 255 - MEAN[0]) / STD[0]
        return module(pixels).numpy()


@pytest.mark.parametrize(
    "form", ["checkpoint", "torchscript", "onnx", "one", "three", "python", "sigmoid"]
)
def test_every_form_of_the_network_has_its_logits(
    made: dict[str, Any], form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(made["folder"])
    loaded = load_model(made["blocks"][form], CLASSES, None)
    expected = wanted(made["module"], batch())
    assert expected.std(axis=0).min() > 0.01  # the images differ, so that a mix-up would show
    found = Forward(loaded, "cpu")(batch())
    np.testing.assert_allclose(found, expected, atol=2e-4 if form == "sigmoid" else 1e-5)
    assert loaded.missing == ()


def test_a_softmax_in_the_file_is_undone_up_to_a_shift_of_all_classes(made: dict[str, Any]) -> None:
    found = Forward(load_model(made["blocks"]["softmax"], CLASSES, None), "cpu")(batch())
    expected = log_softmax(wanted(made["module"], batch()), axis=1)
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("form", ["torchscript", "onnx", "python"])
def test_outputs_are_taken_by_name_and_those_it_lacks_are_missing(
    made: dict[str, Any], form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(made["folder"])
    block = {**made["blocks"][form], "outputs": ["Mass", "", "Other", "Edema"]}
    loaded = load_model(block, CLASSES, None)
    found, expected = Forward(loaded, "cpu")(batch()), wanted(made["module"], batch())
    np.testing.assert_allclose(found[:, [0, 2]], expected[:, [3, 0]], atol=1e-5)
    assert np.isnan(found[:, [1, 3]]).all()
    assert loaded.missing == (1, 3)
    with pytest.raises(UserError, match=r"outputs: unknown class 'mass': did you mean 'Mass'\?"):
        load_model({**block, "outputs": ["mass"]}, CLASSES, None)


@pytest.mark.parametrize("form", ["torchscript", "onnx", "sigmoid"])
def test_what_is_inside_an_opaque_model_is_not_available_and_it_says_why(
    made: dict[str, Any], form: str
) -> None:
    loaded = load_model({**made["blocks"][form], "outputs": ["Mass", *"abc"]}, CLASSES, None)
    for ask in (lambda: classifier(loaded.module), lambda: Taps(loaded.module).__enter__()):
        with pytest.raises(UserError, match=r"^not available: the .* file '.*' is run as it is"):
            ask()


def test_a_function_that_makes_a_timm_network_has_taps(
    made: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(made["folder"])
    loaded = load_model(made["blocks"]["python"], CLASSES, None)
    with Taps(loaded.module) as taps, torch.inference_mode():
        logits = loaded.module(torch.rand(2, 1, SIZE, SIZE))
        assert taps.classifier_input is not None
        torch.testing.assert_close(classifier(loaded.module)(taps.classifier_input), logits)


def test_gradients_of_an_onnx_file_are_not_available(made: dict[str, Any]) -> None:
    loaded = load_model(made["blocks"]["onnx"], CLASSES, None)
    with pytest.raises(UserError, match=r"gradients are not available: w\.onnx is an ONNX file"):
        loaded.module(torch.rand(1, 1, SIZE, SIZE, requires_grad=True))


@pytest.mark.parametrize("form", ["checkpoint", "torchscript", "python"])
def test_a_network_is_as_steep_in_every_form_that_has_gradients(
    made: dict[str, Any], form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(made["folder"])
    forward = Forward(load_model(made["blocks"][form], CLASSES, None), "cpu")
    x = forward.normalised(batch(3))
    start = torch.randn(x.shape, generator=torch.Generator().manual_seed(1))
    expected = spectral_norms(made["module"], x, start, 5)
    for _ in range(3):  # a script is compiled anew after its first runs
        found = spectral_norms(forward.module, x, start, 5)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=0)


def test_the_sensitivity_of_an_onnx_file_is_not_available(made: dict[str, Any]) -> None:
    forward = Forward(load_model(made["blocks"]["onnx"], CLASSES, None), "cpu")
    x = forward.normalised(batch(3))
    with pytest.raises(UserError, match=r"gradients are not available: w\.onnx is an ONNX file"):
        spectral_norms(forward.module, x, torch.ones_like(x), 5)


def test_parameters_are_counted_or_told_or_unknown(
    made: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(made["folder"])
    count = sum(parameter.numel() for parameter in made["module"].parameters())
    for form in ("torchscript", "python", "checkpoint"):
        assert load_model(made["blocks"][form], CLASSES, None).parameters == count
    assert load_model(made["blocks"]["onnx"], CLASSES, None).parameters is None
    assert load_model({**made["blocks"]["onnx"], "parameters": 7}, CLASSES, None).parameters == 7


@pytest.mark.parametrize(
    ("form", "change", "line"),
    [
        (
            "onnx",
            {"preprocessing": {"size": 32, "channels": 1}},
            "but pixels are [n, 1, 32, 32]: give",
        ),
        ("onnx", {"mean": [0.5] * 3, "std": [1] * 3}, "but pixels are [n, 3, 24, 24]: give"),
        ("onnx", {"output": "logit"}, "unknown output 'logit': "),
        ("onnx", {"std": [1.0, 1.0]}, "mean has 1 numbers, std 2"),
        ("onnx", {"preprocessing": {"size": 24, "channels": 3}}, "but pixels have 3 channels"),
        ("torchscript", {"file": "no.pt"}, "no.pt: can't be read as TorchScript: "),
        ("python", {"function": "own_code:chess"}, "no function 'chess': did you mean 'chest'?"),
        ("python", {"function": "own_cod:chest"}, "'own_cod' can't be imported: "),
        ("python", {"args": {"depth": 3}}, "failed: TypeError: chest() got an unexpected keyword"),
        ("python", {"args": {"width": 3}}, "'fc.bias' is [4], not [3]"),
    ],
)
def test_a_block_that_does_not_fit_its_file_is_one_line(
    made: dict[str, Any],
    form: str,
    change: dict[str, Any],
    line: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(made["folder"])
    with pytest.raises(UserError) as caught:
        load_model({**made["blocks"][form], **change}, CLASSES, None)
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("function", "line"),
    [
        ("broken", "failed: ZeroDivisionError: "),
        ("number", "gives a int, which can't be called"),
        ("leaves", "function 'own_code:leaves' failed: SystemExit: 0"),
    ],
)
def test_a_function_that_makes_no_model_is_one_line(
    made: dict[str, Any], function: str, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(made["folder"])
    block = {"source": "python", "function": f"own_code:{function}", "code": "x", **COMMON}
    with pytest.raises(UserError, match=line):
        load_model(block, CLASSES, None)


def test_any_function_of_pixels_is_a_model(
    made: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(made["folder"])
    block = {"source": "python", "function": "own_code:squares", "code": "x", **COMMON}
    found = Forward(load_model(block, CLASSES, None), "cpu")(batch())
    pixels = (batch().numpy()[..., 0] / 255 - MEAN[0]) / STD[0]
    np.testing.assert_allclose(found[:, 0], (pixels**2).mean(axis=(1, 2)), rtol=1e-4)


@pytest.mark.parametrize("function", ["late", "Late", "leaves_late"])
def test_a_function_whose_model_fails_on_the_pixels_is_one_line(
    made: dict[str, Any], function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(made["folder"])
    block = {"source": "python", "function": f"own_code:{function}", "code": "x", **COMMON}
    loaded = load_model(block, CLASSES, None)
    assert loaded.parameters == (49 if function == "Late" else None)
    with pytest.raises(UserError, match=r"fails on pixels of shape \[5, 1, 24, 24\]: ") as caught:
        Forward(loaded, "cpu")(batch()[:5])
    assert "\n" not in str(caught.value)


def test_a_softmax_that_does_not_sum_to_one_is_refused(made: dict[str, Any]) -> None:
    """Sigmoids in a multiclass study: log p of them would be no logits of a softmax."""
    block = {**made["blocks"]["sigmoid"], "probabilities": "softmax"}
    with pytest.raises(UserError, match=r"the outputs of an image sum to .*, not to 1"):
        Forward(load_model(block, CLASSES, None), "cpu")(batch())


def test_weights_whose_names_all_begin_alike_say_which_prefix_to_give(
    made: dict[str, Any], tmp_path: Path
) -> None:
    from safetensors.torch import load_file, save_file

    state = load_file(made["folder"] / "w.safetensors")
    file = tmp_path / "parallel.safetensors"
    save_file({f"module.{name}": value for name, value in state.items()}, file)
    block = {"source": "checkpoint", "arch": ARCH, "arch_args": ARGS, **COMMON, "file": str(file)}
    with pytest.raises(UserError, match=r"its names begin with 'module\.', so give prefix: module"):
        load_model(block, CLASSES, None)
    load_model({**block, "prefix": "module."}, CLASSES, None)


def test_weights_and_programs_that_are_taken_for_each_other_say_what_they_are(
    made: dict[str, Any], tmp_path: Path
) -> None:
    state = tmp_path / "state.pt"
    torch.save(network(len(CLASSES), SIZE).state_dict(), state)
    with pytest.raises(UserError) as caught:
        load_model({**made["blocks"]["torchscript"], "file": str(state)}, CLASSES, None)
    assert str(caught.value).endswith(
        "it holds weights and no program, so source: checkpoint with its arch"
    )
    block = {"source": "checkpoint", "arch": ARCH, "arch_args": ARGS, **COMMON}
    program = made["blocks"]["torchscript"]["file"]
    with pytest.raises(UserError) as caught:
        load_model({**block, "file": program}, CLASSES, None)
    assert str(caught.value) == (
        f"{program}: can't be read as weights: it is a program, so source: torchscript"
    )


def test_a_channels_last_file_and_a_file_of_something_else_are_one_line(tmp_path: Path) -> None:
    class Last(nn.Module):
        def forward(self, pixels: torch.Tensor) -> torch.Tensor:
            return pixels.mean(dim=(1, 2))

    path = tmp_path / "last.onnx"
    torch.onnx.export(
        Last(), (torch.rand(1, SIZE, SIZE, 3),), str(path), dynamo=True, verbose=False
    )
    block = {"source": "onnx", "file": str(path), "preprocessing": {"size": SIZE, "channels": 3}}
    block |= {"mean": [0.5] * 3, "std": [0.5] * 3}
    with pytest.raises(UserError, match="has the channels last: export it with"):
        load_model(block, CLASSES[:3], None)
    path.write_bytes(b"no model")
    with pytest.raises(UserError, match=r"last\.onnx: can't be read as ONNX: ") as caught:
        load_model(block, CLASSES[:3], None)
    assert "\n" not in str(caught.value)


def test_without_onnxruntime_one_line_says_how_to_install_it(
    made: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(UserError, match="pip install onnxruntime") as caught:
        onnx_file.load(made["blocks"]["onnx"], CLASSES, None)
    assert "\n" not in str(caught.value)


def test_a_model_that_gives_several_tensors_is_one_line(tmp_path: Path) -> None:
    class Two(nn.Module):
        def forward(self, pixels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            flat = pixels.mean(dim=(2, 3)).expand(-1, 4)
            return flat, flat

    script = write_torchscript(Two(), tmp_path / "two.pt", SIZE)
    loaded = load_model({"source": "torchscript", "file": str(script), **COMMON}, CLASSES, None)
    with pytest.raises(UserError, match="gives a tuple, but one tensor of outputs is expected"):
        Forward(loaded, "cpu")(batch())
    path = write_onnx(Two(), tmp_path / "two.onnx", SIZE)
    block = {"source": "onnx", "file": str(path), **COMMON}
    with pytest.raises(UserError, match=r"has several outputs, .*: give output"):
        load_model(block, CLASSES, None)


def test_a_torchscript_that_fails_on_the_pixels_is_one_line(made: dict[str, Any]) -> None:
    block = {**made["blocks"]["torchscript"], "mean": [0.5] * 3, "std": [0.5] * 3}
    loaded = load_model(block, CLASSES, None)
    with pytest.raises(
        UserError, match=r"w\.pt: fails on pixels of shape \[3, 24, 24\]: "
    ) as caught:
        Forward(loaded, "cpu")(batch())
    assert "\n" not in str(caught.value)


# --- code of the user's --------------------------------------------------------------------------


def test_code_is_refused_unless_allowed_and_its_digest_is_taken_without_running_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    trap = tmp_path / "ran"
    code = f"from pathlib import Path\nPath({str(trap)!r}).touch()\n"
    (tmp_path / "sly.py").write_text(code)
    block = {"source": "python", "function": "sly:make", **COMMON}
    with pytest.raises(UserError, match="zoo: code is run only with `allow_code: true`"):
        filled(block, "multilabel", False, "zoo")
    first = filled(block, "multilabel", True, "zoo")["code"]
    (tmp_path / "sly.py").write_text(code + "# changed\n")
    assert filled(block, "multilabel", True, "zoo")["code"] != first
    with pytest.raises(UserError, match="code is run only with"):
        load_model(block, CLASSES, None)
    assert not trap.exists()


def test_of_a_package_every_file_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "chest" / "nets"
    folder.mkdir(parents=True)
    for name in ("../__init__", "__init__", "small", "layers"):
        (folder / f"{name}.py").write_text("")
    block = {"source": "python", "function": "chest.nets.small:make", **COMMON}
    first = filled(block, "multilabel", True, "zoo")["code"]
    (folder / "layers.py").write_text("WIDTH = 3\n")
    assert filled(block, "multilabel", True, "zoo")["code"] != first
    for name, line in (("chest.net.small", "has no module 'net.small'"), ("chets", "no module")):
        with pytest.raises(UserError, match=line):
            filled({**block, "function": f"{name}:make"}, "multilabel", True, "zoo")


# --- outputs that are given ----------------------------------------------------------------------

IDS = [f"{number:03d}" for number in range(20)]  # leading zeros, which a CSV reader must leave
VALUES = np.random.default_rng(0).normal(0, 3, (20, 4))


def logits_of(path: Path, ids: list[str] = IDS, task: str = "multilabel", **more: Any) -> Any:
    return given.logits_of({"file": str(path), **more}, "source", ids, CLASSES, task)


@pytest.mark.parametrize("ending", ["parquet", "csv", "npy"])
def test_outputs_of_a_file_are_those_of_the_images_that_are_asked_for(
    tmp_path: Path, ending: str
) -> None:
    path = write_outputs(tmp_path / f"o.{ending}", IDS, VALUES, CLASSES)
    order = np.random.default_rng(1).permutation(20)[:13]
    found = logits_of(path, [IDS[one] for one in order])
    np.testing.assert_allclose(found, VALUES[order], rtol=1e-6)
    assert found.dtype == np.float32


@pytest.mark.parametrize("ending", ["parquet", "csv", "npy"])
@pytest.mark.parametrize(("task", "squash"), [("multilabel", expit), ("multiclass", softmax)])
def test_probabilities_become_their_logits(
    tmp_path: Path, ending: str, task: str, squash: Any
) -> None:
    p = squash(VALUES) if task == "multilabel" else softmax(VALUES, axis=1)
    path = write_outputs(tmp_path / f"p.{ending}", IDS, p, CLASSES)
    told = {"multilabel": "sigmoid", "multiclass": "softmax"}[task]
    found = logits_of(path, task=task, probabilities=told)
    exact = VALUES if task == "multilabel" else log_softmax(VALUES, axis=1)
    np.testing.assert_allclose(found, exact, rtol=1e-5, atol=1e-5)


def test_rounded_probabilities_are_clipped_and_stay_finite() -> None:
    p = np.array([[0.0, 1.0], [0.5, 0.5]])
    sigmoid, soft = (probabilities.to_logits(p, kind) for kind in ("sigmoid", "softmax"))
    np.testing.assert_allclose(sigmoid, [[logit(1e-7), logit(1 - 1e-7)], [0, 0]], rtol=1e-6)
    np.testing.assert_allclose(soft, [[np.log(1e-30), 0], [np.log(0.5)] * 2])
    np.testing.assert_allclose(softmax(soft, axis=1), p, atol=1e-12)


@pytest.mark.parametrize(
    ("values", "told", "task", "line"),
    [
        (expit(VALUES), None, "multilabel", "look like probabilities: say probabilities: true or"),
        (softmax(VALUES, 1), None, "multiclass", "look like probabilities: say"),
        (VALUES, "sigmoid", "multilabel", "is no probability: are these logits?"),
        (expit(VALUES), "softmax", "multiclass", "the probabilities of an image sum to"),
    ],
)
def test_logits_and_probabilities_are_not_taken_for_each_other(
    tmp_path: Path, values: np.ndarray, told: str | None, task: str, line: str
) -> None:
    path = write_outputs(tmp_path / "o.parquet", IDS, values, CLASSES)
    more = {} if told is None else {"probabilities": told}
    with pytest.raises(UserError, match=line):
        logits_of(path, task=task, **more)
    if told is None:
        found = logits_of(path, task=task, probabilities=False)
        np.testing.assert_allclose(found, values, rtol=1e-6)


def test_columns_are_taken_by_name_and_those_it_lacks_are_missing(tmp_path: Path) -> None:
    path = tmp_path / "o.parquet"
    columns = {"image": IDS, "note": ["x"] * 20, "Mass": VALUES[:, 2], "Edema": VALUES[:, 0]}
    pl.DataFrame(columns).write_parquet(path)
    found = logits_of(path)
    np.testing.assert_allclose(found[:, [0, 2]], VALUES[:, [0, 2]], rtol=1e-6)
    assert np.isnan(found[:, [1, 3]]).all()
    array = write_outputs(tmp_path / "o.npy", IDS, VALUES[:, :2], CLASSES)
    named = logits_of(array, outputs=["Mass", "Edema"])
    np.testing.assert_allclose(named[:, [2, 0]], VALUES[:, :2], rtol=1e-6)
    with pytest.raises(UserError, match="has 2 columns for 4 classes: give outputs"):
        logits_of(array)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (
            lambda t: t[3:],
            r"3 of the 20 images of the view 'source' are missing, the first is '000'",
        ),
        (lambda t: pl.concat([t, t[4:5]]), "image '004' stands 2 times"),
        (lambda t: t.rename({"image": "images"}), "no column 'image': did you mean 'images'"),
        (lambda t: t.rename({"Mass": "mass"}), "unknown class 'mass': did you mean 'Mass'"),
        (lambda t: t.select("image"), "none of its outputs is a class of the study"),
        (
            lambda t: t.with_columns(
                pl.when(pl.int_range(20) == 6).then(np.nan).otherwise("Mass").alias("Mass")
            ),
            "image '006': Mass is empty or not finite",
        ),
        (
            lambda t: t.with_columns(
                Mass=pl.when(pl.int_range(20) == 6).then(None).otherwise("Mass")
            ),
            "image '006': Mass is empty or not finite",
        ),
        (
            lambda t: t.with_columns(Mass=pl.lit("high")),
            "the column 'Mass' holds String, not numbers",
        ),
    ],
)
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_table_that_can_not_be_used_is_one_line(
    tmp_path: Path, change: Any, line: str, ending: str
) -> None:
    path = write_outputs(tmp_path / "o.parquet", IDS, VALUES, CLASSES)
    changed = change(pl.read_parquet(path))
    path = tmp_path / f"changed.{ending}"
    changed.write_csv(path) if ending == "csv" else changed.write_parquet(path)
    with pytest.raises(UserError, match=line) as caught:
        logits_of(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_an_array_that_can_not_be_used_is_one_line(tmp_path: Path) -> None:
    path = write_outputs(tmp_path / "o.npy", IDS[:-1], VALUES, CLASSES)
    with pytest.raises(UserError, match=r"has 20 rows, but .*o\.txt has 19 image ids"):
        logits_of(path)
    np.save(path, VALUES[0])
    with pytest.raises(UserError, match=r"has shape \[4\], but \[images, classes\] is expected"):
        logits_of(path)
    np.save(path, VALUES.astype(str))
    with pytest.raises(UserError, match=r"o\.npy: holds <U\d+, not numbers"):
        logits_of(path)
    path.write_bytes(b"")
    with pytest.raises(UserError, match=r"o\.npy: can't be read: "):
        logits_of(path)
    with open(path, "wb") as file:
        np.savez(file, a=VALUES)
    with pytest.raises(UserError, match=r"o\.npy: holds several arrays"):
        logits_of(path)
    np.save(path, np.array([object()]), allow_pickle=True)
    with pytest.raises(UserError, match=r"can't be read: .*allow_pickle") as caught:
        logits_of(path)
    assert "\n" not in str(caught.value)


def test_a_column_that_stands_twice_or_ids_that_are_none_are_one_line(tmp_path: Path) -> None:
    path = tmp_path / "o.csv"
    path.write_text("image,Edema,Mass,Edema\n" + "".join(f"{one},1,2,3\n" for one in IDS))
    with pytest.raises(UserError, match=r"o\.csv: the column 'Edema' stands twice"):
        logits_of(path)
    path = tmp_path / "o.parquet"
    pl.DataFrame({"image": [[one] for one in IDS], "Edema": VALUES[:, 0]}).write_parquet(path)
    with pytest.raises(UserError, match=r"the column 'image' holds List\(String\), not image ids"):
        logits_of(path)


def test_ids_with_a_byte_order_mark_are_the_same_ids(tmp_path: Path) -> None:
    path = write_outputs(tmp_path / "o.npy", IDS, VALUES, CLASSES)
    path.with_suffix(".txt").write_text("\r\n".join(IDS), encoding="utf-8-sig")
    np.testing.assert_allclose(logits_of(path), VALUES, rtol=1e-6)


def test_each_view_may_have_its_file_and_all_are_inputs_of_the_workflow(tmp_path: Path) -> None:
    first = write_outputs(tmp_path / "a.npy", IDS, VALUES, CLASSES)
    second = write_outputs(tmp_path / "b.csv", IDS, -VALUES, CLASSES)
    block = {"source": "logits", "files": {"source": str(first), "external": str(second)}}
    found = given.logits_of(block, "external", IDS, CLASSES, "multilabel")
    np.testing.assert_allclose(found, -VALUES, rtol=1e-6)
    assert set(weight_files(block).values()) == {
        str(first),
        str(first.with_suffix(".txt")),
        str(second),
    }
    with pytest.raises(UserError, match="none is given for the view 'id'"):
        given.logits_of(block, "id", IDS, CLASSES, "multilabel")


def test_a_file_of_outputs_has_nothing_to_run() -> None:
    with pytest.raises(UserError, match="not available: the model is a file of outputs"):
        load_model({"source": "logits", "file": "x.csv"}, CLASSES, None)


def test_neither_torch_nor_timm_is_imported_for_given_outputs(tmp_path: Path) -> None:
    """The scripts run where importing torch fails."""
    path = write_outputs(tmp_path / "o.csv", IDS, VALUES, CLASSES)
    view = tmp_path / "view.parquet"
    pl.DataFrame({"image": IDS, "label": [0] * 20, "domain": ["all"] * 20}).write_parquet(view)
    program = f"""
import sys
from types import SimpleNamespace
for name in ("torch", "timm", "torchvision", "onnxruntime"):
    sys.modules[name] = None
import precomputed_logits, precomputed_predictions
from snakemake.iocontainers import InputFiles
load, files = {{"file": {str(path)!r}}}, [{sha256(path.read_bytes()).hexdigest()!r}]
params = SimpleNamespace(
    load=load, classes={CLASSES!r}, task="multiclass", among=None, files=files)
brought = InputFiles(fromdict={{"view": {str(view)!r}, "weights": [{str(path)!r}]}})
for script in (precomputed_logits, precomputed_predictions):
    script.main(SimpleNamespace(
        params=params, input=brought,
        wildcards=SimpleNamespace(study="s", model="m", view="source"),
        output=[{str(tmp_path)!r} + f"/{{script.__name__}}.safetensors"]))
"""
    folder = ROOT / "workflow" / "scripts"
    subprocess.run([sys.executable, "-c", program], cwd=folder, check=True)
    from stamp.core.artifacts import array_metadata, ids_digest, read_arrays
    from stamp.inference.outputs import predictions_of

    logits = read_arrays(
        tmp_path / "precomputed_logits.safetensors", model="m", ids=ids_digest(IDS)
    )
    np.testing.assert_allclose(logits["logits"], VALUES, rtol=1e-6)
    records = read_arrays(
        tmp_path / "precomputed_predictions.safetensors", model="m", ids=ids_digest(IDS)
    )
    expected = predictions_of(logits["logits"], np.arange(4))
    np.testing.assert_allclose(records["predictions"], expected, rtol=1e-6)
    assert array_metadata(tmp_path / "precomputed_logits.safetensors")["weights_file"] == str(path)
