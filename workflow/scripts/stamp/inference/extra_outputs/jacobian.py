"""How sensitive a network is to its input: the spectral norm of its Jacobian, by power iteration.

With J the Jacobian of f at x, ``u = J v / ||J v||`` and ``v = J^T u / ||J^T u||`` in turn lead v to
the direction in which f changes most, and ``||J^T u||`` up to the largest singular value of J
(Golub and Van Loan, Matrix Computations, 8.2). It never exceeds that: a few iterations bound it
from below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from stamp.core.errors import UserError
from stamp.inference.extra_outputs.runner import (
    ArrayStream,
    Chunk,
    Runner,
    Unavailable,
    differentiating,
)
from stamp.inference.extra_outputs.seeding import noise

SMALLEST_BATCH = 4  # activations are held together with those of their gradients


def length(values: torch.Tensor) -> torch.Tensor:
    """The L2 norm of each of [n, ...], as [n, 1, ...]."""
    norms = values.flatten(1).norm(dim=1)
    return norms.view(-1, *[1] * (values.ndim - 1))


def unit(values: torch.Tensor) -> torch.Tensor:
    """Each of [n, ...] divided by its length; one without any stays 0."""
    return values / length(values).clamp(min=torch.finfo(values.dtype).tiny)


def spectral_norms(
    function: Callable[[torch.Tensor], torch.Tensor],
    x: torch.Tensor,
    start: torch.Tensor,
    iterations: int,
) -> torch.Tensor:
    """The spectral norm of the Jacobian of ``function`` at each of x [n, ...], as [n].

    ``function`` gives [n, C], each row from its own input alone; ``start`` are directions like x.
    J v is taken as the derivative of ``J^T u`` in u, so that one forward pass serves all iterations
    and a network needs no more than gradients that can be differentiated again.
    """
    # fused attention has no second derivatives
    with torch.enable_grad(), sdpa_kernel(SDPBackend.MATH):
        x = x.detach().requires_grad_(True)
        # a copy goes on: the first layer may work in place
        outputs = function(x.clone())
        if not outputs.requires_grad:
            raise UserError("gradients can't be taken: no path leads from its outputs to its input")
        u = torch.zeros_like(outputs, requires_grad=True)
        (back,) = torch.autograd.grad(outputs, x, u, create_graph=True)
        v = unit(start)
        for _ in range(iterations):
            (ahead,) = torch.autograd.grad(back, u, v, retain_graph=True, allow_unused=True)
            if ahead is None:
                raise UserError("gradients can't be taken: a layer can be differentiated only once")
            (gradient,) = torch.autograd.grad(outputs, x, unit(ahead), retain_graph=True)
            v = unit(gradient)
    return length(gradient).flatten()


def jacobian(runner: Runner) -> ArrayStream:
    """The spectral norm of the Jacobian of the output probabilities at each image.

    At the temperature of the study's scores, over the classes that the model has, in full precision
    on every device. The first direction is drawn from seed and image id.
    """
    rows = runner.images.rows[: runner.settings["jacobian_images"]]
    iterations, task = runner.settings["power_iterations"], runner.settings["task"]
    there = [number for number in range(runner.classes) if number not in runner.loaded.missing]
    for parameter in runner.module.parameters():
        parameter.requires_grad_(False)

    def outputs(x: torch.Tensor) -> torch.Tensor:
        z = runner.module(x).float()[:, there] / runner.settings["temperature"]
        return z.softmax(dim=1) if task == "multiclass" else z.sigmoid()

    def norms(ids: Sequence[str], pixels: torch.Tensor, count: int) -> np.ndarray:
        x = runner.forward.normalised(pixels)
        start = noise(ids, x.shape[1:], runner.seed, "jacobian", 0).to(runner.device)
        found = spectral_norms(outputs, x, start, count).cpu().numpy()
        if not np.isfinite(found).all():
            raise Unavailable("its gradients are not finite")
        return found

    with differentiating():
        norms(runner.images.selected_ids[:2], runner.example, 1)

    def chunks() -> Iterator[Chunk]:
        yield Chunk("rows", rows.astype(np.int32))
        for start, ids, pixels in runner.batches(rows, SMALLEST_BATCH):
            yield Chunk("norms", norms(ids, pixels, iterations), start)

    arrays = {"norms": (np.float32, (len(rows),)), "rows": (np.int32, (len(rows),))}
    notes = {"temperature": str(runner.settings["temperature"])}
    return ArrayStream(arrays, chunks(), len(rows), len(rows), notes)
