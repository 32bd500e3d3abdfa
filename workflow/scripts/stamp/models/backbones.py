"""Pretrained starting points: published networks, their normalisation and their own embedding.

A starting point is named by ``timm`` (a tag; its weights come from the hub) or by where its weights
lie: ``file``, ``url`` or ``hub``; with both, the tag gives the normalisation only. With
``transformers`` it is a network of that package, which is optional.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from stamp.core.errors import UserError, suggest
from stamp.models.architectures import build, known
from stamp.models.hub import FILES
from stamp.models.torchvision_ops import timm
from stamp.models.weights import ORIGINS, State, first_line, fit, hub_record, located, read_state

Numbers = tuple[float, ...]

TRANSFORMERS = {"Dinov2Model": "Dinov2Config", "CLIPVisionModel": "CLIPVisionConfig"}


class Embedding(nn.Module):
    """A timm network without its classifier: pixels to its own pooled embedding."""

    def __init__(self, network: nn.Module):
        super().__init__()
        self.network: Any = network

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.network.forward_head(self.network.forward_features(pixels), pre_logits=True)


class ClassToken(nn.Module):
    """A network of transformers: pixels to the class token after the last norm."""

    def __init__(self, network: Any):
        super().__init__()
        self.network = network
        self.num_prefix_tokens = 1 + getattr(network.config, "num_register_tokens", 0)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.network(pixel_values=pixels).pooler_output


def published(name: str) -> Any:
    """timm's record of an architecture or of one of its tags; None for one that has no record."""
    architecture, _, tag = name.partition(".")
    known(architecture)
    try:
        return timm.get_pretrained_cfg(name)
    except RuntimeError:
        tags = [each.partition(".")[2] for each in timm.list_pretrained(f"{architecture}.*")]
        raise UserError(
            f"unknown weights '{tag}' of '{architecture}': {suggest(tag, tags)}"
        ) from None


def normalisation(settings: Mapping[str, Any], name: str) -> tuple[Numbers, Numbers]:
    """Mean and std: the settings' own, else those that the named weights were trained with."""
    record = None if {"mean", "std"} <= set(settings) else published(name)
    if record is None and not {"mean", "std"} <= set(settings):
        raise UserError(f"architecture '{name}' has no published normalisation: give mean and std")
    mean, std = (
        tuple(float(value) for value in settings.get(key) or getattr(record, key))
        for key in ("mean", "std")
    )
    if len(mean) != len(std):
        raise UserError(f"architecture '{name}': mean has {len(mean)} numbers, std {len(std)}")
    return mean, std


def sized(name: str, arguments: Mapping[str, Any], size: int) -> dict[str, Any]:
    """The arguments with the image size, where an architecture must be told another than its own.

    SAM's is not told: at its own size it resamples its positions to whatever it is given.
    """
    record = published(name)
    fixed = record is not None and record.fixed_input_size and record.input_size[-1] != size
    if not fixed or "img_size" in arguments or name.startswith("samvit"):
        return dict(arguments)
    return {**arguments, "img_size": size}


def in_the_hub(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Where the weights of a tag are, in the words of a ``load`` block.

    ``given`` may have the ``revision`` of the repository and the ``sha256`` of the file.
    """
    record = published(name)
    if record is None or not record.hf_hub_id:
        at = f", published at {record.url}" if record is not None and record.url else ""
        raise UserError(f"weights of '{name}' are not in timm's part of the hub{at}: give url")
    repo, _, revision = record.hf_hub_id.partition("@")
    origin = {"hub": repo, "hub_file": record.hf_hub_filename or FILES}
    own = {key: given[key] for key in ("revision", "sha256") if key in given}
    return {**origin, **({"revision": revision} if revision else {}), **own}


def read_by_timm(name: str, path: Path, arguments: Mapping[str, Any]) -> nn.Module:
    """The network with the weights of a file in any layout that timm has published.

    ``custom_load`` is for files of other frameworks at the tag's URL; in the hub only those that
    are marked "hf" are such.
    """
    overlay = {"file": str(path), "custom_load": published(name).custom_load == "hf"}
    try:
        return timm.create_model(name, pretrained=True, pretrained_cfg_overlay=overlay, **arguments)
    except Exception as error:
        raise UserError(f"{path}: can't be read as weights of '{name}': {_gist(error)}") from None


def _gist(error: BaseException) -> str:
    """What is wrong, without the line that only announces it, of torch's `load_state_dict`."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[1] if len(lines) > 1 and lines[0].endswith(":") else first_line(error)


def from_hub(
    settings: Mapping[str, Any], arguments: Mapping[str, Any], classes: int, channels: int
) -> tuple[nn.Module, dict[str, str]]:
    """The network of a tag (``timm``) with its published weights, and which file of the hub it is.

    A classifier of another width is not read. ``revision`` pins the commit, ``sha256`` the file.
    """
    name = settings["timm"]
    path = located(in_the_hub(name, settings), f"weights of '{name}'")
    common = {"num_classes": classes, "in_chans": channels, **arguments}
    return read_by_timm(name, path, common), hub_record(path)


def converted(state: State, module: nn.Module) -> State:
    """Weights in timm's own layout: other repositories' names, positions of another image size."""
    convert = getattr(sys.modules[type(module).__module__], "checkpoint_filter_fn", None)
    if convert is None:
        return state
    try:
        return convert(state, module)
    except (KeyError, RuntimeError, ValueError, AttributeError):
        return state  # then it is of no layout that timm knows; `fit` says what does not fit


def read_pretrained(
    module: nn.Module, settings: Mapping[str, Any], what: str, head: str
) -> dict[str, str]:
    """Load published weights into a timm network without classifier; those of ``head`` are left.

    What comes back is which file of the hub they are, if they are from there.
    """
    path = located(settings, what)
    state = converted(read_state(path, settings.get("prefix", "")), module)
    fit(module, state, path, allow_extra=lambda name: name.startswith(f"{head}."))
    return hub_record(path)


def _of_a_tag(settings: Mapping[str, Any]) -> bool:
    """Whether weights are those of timm's tag; a revision is then of its repository."""
    elsewhere = [key for key in ORIGINS if key in settings]
    if "revision" in settings and elsewhere and elsewhere != ["hub"]:
        raise UserError(f"revision is of the hub, not of {elsewhere[0]}")
    return "timm" in settings and not elsewhere


def initial_state(
    settings: Mapping[str, Any],
    module: nn.Module,
    name: str,
    arguments: Mapping[str, Any],
    classes: int,
    channels: int,
) -> tuple[State, str, dict[str, str]]:
    """The weights that ``module`` starts from, where they are, and which file of the hub."""
    if _of_a_tag(settings):
        donor, record = from_hub(settings, arguments, classes, channels)
        return dict(donor.state_dict()), f"weights '{settings['timm']}'", record
    path = located(settings, f"architecture '{name}'")
    state = converted(read_state(path, settings.get("prefix", "")), module)
    return state, str(path), hub_record(path)


def embedding(
    settings: Mapping[str, Any], size: int, initial: bool
) -> tuple[nn.Module, dict[str, str]]:
    """The network of a backbone's settings, with its published weights if ``initial``.

    Beside it, which file of the hub the weights are, if they are from there.
    """
    if "transformers" in settings:
        network, record = _of_transformers(settings, initial)
        return ClassToken(network), record
    name = settings["timm"]
    record, architecture = published(name), name.partition(".")[0]
    arguments = sized(name, settings.get("args", {}), size)
    channels = len(normalisation(settings, name)[0])
    if _of_a_tag(settings) and initial:
        module, found = from_hub(settings, arguments, 0, channels)
        return Embedding(module), found
    module, found = build(architecture, arguments, 0, channels, size), {}
    if initial:
        head = str(record.classifier if record else "head").partition(".")[0]
        found = read_pretrained(module, settings, f"backbone '{name}'", head)
    return Embedding(module), found


def _of_transformers(
    settings: Mapping[str, Any], initial: bool
) -> tuple[nn.Module, dict[str, str]]:
    """A network of transformers, which renames the weights of files of its older versions."""
    name = settings["transformers"]
    if name not in TRANSFORMERS:
        raise UserError(f"unknown network '{name}': {suggest(name, TRANSFORMERS)}")
    try:
        import transformers
        from transformers.utils import logging
    except ImportError:
        raise UserError(
            f"backbone '{name}' needs the package transformers: pip install transformers"
        ) from None
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    network = getattr(transformers, name)
    config = getattr(transformers, TRANSFORMERS[name])(**settings.get("config", {}))
    if not initial:
        return network(config), {}
    path = located(settings, f"backbone '{name}'")
    state = read_state(path)
    try:
        module, report = network.from_pretrained(
            None, config=config, state_dict=state, output_loading_info=True
        )
    except (RuntimeError, ValueError) as error:
        raise UserError(f"{path}: does not fit {name}: {first_line(error)}") from None
    if missing := sorted(report["missing_keys"]):
        raise UserError(f"{path}: does not fit {name}: lacks '{missing[0]}'")
    return module.float(), hub_record(path)
