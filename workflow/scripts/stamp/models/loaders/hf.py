"""Image classifiers of the Hugging Face hub, run by transformers on their processor's pixels.

Three files of one commit make the model: weights (safetensors, or tensors and nothing else), the
configuration, and the processor's settings. Code that a repository brings is never run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from stamp.config.preprocessing import Preprocessing
from stamp.core.errors import UserError
from stamp.models.hub import FILES
from stamp.models.loaded_model import LoadedModel
from stamp.models.loaders.checkpoint import by_name
from stamp.models.torchvision_ops import declare_missing
from stamp.models.weights import first_line, hub_record, located, read_state

CONFIG, PROCESSOR = "config.json", "preprocessor_config.json"
INTERPOLATIONS = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic"}  # Pillow's numbers
SQUEEZED_FROM = 384  # ConvNeXt's processor crops smaller pictures only
# Processors that resize, cut out the centre and normalise, and do nothing else.
FOLLOWED = ("Bit", "CLIP", "ConvNext", "DeiT", "MobileNetV1", "MobileNetV2", "ViT")


class Logits(nn.Module):
    """A classifier of transformers as a module from pixels to logits."""

    def __init__(self, network: Any):
        super().__init__()
        self.network = network

    def get_classifier(self) -> nn.Module:
        last = [one for one in self.network.modules() if isinstance(one, nn.Linear)][-1:]
        if not last or last[0].out_features != self.network.config.num_labels:
            raise UserError(f"{type(self.network).__name__}: no linear layer gives its logits")
        return last[0]

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.network(pixel_values=pixels).logits


@dataclass(frozen=True, slots=True)
class Pixels:
    """What a processor makes of an image: the shorter side, or both, then the centre, then this."""

    size: int
    shorter: int | None  # before the centre crop; None where the picture is squeezed
    interpolation: str
    mean: tuple[float, ...]
    std: tuple[float, ...]

    @property
    def settings(self) -> dict[str, Any]:
        """The keys of ``preprocessing`` that ask for these pixels."""
        made = {"size": self.size, "channels": 3, "interpolation": self.interpolation}
        return made if self.shorter is None else {**made, "crop": self.size / self.shorter}

    def made_by(self, given: Preprocessing) -> bool:
        """Whether a preprocessing makes these pixels."""
        crop = given.crop
        shorter = None if crop is None else int(given.size / crop + 1e-9)
        found = (given.size, given.channels, given.interpolation, shorter)
        return found == (self.size, 3, self.interpolation, self.shorter)


def load(block: Mapping[str, Any], classes: Sequence[str], weights: Path | None) -> LoadedModel:
    """The classifier of a repository with its outputs in the order of the study's classes."""
    repo, what = block["hub"], f"'{block['hub']}'"
    origin = {key: block[key] for key in ("hub", "revision") if key in block}
    path = located({**origin, "hub_file": FILES}, what)
    commit = {"hub": repo, "revision": hub_record(path)["revision"]}
    config, processor = (
        _read(located({**commit, "hub_file": name}, what)) for name in (CONFIG, PROCESSOR)
    )
    pixels = processed(processor, what)
    if not pixels.made_by(Preprocessing(**block["preprocessing"])):
        right = ", ".join(f"{key}: {value}" for key, value in pixels.settings.items())
        raise UserError(f"{what}: its processor makes other pixels: preprocessing: {{{right}}}")
    network = _network(config, path, what)
    names = network.config.id2label
    outputs = [str(names[number]) for number in range(len(names))]
    renamed = block.get("labels", {})
    if unknown := [name for name in renamed if name not in outputs]:
        raise UserError(f"{what}: labels: it has no output '{unknown[0]}'")
    outputs = [renamed.get(name, name) for name in outputs]
    module, missing = by_name(Logits(network), outputs, classes, f"{what}: id2label")
    return LoadedModel(module, pixels.mean, pixels.std, missing, origin=hub_record(path))


def published(hub: str, revision: str | None) -> tuple[Pixels, str]:
    """The pixels that a repository's processor makes, and the commit that says so."""
    what, pinned = f"'{hub}'", {"revision": revision} if revision else {}
    file = located({"hub": hub, **pinned, "hub_file": PROCESSOR}, what)
    return processed(_read(file), what), hub_record(file)["revision"]


def _read(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text()))
    except (ValueError, TypeError):
        raise UserError(f"{path}: is no JSON object") from None


def processed(given: Mapping[str, Any], what: str) -> Pixels:
    """The pixels that an image processor makes; keys that its file lacks are its class's."""
    name = str(given.get("image_processor_type", given.get("feature_extractor_type")))
    kind = name.removesuffix("Fast").removesuffix("ImageProcessor").removesuffix("FeatureExtractor")
    if kind not in FOLLOWED:
        known = ", ".join(f"{one}ImageProcessor" for one in FOLLOWED)
        raise UserError(f"{what}: its processor '{name}' can't be followed, only {known}")
    own = {key: value for key, value in given.items() if not key.endswith("_type")}
    settings = getattr(_transformers(what), f"{kind}ImageProcessor")(**own).to_dict()
    size, cut = settings["size"], settings.get("crop_size")
    side, shorter = size.get("height"), size.get("shortest_edge")
    if kind == "ConvNext":
        side = shorter
        shorter = int(side / settings["crop_pct"]) if side < SQUEEZED_FROM else None
    elif settings.get("do_center_crop"):
        square = cut["height"] == cut["width"] and side in (None, cut["height"])
        side = cut["height"] if square else None
    elif shorter is not None or side != size["width"]:
        side = None
    steps = all(settings[step] for step in ("do_resize", "do_rescale", "do_normalize"))
    if not steps or side is None or abs(255 * settings["rescale_factor"] - 1) > 1e-6:
        raise UserError(f"{what}: its processor makes no square pictures on [0, 1]: {PROCESSOR}")
    mean, std = (tuple(map(float, settings[key])) for key in ("image_mean", "image_std"))
    return Pixels(side, shorter, INTERPOLATIONS[int(settings["resample"])], mean, std)


def _transformers(what: str) -> Any:
    """The package, quiet."""
    declare_missing()
    try:
        import transformers
        from transformers.utils import logging
    except ImportError:
        raise UserError(
            f"{what} needs the package transformers: pip install transformers"
        ) from None
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    return transformers


def _network(config: dict[str, Any], path: Path, what: str) -> Any:
    """The network of a configuration with the weights of a file."""
    package = _transformers(what)
    kind, state = config.pop("model_type", ""), read_state(path)
    try:
        made = package.AutoConfig.for_model(kind, **config)
        with torch.device("meta"):  # just for its class, which depends on more than the type
            network = type(package.AutoModelForImageClassification.from_config(made))
        module, report = network.from_pretrained(
            None, config=made, state_dict=state, output_loading_info=True
        )
    except (RuntimeError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{what}: is no image classifier: {first_line(error)}") from None
    for problem in ("missing_keys", "mismatched_keys"):
        if found := sorted(map(str, report[problem])):
            raise UserError(f"{path}: does not fit '{kind}': {found[0]}")
    return module.float().eval()
