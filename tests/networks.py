"""One small network in every form that a user may bring it in, and the outputs that it has."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch

ARCH = "resnet18"
ARGS = {"layers": [1, 1, 1, 1], "channels": [8, 16, 16, 24]}
MEAN, STD = [0.45], [0.27]
VIT_PROCESSOR = {
    "image_processor_type": "ViTImageProcessor",
    "size": 32,
    "image_mean": [0.4, 0.5, 0.6],
    "image_std": [0.2, 0.3, 0.4],
}


def network(classes: int, size: int) -> Any:
    """The network with numbers as if it had been trained, so that its outputs differ by image."""
    from stamp.models.architectures import build

    torch.manual_seed(5)
    made = build(ARCH, ARGS, classes, 1, size)
    generator = torch.Generator().manual_seed(6)
    made.train()
    with torch.no_grad():
        for _ in range(30):  # running statistics of pictures of several brightnesses
            bright = torch.rand(16, 1, 1, 1, generator=generator)
            made(bright * torch.randn(16, 1, size, size, generator=generator) + bright)
        made.eval().get_classifier().bias.zero_()
        bright = torch.rand(64, 1, 1, 1, generator=generator)
        outputs = made(bright * torch.randn(64, 1, size, size, generator=generator) + bright)
        scale = 1.5 / outputs.std(dim=0)
        made.get_classifier().weight.mul_(scale[:, None])
        made.get_classifier().bias.copy_(-outputs.mean(dim=0) * scale)
    return made.eval()


def write_torchscript(module: torch.nn.Module, path: Path, size: int) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.trace(module, torch.rand(2, 1, size, size)).save(str(path))
    return path


def write_onnx(module: torch.nn.Module, path: Path, size: int, batch: int | None = None) -> Path:
    """An ONNX file for any number of images, or for ``batch`` of them."""
    pixels = torch.rand(batch or 2, 1, size, size)
    shapes = None if batch else ({0: torch.export.Dim("batch")},)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module,
            (pixels,),
            str(path),
            dynamo=True,
            dynamic_shapes=shapes,
            external_data=False,
            verbose=False,
        )
    return path


def write_outputs(path: Path, ids: list[str], values: np.ndarray, classes: list[str]) -> Path:
    """Outputs as a table or an array, by the ending of the path."""
    if path.suffix == ".npy":
        np.save(path, values)
        path.with_suffix(".txt").write_text("\n".join(ids) + "\n")
        return path
    columns = {name: values[:, column] for column, name in enumerate(classes)}
    table = pl.DataFrame({"image": ids, **columns})
    table.write_csv(path) if path.suffix == ".csv" else table.write_parquet(path)
    return path


def vit_files(folder: Path, labels: dict[int, str], seed: int = 0) -> dict[str, bytes]:
    """A small vision transformer of 32 pixels as a repository of the hub holds it."""
    from stamp.models.torchvision_ops import declare_missing

    declare_missing()
    from transformers import ViTConfig, ViTForImageClassification

    torch.manual_seed(seed)
    config = ViTConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        image_size=32, patch_size=8, id2label=labels, initializer_range=0.5,
    )  # fmt: skip
    ViTForImageClassification(config).save_pretrained(folder)
    found = {file.name: file.read_bytes() for file in folder.iterdir()}
    return {**found, "preprocessor_config.json": json.dumps(VIT_PROCESSOR).encode()}
