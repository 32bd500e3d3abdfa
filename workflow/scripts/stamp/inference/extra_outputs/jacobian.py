"""How steep a network is at a picture: the spectral norm of its Jacobian, by power iteration.

With J the Jacobian of f at x, ``u = J v / ||J v||`` and ``v = J^T u / ||J^T u||`` in turn lead v to
the direction in which f changes most, and ``||J^T u||`` up to the largest singular value of J
(Golub and Van Loan, Matrix Computations, 8.2). It never exceeds that: a few iterations bound it
from below.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from stamp.core.errors import UserError


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
            (steepest,) = torch.autograd.grad(outputs, x, unit(ahead), retain_graph=True)
            v = unit(steepest)
    return length(steepest).flatten()
