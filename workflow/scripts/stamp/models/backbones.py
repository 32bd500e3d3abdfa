"""Pretrained starting points: published networks, their normalisation and their own embedding.

A starting point is named by ``timm`` (a tag; its weights come from the hub) or by where its weights
lie: ``file``, ``url`` or ``hub``; with both, the tag gives the normalisation only. With
``transformers`` it is a network of that package, which is optional.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from stamp.errors import UserError, suggest
from stamp.models.architectures import build, known
from stamp.models.torchvision_ops import timm
from stamp.models.weights import (
    ORIGINS,
    State,
    TransferError,
    absent,
    first_line,
    fit,
    hub_failure,
    located,
    read_state,
    retried,
)

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


def from_hub(name: str, arguments: Mapping[str, Any], classes: int, channels: int) -> nn.Module:
    """A timm network with its published weights, but for a classifier of another width."""
    published(name)
    common = {"num_classes": classes, "in_chans": channels, **arguments}

    def create() -> nn.Module:
        try:
            return timm.create_model(name, pretrained=True, **common)
        except Exception as error:
            # a busy hub too makes timm go on to ask for a file of another name
            raise TransferError(hub_failure(error)) if absent(error) else error from None

    try:
        return retried(create)
    except Exception as error:
        raise UserError(
            f"weights of '{name}' can't be had from the hub: {hub_failure(error)}"
        ) from None


def converted(state: State, module: nn.Module) -> State:
    """Weights in timm's own layout: other repositories' names, positions of another image size."""
    convert = getattr(sys.modules[type(module).__module__], "checkpoint_filter_fn", None)
    if convert is None:
        return state
    try:
        return convert(state, module)
    except (KeyError, RuntimeError, ValueError, AttributeError):
        return state  # then it is of no layout that timm knows; `fit` says what does not fit


def read_pretrained(module: nn.Module, settings: Mapping[str, Any], what: str, head: str) -> None:
    """Load published weights into a timm network without classifier; those of ``head`` are left."""
    path = located(settings, what)
    state = converted(read_state(path, settings.get("prefix", "")), module)
    fit(module, state, path, allow_extra=lambda name: name.startswith(f"{head}."))


def initial_state(
    settings: Mapping[str, Any],
    module: nn.Module,
    name: str,
    arguments: Mapping[str, Any],
    classes: int,
    channels: int,
) -> tuple[State, str]:
    """The weights that ``module`` starts from, and where they are from."""
    if "timm" in settings and not any(key in settings for key in ORIGINS):
        tag = settings["timm"]
        donor = from_hub(tag, arguments, classes, channels)
        return dict(donor.state_dict()), f"weights '{tag}'"
    path = located(settings, f"architecture '{name}'")
    return converted(read_state(path, settings.get("prefix", "")), module), str(path)


def embedding(settings: Mapping[str, Any], size: int, initial: bool) -> nn.Module:
    """The network of a backbone's settings, with its published weights if ``initial``."""
    if "transformers" in settings:
        return ClassToken(_of_transformers(settings, initial))
    name = settings["timm"]
    record, architecture = published(name), name.partition(".")[0]
    arguments = sized(name, settings.get("args", {}), size)
    channels = len(normalisation(settings, name)[0])
    if initial and not any(key in settings for key in ORIGINS):
        return Embedding(from_hub(name, arguments, 0, channels))
    module = build(architecture, arguments, 0, channels, size)
    if initial:
        head = str(record.classifier if record else "head").partition(".")[0]
        read_pretrained(module, settings, f"backbone '{name}'", head)
    return Embedding(module)


def _of_transformers(settings: Mapping[str, Any], initial: bool) -> nn.Module:
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
        return network(config)
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
    return module.float()
