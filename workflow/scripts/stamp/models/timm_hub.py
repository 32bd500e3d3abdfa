"""timm models with published weights: from the hub (through its cache) or from a local file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stamp.errors import UserError
from stamp.models.architectures import known
from stamp.models.loaded import Loaded
from stamp.models.torchvision_ops import timm
from stamp.models.weights import read_weights


def load(block: Mapping[str, Any], classes: Sequence[str], weights: Path | None) -> Loaded:
    """The named timm model; a model with another number of outputs is found by its forward pass."""
    name, pixels = block["name"], block["pixels"]
    known(name.partition(".")[0])
    arguments = {"in_chans": pixels["channels"], **block.get("args", {})}
    file = weights or block.get("file")
    if file is not None:
        arguments = {"num_classes": len(classes), **arguments}
        module = timm.create_model(name, pretrained=False, **arguments)
        read_weights(module, Path(file))
    else:
        try:
            module = timm.create_model(name, pretrained=True, **arguments)
        except Exception as error:
            line = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise UserError(f"weights of '{name}' can't be had from the hub: {line}") from None
    data = timm.data.resolve_data_config(model=module)
    mean, std = data["mean"], data["std"]
    if pixels["channels"] == 1 and len(mean) == 3:
        mean, std = (sum(mean) / 3,), (sum(std) / 3,)
    return Loaded(module, tuple(mean), tuple(std))
