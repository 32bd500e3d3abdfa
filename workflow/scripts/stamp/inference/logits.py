"""One forward pass per image and model: pixels in, a file of raw logits out.

Logits are written batch by batch, so peak memory does not grow with the number of images.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch

from stamp.config.model_sources import SOURCES, versions
from stamp.core.array_writer import RowWriter
from stamp.core.artifacts import atomic_write, ids_digest
from stamp.core.errors import UserError
from stamp.core.progress import bar
from stamp.images.pixels import PixelCache
from stamp.models.hub import unpinned
from stamp.models.loaded import Loaded

BATCH = 128


def load_model(block: Mapping[str, Any], classes: Sequence[str], weights: Path | None) -> Loaded:
    """The model of a ``load`` block, by the loader that its ``source`` names.

    Weights of the hub that no commit pins may be others tomorrow: a line says which these are.
    """
    loader = importlib.import_module(SOURCES[block["source"]].module)
    loaded: Loaded = loader.load(block, classes, weights)
    if loaded.origin and unpinned(block):
        repo, commit = loaded.origin["hub"], loaded.origin["revision"]
        print(f"weights of '{repo}' are of commit {commit}, which nothing pins", file=sys.stderr)
    return loaded


def load_named(
    model: str, block: Mapping[str, Any], classes: Sequence[str], weights: Path | None
) -> Loaded:
    """The model of a ``load`` block; a mistake in it names the model."""
    try:
        return load_model(block, classes, weights)
    except UserError as mistake:
        raise UserError(f"model '{model}': {mistake}") from None


def batches(cache: PixelCache, size: int, device: str) -> Iterator[torch.Tensor]:
    """uint8 batches [n, h, w, c] in order; on CUDA the next is read and pinned meanwhile.

    On the CPU the system reads ahead by itself, and a thread would take time from the model.
    """
    starts = range(0, len(cache), size)
    if device != "cuda":
        for start in starts:
            yield torch.from_numpy(cache.rows(start, start + size))
        return

    def read(start: int) -> torch.Tensor:
        return torch.from_numpy(cache.rows(start, start + size)).pin_memory()

    with ThreadPoolExecutor(1) as ahead:
        pending = ahead.submit(read, starts[0])
        for following in [*starts[1:], None]:
            current = pending.result()
            if following is not None:
                pending = ahead.submit(read, following)
            yield current


class Forward:
    """A model on its device, from uint8 batches to float32 logits."""

    def __init__(self, loaded: Loaded, device: str):
        if device == "cuda" and not torch.cuda.is_available():
            raise UserError("device 'cuda' was asked for, but torch finds no CUDA device")
        self.device = device
        network: Any = loaded.module.eval()
        self.module = network.to(device, memory_format=torch.channels_last)
        std = torch.tensor(loaded.std, device=device)[:, None, None]
        mean = torch.tensor(loaded.mean, device=device)[:, None, None]
        self.scale, self.offset = 1 / (255 * std), -mean / std

    def spread(self, pixels: torch.Tensor) -> torch.Tensor:
        """Gray pixels on as many channels as the model has."""
        channels = len(self.scale)
        if pixels.shape[1] == channels:
            return pixels
        every = pixels.expand(-1, channels, -1, -1)
        return every.contiguous(memory_format=torch.channels_last)

    def normalised(self, batch: torch.Tensor) -> torch.Tensor:
        """A uint8 batch [n, h, w, c] as the model's own input [n, c, h, w]."""
        pixels = batch.to(self.device, non_blocking=True).permute(0, 3, 1, 2)
        # uint8 rows are already laid out channels-last; the arithmetic keeps that layout
        return self.spread(pixels.to(torch.float32)).mul_(self.scale).add_(self.offset)

    @torch.inference_mode()
    def __call__(self, batch: torch.Tensor) -> np.ndarray:
        half = (
            torch.autocast("cuda", dtype=torch.float16) if self.device == "cuda" else nullcontext()
        )
        with half:
            return self.module(self.normalised(batch)).float().cpu().numpy()


def check_outputs(
    logits: np.ndarray, classes: int, model: str, missing: Sequence[int] = ()
) -> None:
    """Refuse outputs of the wrong width or that are not finite, but for classes it has not."""
    if logits.ndim != 2 or logits.shape[1] != classes:
        raise UserError(
            f"model '{model}': outputs have shape {list(logits.shape[1:])}, "
            f"but the study has {classes} classes"
        )
    present = np.delete(logits, list(missing), axis=1) if missing else logits
    if not np.isfinite(present).all():
        raise UserError(f"model '{model}': outputs are not finite (NaN or infinite)")


def extract(
    target: Path,
    cache: PixelCache,
    ids: Sequence[str],
    loaded: Loaded,
    classes: Sequence[str],
    device: str,
    metadata: Mapping[str, Any],
    batch: int = BATCH,
    threads: int | None = None,
) -> None:
    """Run ``loaded`` over a view's pixels and write its logits to ``target``."""
    if threads is not None:
        torch.set_num_threads(threads)
    forward = Forward(loaded, device)
    model = str(metadata["model"])
    card = {
        **metadata,
        "ids": ids_digest(ids),
        "parameters": loaded.parameters,
        "images": len(ids),
        "device": device,
        **{f"weights_{key}": value for key, value in loaded.origin.items()},
    }
    with atomic_write(target) as part:
        writer = RowWriter(part, "logits", (len(ids), len(classes)), card)
        with bar(None, f"{model} {metadata['view']}", len(ids)) as shown:
            for images in batches(cache, batch, device):
                logits = forward(images)
                check_outputs(logits, len(classes), model, loaded.missing)
                if loaded.missing:
                    logits[:, list(loaded.missing)] = np.nan
                writer.append(logits)
                shown.update(len(logits))
        writer.close()


def card(model: str, view: str, source: str) -> dict[str, str]:
    """The metadata of a model's logits on a view."""
    return {"model": model, "view": view, **versions(source)}
