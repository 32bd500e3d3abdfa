"""TorchScript files: a network with its code, as ``torch.jit.save`` writes it.

Such a file is a program in a small language that can't open files or import modules, but it is one:
run only those that you trust.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from stamp.core.errors import UserError
from stamp.models.loaded_model import LoadedModel
from stamp.models.loaders.black_box import BlackBoxModule, finished
from stamp.models.weights import first_line


def load(block: Mapping[str, Any], classes: Sequence[str], weights: Path | None) -> LoadedModel:
    """The network of a TorchScript file, its outputs in the order of the study's classes."""
    path = weights or Path(block["file"])
    with warnings.catch_warnings():
        # torch asks those who write such files to write others; who has one still has it
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            network = torch.jit.load(str(path), map_location="cpu").eval()
        except (RuntimeError, ValueError, OSError) as error:
            # torch goes on about what may have happened to the file
            line = first_line(error).partition(". ")[0]
            if "constants.pkl" in line:  # which torch.jit.save writes and torch.save does not
                line = "it holds weights and no program, so source: checkpoint with its arch"
            raise UserError(f"{path}: can't be read as TorchScript: {line}") from None

    def run(pixels: torch.Tensor) -> Any:
        try:
            return network(pixels)
        except (RuntimeError, torch.jit.Error) as error:
            shape = list(pixels.shape[1:])
            raise UserError(
                f"{path}: fails on pixels of shape {shape}: {_last_line(error)}"
            ) from None

    module = BlackBoxModule(run, f"the TorchScript file '{path.name}'")
    module.add_module("script", network)  # so that its parameters move and count
    return finished(module, block, classes, str(path))


def _last_line(error: BaseException) -> str:
    """What went wrong: torch prints the program's own stack before it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1].removeprefix("RuntimeError: ") if lines else type(error).__name__
