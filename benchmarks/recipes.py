"""Zoos large enough to tell: recipes of small networks, drawn by a seed and by nothing else.

    python -m benchmarks.recipes

writes ``config/zoo/digits_large.yaml`` and ``config/zoo/phantom_large.yaml``. A recipe is an
architecture with a width, a share of the training images, a number of epochs, and whether and how
much it has of augmentation, label noise, weight decay, dropout and mixup. All are drawn
independently; no recipe was kept or dropped by its score or its accuracy.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import ROOT

MODELS = 120
WIDTHS = (0.5, 1.0, 2.0)
FRACTIONS = (1.0, 1.0, 0.5, 0.25, 0.1)
EPOCHS = (1, 2, 3, 5, 5, 8)
MOST_EPOCHS = 30  # of a small share of the images, which is seen as often as the whole
AUGMENTED = (False, True)
LABEL_NOISE = {"digits": (0.0, 0.0, 0.2, 0.4), "phantom": (0.0, 0.0, 0.08, 0.15)}
WEIGHT_DECAY = (0.0, 0.02, 0.1)
DROPOUT = (0.0, 0.0, 0.2, 0.4)
MIXUP = (0.0, 0.0, 0.2)
SIZES = {"digits": 32, "phantom": 48}


@dataclass(frozen=True, slots=True)
class Architecture:
    """A kind of network: its family, its name in timm, and its arguments at a width and size."""

    label: str
    family: str
    name: str
    arguments: Callable[[float, int], dict[str, Any]]
    learning_rate: float | None = None
    dropout: bool = True


def _wide(numbers: list[int], width: float) -> list[int]:
    return [round(number * width) for number in numbers]


def _resnet(width: float, size: int) -> dict[str, Any]:
    widths = _wide([8, 16, 32, 64], width)
    return {"layers": [1, 1, 1, 1], "channels": widths, "stem_type": "deep", "stem_width": 8}


def _squeezed_resnet(width: float, size: int) -> dict[str, Any]:
    return {**_resnet(width, size), "block_args": {"attn_layer": "se"}}


def _densenet(width: float, size: int) -> dict[str, Any]:
    return {"growth_rate": round(8 * width), "block_config": [2, 3, 3]}


def _convnext(width: float, size: int) -> dict[str, Any]:
    return {"depths": [1, 1, 2, 1], "dims": _wide([16, 32, 48, 64], width), "patch_size": 4}


def _vit(width: float, size: int) -> dict[str, Any]:
    patches = {"img_size": size, "patch_size": size // 6 if size == 48 else 4}
    return {**patches, "embed_dim": round(48 * width), "depth": 3, "num_heads": 3}


def _mixer(width: float, size: int) -> dict[str, Any]:
    patches = {"img_size": size, "patch_size": size // 6 if size == 48 else 4}
    return {**patches, "embed_dim": round(48 * width), "num_blocks": 3}


def _poolformer(width: float, size: int) -> dict[str, Any]:
    return {"depths": [1, 1, 2, 1], "dims": _wide([16, 32, 48, 64], width)}


def _linear(width: float, size: int) -> dict[str, Any]:
    return {}


ARCHITECTURES = (
    Architecture("ResNet", "CNN", "resnet18", _resnet),
    Architecture("SE-ResNet", "CNN", "resnet18", _squeezed_resnet),
    Architecture("DenseNet", "CNN", "densenet121", _densenet),
    Architecture("ConvNeXt", "CNN", "convnext_atto", _convnext),
    Architecture("ViT", "ViT", "vit_tiny_patch16_224", _vit, 0.002),
    Architecture("MLP-Mixer", "MLP", "mlp_mixer:MlpMixer", _mixer, 0.002),
    Architecture("PoolFormer", "MetaFormer", "metaformer:MetaFormer", _poolformer),
    Architecture("Linear", "Linear", "linear", _linear, dropout=False),
)


def recipe(study: str, rng: np.random.Generator) -> dict[str, Any]:
    """One entry of a zoo, every part of it drawn by itself."""

    def one_of(values: tuple[Any, ...]) -> Any:
        return values[rng.integers(len(values))]

    kind: Architecture = one_of(ARCHITECTURES)
    width, fraction, epochs = one_of(WIDTHS), one_of(FRACTIONS), one_of(EPOCHS)
    augmented, noise = one_of(AUGMENTED), one_of(LABEL_NOISE[study])
    decay, dropout, mixup = one_of(WEIGHT_DECAY), one_of(DROPOUT), one_of(MIXUP)
    dropout = dropout if kind.dropout else 0.0
    arguments = kind.arguments(width, SIZES[study])
    load: dict[str, Any] = {
        "source": "train",
        "arch": kind.name,
        "arch_args": {**arguments, "drop_rate": dropout} if dropout else arguments,
        "epochs": min(MOST_EPOCHS, round(epochs / fraction)),
        "fraction": fraction,
        "augment": augmented,
        "label_noise": noise,
        "weight_decay": decay,
        "mixup": mixup,
    }
    if kind.learning_rate:
        load["learning_rate"] = kind.learning_rate
    parts = {
        "augmented": augmented, "noisy labels": noise, "small data": fraction < 1,
        "mixup": mixup, "stopped early": epochs < 3,
    }  # fmt: skip
    return {
        "label": kind.label,
        "family": kind.family,
        "objective": "supervised",
        "regime": ", ".join(name for name, has in parts.items() if has) or "plain",
        "trained_on": ["train"],
        "load": load,
    }


def zoo(study: str, models: int = MODELS, seed: int = 0) -> dict[str, dict[str, Any]]:
    """The models of a study by key; the first ones are the same however many are asked for."""
    rng = np.random.default_rng([seed, SIZES[study]])
    found: dict[str, dict[str, Any]] = {}
    for number in range(1, models + 1):
        entry = recipe(study, rng)
        key = f"{entry['label'].lower()}-{number:03d}"
        found[key] = {**entry, "label": f"{entry['label']} {number}"}
    return found


def text(study: str, models: int, seed: int) -> str:
    """The zoo as YAML, one line per model: JSON is YAML, and its lines compare well."""
    lines = [
        "# yaml-language-server: $schema=../../workflow/schemas/zoo.schema.json",
        f"# Written by `python -m benchmarks.recipes --models {models} --seed {seed}`.",
        "# Every recipe is drawn at random; none was chosen by its score.",
        *(f"{key}: {json.dumps(entry)}" for key, entry in zoo(study, models, seed).items()),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the zoo of each study."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, default=MODELS, help=f"per study (default: {MODELS})")
    parser.add_argument("--seed", type=int, default=0, help="of the recipes (default: 0)")
    parser.add_argument("--into", type=Path, default=ROOT / "config" / "zoo")
    given = parser.parse_args()
    for study in SIZES:
        file = given.into / f"{study}_large.yaml"
        file.write_text(text(study, given.models, given.seed))
        print(file)


if __name__ == "__main__":
    main()
