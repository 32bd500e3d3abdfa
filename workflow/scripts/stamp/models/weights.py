"""Weights files: safetensors, or a plain state dict; nothing that could carry code is unpickled."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from stamp.errors import UserError
from stamp.io import whole


def read_weights(module: nn.Module, path: Path) -> None:
    """Load a weights file into ``module``; every parameter must be there and fit."""
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            state: Any = load_file(path)
        else:
            state = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise UserError(f"{path}: no such weights file") from None
    except pickle.UnpicklingError:
        raise UserError(
            f"{path}: holds more than weights and was refused; use safetensors"
        ) from None
    except Exception as error:
        raise UserError(f"{path}: can't be read as weights: {str(error).splitlines()[0]}") from None
    if isinstance(state, Mapping) and isinstance(state.get("state_dict"), Mapping):
        state = state["state_dict"]
    try:
        module.load_state_dict(state)
    except (RuntimeError, TypeError, AttributeError) as error:
        line = " ".join(str(error).split())[:240]
        raise UserError(f"{path}: does not fit the architecture: {line}") from None


def write_weights(module: nn.Module, path: Path, provenance: Mapping[str, Any]) -> None:
    """Write a module's state as safetensors with its provenance."""
    from safetensors.torch import save_file

    state = {name: tensor.contiguous() for name, tensor in module.state_dict().items()}
    with whole(path) as part:
        save_file(state, part, metadata={key: str(value) for key, value in provenance.items()})
