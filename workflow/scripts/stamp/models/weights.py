"""Weights files: safetensors, or a plain state dict; nothing that could carry code is unpickled."""

from __future__ import annotations

import hashlib
import pickle
import re
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import torch
from torch import nn

from stamp.errors import UserError, suggest
from stamp.io import whole

State = dict[str, torch.Tensor]
Allowed = Callable[[str], bool]

NESTED = ("state_dict", "model")  # where training scripts keep the weights among other things
ORIGINS = ("file", "url", "hub")


def first_line(error: BaseException) -> str:
    """The first line of an error's text, or its kind."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def refused(path: Path, error: pickle.UnpicklingError) -> UserError:
    """What is said of a pickle that asks for more than weights, by the name it asks for."""
    name = re.search(r"GLOBAL ([\w.]+)", str(error))
    if name is None:
        return UserError(f"{path}: can't be read as weights and nothing else; use safetensors")
    return UserError(
        f"{path}: holds more than weights and was refused (it asks for '{name.group(1)}'); "
        "use safetensors"
    )


def read_state(path: Path, prefix: str = "") -> State:
    """The tensors of a weights file by name; with ``prefix``, those under it, without it."""
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            state: Any = load_file(path)
        else:
            state = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise UserError(f"{path}: no such weights file") from None
    except pickle.UnpicklingError as error:
        raise refused(path, error) from None
    except Exception as error:
        raise UserError(f"{path}: can't be read as weights: {first_line(error)}") from None
    return plain(state, path, prefix)


def plain(state: Any, path: Path, prefix: str = "") -> State:
    """The tensors in what a file held, wherever a training script put them."""
    for key in NESTED:
        if isinstance(state, Mapping) and isinstance(state.get(key), Mapping):
            state = state[key]
    if not isinstance(state, Mapping):
        raise UserError(f"{path}: holds no named weights, but a {type(state).__name__}")
    tensors = {
        str(name)[len(prefix) :]: value
        for name, value in state.items()
        if isinstance(value, torch.Tensor) and str(name).startswith(prefix)
    }
    if not tensors and prefix:
        starts = {f"{str(name).partition('.')[0]}." for name in state}
        raise UserError(
            f"{path}: no weight's name starts with '{prefix}': {suggest(prefix, starts)}"
        )
    return tensors


def _never(name: str) -> bool:
    return False


def fit(
    module: nn.Module,
    state: Mapping[str, torch.Tensor],
    where: str | Path,
    allow_missing: Allowed = _never,
    allow_extra: Allowed = _never,
) -> None:
    """Load tensors into ``module``; all must be there and fit, but for names that are allowed."""
    own = module.state_dict()
    missing = [name for name in own if name not in state and not allow_missing(name)]
    extra = [name for name in state if name not in own and not allow_extra(name)]
    shapes = [name for name in state if name in own and state[name].shape != own[name].shape]
    for names, verb in ((missing, "lacks"), (extra, "has an unknown")):
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            raise UserError(f"{where}: does not fit the architecture: {verb} '{names[0]}'{more}")
    if shapes:
        found, wanted = (list(each[shapes[0]].shape) for each in (state, own))
        raise UserError(
            f"{where}: does not fit the architecture: '{shapes[0]}' is {found}, not {wanted}"
        )
    module.load_state_dict({name: state[name] for name in own if name in state}, strict=False)


def read_weights(
    module: nn.Module,
    path: Path,
    prefix: str = "",
    allow_missing: Allowed = _never,
    allow_extra: Allowed = _never,
) -> None:
    """Load a weights file into ``module``; every parameter must be there and fit.

    ``prefix`` takes the part of the file under that name; ``allow_missing`` and ``allow_extra`` say
    which names of the module may be absent, and which of the file the module may lack.
    """
    fit(module, read_state(path, prefix), path, allow_missing, allow_extra)


def located(origin: Mapping[str, Any], what: str) -> Path:
    """The local file of ``file``, ``url`` or ``hub`` (and its ``hub_file``), its digest checked."""
    given = [key for key in ORIGINS if key in origin]
    if len(given) != 1:
        raise UserError(
            f"{what}: its weights come from one of {', '.join(ORIGINS)}; "
            f"{' and '.join(given) or 'none'} is given"
        )
    if given == ["url"]:
        return _downloaded(origin["url"], origin.get("sha256"))
    path = Path(origin["file"]) if given == ["file"] else _from_hub(origin, what)
    if not path.is_file():
        raise UserError(f"{path}: no such weights file")
    if "sha256" in origin:
        _check_digest(path, origin["sha256"])
    return path


def _downloaded(url: str, sha256: str | None) -> Path:
    """A file from a URL, kept beside torch's own downloads."""
    download = import_module("stamp.download")  # by name: how a file travels decides no number
    name = Path(urlsplit(url).path).name or "weights"
    folder = Path(torch.hub.get_dir()) / "stamp" / hashlib.sha256(url.encode()).hexdigest()[:12]
    return download.fetch(download.Remote(url, name, sha256=sha256), folder)


def _from_hub(origin: Mapping[str, Any], what: str) -> Path:
    from huggingface_hub import hf_hub_download

    name = origin.get("hub_file", "model.safetensors")
    try:
        return Path(hf_hub_download(origin["hub"], name, revision=origin.get("revision")))
    except Exception as error:
        raise UserError(
            f"{what}: '{name}' of '{origin['hub']}' can't be had from the hub: {first_line(error)}"
        ) from None


def _check_digest(path: Path, expected: str) -> None:
    with open(path, "rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != expected:
        raise UserError(f"{path}: its sha256 is {found}, but {expected} is expected")


def write_weights(module: nn.Module, path: Path, provenance: Mapping[str, Any]) -> None:
    """Write a module's state as safetensors with its provenance."""
    from safetensors.torch import save_file

    state = {name: tensor.contiguous() for name, tensor in module.state_dict().items()}
    with whole(path) as part:
        save_file(state, part, metadata={key: str(value) for key, value in provenance.items()})
