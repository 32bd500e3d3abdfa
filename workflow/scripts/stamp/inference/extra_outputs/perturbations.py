"""Logits of slightly perturbed inputs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from stamp.inference.extra_outputs.jacobian import length
from stamp.inference.extra_outputs.runner import ArrayStream, Chunk, Runner
from stamp.inference.extra_outputs.seeding import noise

PURPOSE = "perturbed"  # part of the seed: another word would draw other noise


def perturbations(runner: Runner) -> ArrayStream:
    """The logits of x and of x + d_k in the model's input space, and the norms of the d_k.

    d is Gaussian, rescaled to a share of ``||x||``. Logits have full precision on every device.
    """
    rows, count = runner.images.rows, runner.settings["perturbations"]
    share = runner.settings["perturbation_norm"]

    @torch.inference_mode()
    def outputs(values: torch.Tensor) -> np.ndarray:
        return runner.checked(runner.module(values).float().cpu().numpy())

    def chunks() -> Iterator[Chunk]:
        yield runner.rows_chunk
        norms = np.zeros((count, len(rows)), dtype=np.float32)
        for start, ids, pixels in runner.batches(rows):
            x = runner.forward.normalised(pixels)
            yield Chunk("base", outputs(x), start)
            for plane in range(count):
                d = noise(ids, x.shape[1:], runner.seed, PURPOSE, plane).to(runner.device)
                d *= share * length(x) / length(d)
                norms[plane, start : start + len(ids)] = length(d).flatten().cpu().numpy()
                yield Chunk("logits", outputs(x + d), start, plane)
        yield Chunk("norms", norms)

    shape = (len(rows), runner.classes)
    arrays = {
        "logits": (np.float32, (count, *shape)),
        "base": (np.float32, shape),
        "norms": (np.float32, (count, len(rows))),
        "rows": runner.rows_shape,
    }
    return ArrayStream(arrays, chunks(), len(rows), (count + 1) * len(rows))
