"""A Python function of the user's that makes a model; only where the configuration allows code.

``module:function`` is called with the block's ``args``, and with ``weights``, the path of its
``file``, if it has one. It gives back a torch module, or any function, from normalised pixels
[n, channels, h, w] to outputs [n, classes]. Of a module with timm's names, features are available
too.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from stamp.core.errors import UserError, suggest
from stamp.models.loaded_model import LoadedModel
from stamp.models.loaders.black_box import BlackBoxModule, finished
from stamp.models.weights import first_line

# Code that ends the process would end the job, without its output and as if nothing were wrong.
FAILURES = (Exception, SystemExit)


def load(block: Mapping[str, Any], classes: Sequence[str], weights: Path | None) -> LoadedModel:
    """What the function makes, its outputs in the order of the study's classes."""
    name = block["function"]
    if "code" not in block:  # planning puts its digest there, once it is allowed
        raise UserError(
            f"function '{name}': code is run only with `allow_code: true` in config.yaml"
        )
    arguments = dict(block.get("args", {}))
    if "file" in block:
        arguments["weights"] = weights or Path(block["file"])
    try:
        made = found(name)(**arguments)
    except UserError:
        raise
    except FAILURES as error:
        line = f"{type(error).__name__}: {first_line(error)}"
        raise UserError(f"function '{name}' failed: {line}") from error
    if not callable(made):
        raise UserError(f"function '{name}' gives a {type(made).__name__}, which can't be called")
    module = made if hasattr(made, "get_classifier") else _black_box(made, name)
    if isinstance(made, nn.Module):
        made.eval()
    return finished(module, block, classes, f"function '{name}'")


def _black_box(made: Any, name: str) -> BlackBoxModule:
    """What a function made, as a module that says in one line what went wrong inside it."""

    def run(pixels: torch.Tensor) -> Any:
        try:
            return made(pixels)
        except UserError:
            raise
        except FAILURES as error:
            line = f"{type(error).__name__}: {first_line(error)}"
            shape = list(pixels.shape)
            raise UserError(
                f"what function '{name}' makes fails on pixels of shape {shape}: {line}"
            ) from error

    module = BlackBoxModule(run, f"what '{name}' makes")
    if isinstance(made, nn.Module):
        module.add_module("made", made)  # so that its parameters move and count
    return module


def found(name: str) -> Any:
    """The function of ``module:function``, the folder of the run being searched first."""
    module, _, function = name.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        imported = importlib.import_module(module)
    except FAILURES as error:
        line = f"{type(error).__name__}: {first_line(error)}"
        raise UserError(f"function '{name}': '{module}' can't be imported: {line}") from error
    if not callable(getattr(imported, function, None)):
        names = [key for key, value in vars(imported).items() if callable(value)]
        raise UserError(f"{module} has no function '{function}': {suggest(function, names)}")
    return getattr(imported, function)
