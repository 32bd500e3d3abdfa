"""The kinds of model: a new model is a YAML entry, a new kind is a module and a line here.

A loader module has ``load(block, classes, weights) -> LoadedModel``. It is named here as text, so
that planning imports no torch and a change of one loader reruns only its own models.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any


@dataclass(frozen=True, slots=True)
class Source:
    """Where a loader lives, which packages decide its numbers, which rule trains it, if any.

    Models of a ``precomputed`` kind are files of logits: nothing is run, no torch is needed.
    """

    module: str
    packages: tuple[str, ...]
    trainer: str | None = None
    precomputed: bool = False

    @property
    def trained(self) -> bool:
        """Whether a rule trains models of this kind, unless they bring a checkpoint."""
        return self.trainer is not None


SOURCES = {
    "train": Source("stamp.models.loaders.train", ("torch", "timm"), trainer="train"),
    "finetune": Source("stamp.models.loaders.finetune", ("torch", "timm"), trainer="finetune"),
    "probe": Source("stamp.models.loaders.probe", ("torch", "timm"), trainer="probe"),
    "timm": Source("stamp.models.loaders.timm", ("torch", "timm")),
    "checkpoint": Source("stamp.models.loaders.checkpoint", ("torch", "timm")),
    "torchxrayvision": Source("stamp.models.loaders.torchxrayvision", ("torch", "torchxrayvision")),
    "hf": Source("stamp.models.loaders.hf", ("torch", "transformers")),
    "torchscript": Source("stamp.models.loaders.torchscript", ("torch",)),
    "onnx": Source("stamp.models.loaders.onnx", ("torch", "onnxruntime")),
    "python": Source("stamp.models.loaders.python", ("torch",)),
    "logits": Source("stamp.models.loaders.precomputed", (), precomputed=True),
}
ALSO_AS = {"onnxruntime": ("onnxruntime-gpu",)}  # one module, published under several names


@cache
def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    for name in (package, *ALSO_AS.get(package, ())):
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return "not installed"  # the loader says so, if the model is ever run


def versions(source: str, block: Mapping[str, Any] | None = None) -> dict[str, str]:
    """Versions of the packages that a kind of model runs on, without importing them.

    With a ``load`` block, also of those that only some models of the kind need.
    """
    packages = SOURCES[source].packages
    backbone = (block or {}).get("backbone")
    if isinstance(backbone, Mapping) and "transformers" in backbone:
        packages = (*packages, "transformers")
    return {package: _version(package) for package in packages}


def backbone_key(block: Mapping[str, Any]) -> str:
    """A short name for the embeddings of a probe's backbone: its settings and the pixels it sees.

    Probes that differ in their heads only have the same key, and share one cache of embeddings.
    """
    settings = {key: block.get(key) for key in ("backbone", "preprocessing")}
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]
