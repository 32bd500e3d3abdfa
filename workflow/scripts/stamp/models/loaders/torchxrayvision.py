"""torchxrayvision's chest X-ray classifiers: raw logits of the classes that each was trained on.

Its own ``forward`` applies a sigmoid and moves each output's operating point to 0.5; here neither
happens. Pixels are one channel on [-1024, 1024], which is mean 1/2 and std 1/2048 on [0, 1].

The published files are not weights but whole pickled networks, in the format that torch wrote
before 1.6, which ``torch.load(weights_only=True)`` refuses whatever classes it is told to allow.
:func:`read_published` reads them without running anything of theirs: every name in the pickle must
be on a short list, and the networks' classes on it are replaced by inert shells whose tensors are
then collected.
"""

from __future__ import annotations

import collections
import io
import pickle
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from stamp.core.errors import UserError, suggest
from stamp.models.loaded_model import LoadedModel
from stamp.models.loaders.checkpoint import by_name
from stamp.models.torchvision_ops import declare_missing
from stamp.models.weights import State, first_line, fit, located, plain, read_state, refused

MEAN, STD = 0.5, 1 / 2048
OUTPUTS = 18
AUTOENCODER = "101-elastic"
NO_CLASSIFIER = "an autoencoder: it has no classifier, so it gives no output for any finding"

BUILT = {
    "collections.OrderedDict": collections.OrderedDict,
    "builtins.set": set,
    "__builtin__.set": set,
    "torch._utils._rebuild_parameter": torch._utils._rebuild_parameter,
    "torch._utils._rebuild_tensor_v2": torch._utils._rebuild_tensor_v2,
    "torch.Size": torch.Size,
}
SHELLS = (
    "torch.nn.modules.activation.ReLU",
    "torch.nn.modules.batchnorm.BatchNorm2d",
    "torch.nn.modules.container.Sequential",
    "torch.nn.modules.conv.Conv2d",
    "torch.nn.modules.linear.Linear",
    "torch.nn.modules.pooling.AvgPool2d",
    "torch.nn.modules.pooling.MaxPool2d",
    "torch.nn.backends.thnn._get_thnn_function_backend",
    *(
        f"{module}.{name}"
        for module in ("torchxrayvision.models", "torchvision.models.densenet")
        for name in ("DenseNet", "_DenseBlock", "_DenseLayer", "_Transition")
    ),
)


class Shell:
    """Stands for an object of a pickled network: keeps what the object held and can do nothing."""

    dump_patches = False  # torch asks this of a class before it compares its source


class _Reader(pickle.Unpickler):
    """Unpickles names on the lists only."""

    def find_class(self, module: str, name: str) -> Any:
        full = f"{module}.{name}"
        if full in BUILT:
            return BUILT[full]
        if full in SHELLS:
            return type(name, (Shell,), {})
        raise pickle.UnpicklingError(f"GLOBAL {full} is not allowed")


def _load(file: Any, **settings: Any) -> Any:
    return _Reader(file, **settings).load()


def _tensors(shell: Any, prefix: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """Parameters and buffers of a pickled network by name, as ``state_dict`` would give them."""
    held = vars(shell)
    for kind in ("_parameters", "_buffers"):
        for name, tensor in held.get(kind, {}).items():
            if tensor is not None:
                yield f"{prefix}{name}", tensor.detach()
    for name, child in held.get("_modules", {}).items():
        yield from _tensors(child, f"{prefix}{name}.")


def read_published(path: Path) -> State:
    """The weights in a file as torchxrayvision publishes it, or in a plain weights file."""
    if path.suffix == ".safetensors":
        return read_state(path)
    try:
        content = io.BytesIO(path.read_bytes())  # in memory: a file may also hold a tar archive
    except FileNotFoundError:
        raise UserError(f"{path}: no such weights file") from None
    if zipfile.is_zipfile(content):
        with zipfile.ZipFile(content) as archive:
            if any(name.endswith("/constants.pkl") for name in archive.namelist()):
                raise UserError(f"{path}: is TorchScript, which carries code, and was refused")
    content.seek(0)
    reader: Any = SimpleNamespace(Unpickler=_Reader, load=_load, __name__="stamp")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # not weights_only: the reader above is stricter, and knows the old format
            held = torch.load(content, "cpu", pickle_module=reader, weights_only=False)
    except pickle.UnpicklingError as error:
        raise refused(path, error) from None
    except Exception as error:
        raise UserError(f"{path}: can't be read as weights: {first_line(error)}") from None
    try:
        return plain(dict(_tensors(held)) if isinstance(held, Shell) else held, path)
    except (AttributeError, TypeError, RecursionError):
        raise UserError(f"{path}: holds no network of torchxrayvision") from None


def _package() -> Any:
    """The package's ``models`` module, once torchvision can be imported."""
    declare_missing()
    try:
        from torchxrayvision import models
    except ImportError:
        raise UserError(
            "the model needs the package torchxrayvision: pip install torchxrayvision"
        ) from None
    return models


class RawLogits(nn.Module):
    """torchxrayvision's DenseNet up to its logits."""

    def __init__(self, network: Any):
        super().__init__()
        self.network = network

    def get_classifier(self) -> nn.Module:
        return self.network.classifier

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.network.classifier(self.network.features2(pixels))


def published_at(name: str) -> str:
    """The address of the named weights, as torchxrayvision has it."""
    block = {"weights": name, "preprocessing": {"channels": 1}}
    return _named(block, _package())["weights_url"]


def _named(block: Mapping[str, Any], models: Any) -> Mapping[str, Any]:
    """torchxrayvision's own record of the named weights."""
    name = block["weights"]
    if name == AUTOENCODER:
        raise UserError(f"torchxrayvision's '{name}' can't be scored: {NO_CLASSIFIER}")
    known = [key for key in models.model_urls if key.startswith("densenet121-")]
    if name not in known:
        raise UserError(f"unknown weights '{name}': {suggest(name, known)}")
    if block["preprocessing"]["channels"] != 1:
        raise UserError("models of torchxrayvision take gray pixels: give preprocessing.channels 1")
    return models.model_urls[name]


def network(block: Mapping[str, Any], classes: Sequence[str]) -> LoadedModel:
    """The DenseNet-121 without weights, its outputs in the order of the study's classes."""
    models = _package()
    labels = _named(block, models)["labels"]
    made = models.DenseNet(num_classes=OUTPUTS, in_channels=1, apply_sigmoid=False)
    made.op_threshs = None
    what = f"weights '{block['weights']}'"
    module, missing = by_name(RawLogits(made.eval()), labels, classes, what)
    return LoadedModel(module, (MEAN,), (STD,), missing)


def load(block: Mapping[str, Any], classes: Sequence[str], weights: Path | None) -> LoadedModel:
    """The DenseNet-121 with published weights, from a file or the URL in the block."""
    loaded = network(block, classes)
    if weights is None and not {"file", "url", "hub"} & set(block):
        address = published_at(block["weights"])
        raise UserError(f"weights '{block['weights']}': give file or url; published at {address}")
    path = weights or located(block, f"weights '{block['weights']}'")
    module: Any = loaded.module
    while not isinstance(module, RawLogits):
        module = module.network
    fit(module.network, read_published(path), path, allow_extra=lambda name: name == "op_threshs")
    return loaded
