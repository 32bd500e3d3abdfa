"""One forward pass per image and model: pixels in, a file of raw logits out.

Logits are written batch by batch, so peak memory does not grow with the number of images.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch

from stamp.config.registries.model_sources import versions
from stamp.core.array_writer import RowWriter
from stamp.core.artifacts import atomic_write, ids_digest
from stamp.core.device import claim
from stamp.core.errors import UserError
from stamp.core.progress import bar
from stamp.images.prefetch import ahead_on, pinned, prefetched
from stamp.images.view_pixels import Pixels
from stamp.inference.batch_size import InPieces
from stamp.models.loaded_model import LoadedModel

BATCH = 128
PIXELS = 2**20  # of the images that a CPU runs a model on at a time, so that its caches hold them


@dataclass(frozen=True, slots=True)
class Execution:
    """Where a model is run, with how many threads, and how many images at a time.

    ``numerics`` are switches that change numbers (``tf32``, ``cudnn_benchmark``, ``compile``); one
    that is not there is off.
    """

    device: str
    threads: int | None = None
    batch: int = BATCH
    numerics: Mapping[str, bool] = field(default_factory=dict)

    @classmethod
    def of_job(cls, job: Any) -> Execution:
        """That of a job, whose GPU is claimed here if it has one."""
        device = claim(job.resources)
        return cls(device, job.threads, job.params.batch, job.params.numerics)

    def prepare(self) -> None:
        """Set torch up: threads, and what CUDA may do to be faster."""
        if self.threads is not None:
            torch.set_num_threads(self.threads)
        allowed = self.numerics.get("tf32", False)
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allowed
        torch.backends.cudnn.benchmark = self.numerics.get("cudnn_benchmark", False)

    @property
    def card(self) -> dict[str, str]:
        """What the metadata of outputs say of it, where it is not as always."""
        return {"numerics": " ".join(sorted(self.numerics))} if self.numerics else {}


def batches(cache: Pixels, size: int, device: str) -> Iterator[torch.Tensor]:
    """uint8 batches [n, h, w, c] in order; on CUDA the next ones are read and pinned meanwhile."""

    def read(start: int) -> torch.Tensor:
        return pinned(torch.from_numpy(cache.rows(start, start + size)), device)

    return prefetched(read, range(0, len(cache), size), ahead_on(device))


class Forward:
    """A model on its device, from uint8 batches to float32 logits."""

    def __init__(self, loaded: LoadedModel, device: str, compiled: bool = False):
        if device == "cuda" and not torch.cuda.is_available():
            raise UserError("device 'cuda' was asked for, but torch finds no CUDA device")
        self.device = device
        network: Any = loaded.module.eval()
        self.module = network.to(device, memory_format=torch.channels_last)
        self.network = torch.compile(self.module) if compiled else self.module
        std = torch.tensor(loaded.std, device=device)[:, None, None]
        mean = torch.tensor(loaded.mean, device=device)[:, None, None]
        self.scale, self.offset = 1 / (255 * std), -mean / std

    def spread(self, pixels: torch.Tensor) -> torch.Tensor:
        """Gray pixels repeated on as many channels as the model has."""
        channels = len(self.scale)
        if pixels.shape[1] == channels:
            return pixels
        every = pixels.expand(-1, channels, -1, -1)
        return every.contiguous(memory_format=torch.channels_last)

    def normalised(self, batch: torch.Tensor) -> torch.Tensor:
        """A uint8 batch [n, h, w, c] as the model's normalised input [n, c, h, w]."""
        pixels = batch.to(self.device, non_blocking=True).permute(0, 3, 1, 2)
        # uint8 rows are already laid out channels-last; the arithmetic keeps that layout
        return self.spread(pixels.to(torch.float32)).mul_(self.scale).add_(self.offset)

    @torch.inference_mode()
    def __call__(self, batch: torch.Tensor) -> np.ndarray:
        half = (
            torch.autocast("cuda", dtype=torch.float16) if self.device == "cuda" else nullcontext()
        )
        with half:
            return self.network(self.normalised(batch)).float().cpu().numpy()


def check_outputs(
    logits: np.ndarray, classes: int, model: str, missing: Sequence[int] = ()
) -> None:
    """Refuse outputs of the wrong width or not finite; ``missing`` classes are not checked."""
    if logits.ndim != 2 or logits.shape[1] != classes:
        raise UserError(
            f"model '{model}': outputs have shape {list(logits.shape[1:])}, "
            f"but the study has {classes} classes"
        )
    present = np.delete(logits, list(missing), axis=1) if missing else logits
    if not np.isfinite(present).all():
        raise UserError(f"model '{model}': outputs are not finite (NaN or infinite)")


def extract_logits(
    target: Path,
    cache: Pixels,
    loaded: LoadedModel,
    classes: Sequence[str],
    metadata: Mapping[str, Any],
    execution: Execution,
) -> None:
    """Run a model over the pixels of a view and write its logits to ``target``."""
    model, device = str(metadata["model"]), execution.device
    forward = fitting_forward(loaded, execution, cache.shape[1] * cache.shape[2])
    card = {**metadata, "ids": ids_digest(cache.ids), **described(loaded, len(cache), execution)}
    with atomic_write(target) as part:
        writer = RowWriter(part, "logits", (len(cache), len(classes)), card)
        with bar(None, f"{model} {metadata['view']}", len(cache)) as shown:
            for images in batches(cache, execution.batch, device):
                logits = forward(images)
                check_outputs(logits, len(classes), model, loaded.missing)
                if loaded.missing:
                    logits[:, list(loaded.missing)] = np.nan
                writer.append(logits)
                shown.update(len(logits))
        writer.close()


def fitting_forward(loaded: LoadedModel, execution: Execution, pixels: int) -> InPieces:
    """A model on its device, run on as many images at a time as fit there.

    ``pixels`` are those of one image. A CPU takes large ones a few at a time: a batch of 128 at 224
    pixels took up to twice as long.
    """
    execution.prepare()
    forward = Forward(loaded, execution.device, execution.numerics.get("compile", False))
    most = execution.batch if execution.device == "cuda" else max(1, PIXELS // pixels)
    return InPieces(forward, min(execution.batch, most))


def described(loaded: LoadedModel, images: int, execution: Execution) -> dict[str, Any]:
    """What the metadata of a model's outputs says of the model and of the run."""
    return {
        "parameters": loaded.parameters,
        "images": images,
        "device": execution.device,
        **execution.card,
        **{f"weights_{key}": value for key, value in loaded.origin.items()},
    }


def metadata_of(
    model: str, view: str, block: Mapping[str, Any], files: Mapping[str, str] = MappingProxyType({})
) -> dict[str, str]:
    """What the metadata of a model's outputs on a view begins with; ``files`` is what it is of."""
    code = {"weights_code": block["code"]} if "code" in block else {}
    return {"model": model, "view": view, **versions(block["source"]), **code, **files}
