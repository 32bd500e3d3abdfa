"""The ``load`` block of a model: what the user gave, and what timm, a hub or the file knows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stamp.core.errors import UserError

Block = dict[str, Any]


def load_block(kind: str, name: str, given: Mapping[str, Any], pixels: Mapping[str, Any]) -> Block:
    """The ``load`` block of a model: what was given, and what timm or the file itself knows.

    ``pixels`` is the study's preprocessing; the block names only what differs or is needed.
    """
    told = {key: value for key, value in given.items() if value is not None and value != {}}
    if "file" in told and kind not in ("timm", "torchxrayvision", "python"):
        raise UserError(f"--file is not for --{kind}, which names its file itself")
    return {**BLOCKS[kind](name, told, pixels), **told}


def _timm(name: str, told: Block, pixels: Mapping[str, Any]) -> Block:
    from stamp.models.backbones import published

    record = published(name)
    own = {key: pixels[key] for key in ("size", "channels") if key in pixels}
    if record is not None and "file" not in told:
        channels, size, _ = record.input_size
        own = {"size": size, "channels": channels, "interpolation": record.interpolation}
        own["crop"] = record.crop_pct
    return {
        "source": "timm",
        "name": name,
        "preprocessing": {**own, **told.pop("preprocessing", {})},
    }


def _hf(name: str, told: Block, pixels: Mapping[str, Any]) -> Block:
    from stamp.models.loaders.hf import published

    repo, _, revision = name.removeprefix("hf:").partition("@")
    for key in ("mean", "std", "probabilities"):
        if key in told:
            raise UserError(f"--{key} is not for --hf: its own processor says how pixels are made")
    made, commit = published(repo, told.pop("revision", None) or revision or None)
    own = {**made.settings, **told.pop("preprocessing", {})}
    return {"source": "hf", "hub": repo, "revision": commit, "preprocessing": own}


def _xray(name: str, told: Block, pixels: Mapping[str, Any]) -> Block:
    from stamp.models.loaders.torchxrayvision import published_at

    address = {} if "file" in told else {"url": published_at(name)}
    own = {"size": 224, "channels": 1, **told.pop("preprocessing", {})}
    return {"source": "torchxrayvision", "weights": name, **address, "preprocessing": own}


def _checkpoint(name: str, told: Block, pixels: Mapping[str, Any]) -> Block:
    if "arch" not in told:
        raise UserError("--checkpoint needs --arch, the timm architecture that the weights are of")
    return {"source": "checkpoint", "arch": told.pop("arch"), "file": name}


def _normalised(kind: str, told: Mapping[str, Any]) -> None:
    if not {"mean", "std"} <= set(told):
        raise UserError(
            f"--{kind} needs --mean and --std, of pixels in [0, 1], one number per channel "
            "(0 and 1 if the model does that itself)"
        )


def _torchscript(name: str, told: Block, pixels: Mapping[str, Any]) -> Block:
    _normalised("torchscript", told)
    return {"source": "torchscript", "file": name}


def _onnx(name: str, told: Block, pixels: Mapping[str, Any]) -> Block:
    from stamp.models.loaders.onnx import Sessions

    _normalised("onnx", told)
    if not Path(name).is_file():
        raise UserError(f"{name}: no such file")
    shape = Sessions(Path(name), told.get("output")).input.shape
    block: Block = {"source": "onnx", "file": name}
    size = pixels.get("size")
    if len(shape) == 4 and isinstance(shape[-1], int):  # any other shape is refused by the loader
        size = shape[-1]
    if size != pixels.get("size"):
        block["preprocessing"] = {"size": size, **told.pop("preprocessing", {})}
    return block


def _python(name: str, told: Block, pixels: Mapping[str, Any]) -> Block:
    _normalised("python", told)
    return {"source": "python", "function": name}


def _logits(name: str, told: Block, pixels: Mapping[str, Any]) -> Block:
    return {"source": "logits", "file": name}


BLOCKS = {
    "timm": _timm,
    "hf": _hf,
    "torchxrayvision": _xray,
    "checkpoint": _checkpoint,
    "torchscript": _torchscript,
    "onnx": _onnx,
    "python": _python,
    "logits": _logits,
}
