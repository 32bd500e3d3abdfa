"""The spectral norm of a Jacobian: against closed forms and the singular values of all of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from stamp.core.errors import UserError
from stamp.inference.extra_outputs.jacobian import spectral_norms, unit
from stamp.models.torchvision_ops import timm

SHAPE = (1, 8, 8)


def pictures(count: int = 5, shape: tuple[int, ...] = SHAPE) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs and first directions."""
    generator = torch.Generator().manual_seed(3)
    drawn = torch.randn(2, count, *shape, generator=generator)
    return drawn[0], drawn[1]


def seeded(make: Callable[[], nn.Module]) -> nn.Module:
    torch.manual_seed(0)
    return make().eval().requires_grad_(False)


def singular(function: Any, x: torch.Tensor) -> np.ndarray:
    """The largest singular value of each Jacobian, of which every entry is computed."""
    found = []
    for one in x:
        matrix = torch.autograd.functional.jacobian(lambda v: function(v[None])[0], one)
        found.append(np.linalg.svd(matrix.flatten(1).double().numpy(), compute_uv=False)[0])
    return np.array(found)


@pytest.mark.parametrize("iterations", [1, 5])
def test_a_linear_map_has_the_norm_that_its_singular_values_give_after_so_many_iterations(
    iterations: int,
) -> None:
    x, start = pictures()
    matrix = torch.randn(6, 64, generator=torch.Generator().manual_seed(1))
    found = spectral_norms(lambda v: v.flatten(1) @ matrix.T, x, start, iterations)
    _, values, right = np.linalg.svd(matrix.double().numpy(), full_matrices=False)
    # (J^T J)^k v weighs the share of a singular direction by its value to the power 2 k
    shares = (start.flatten(1).double().numpy() @ right.T) ** 2
    power = 4 * iterations
    above, below = shares @ values**power, shares @ values ** (power - 2)
    assert found.numpy() == pytest.approx(np.sqrt(above / below), rel=1e-5)


class Pooled(nn.Sequential):
    """A small network whose first layer works in place."""

    def __init__(self) -> None:
        super().__init__(
            nn.ELU(inplace=True),
            nn.Conv2d(1, 6, 3),
            nn.BatchNorm2d(6),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(54, 4),
        )


class Attention(nn.Module):
    """Rows of pixels as tokens, through torch's own encoder, which has a fast path of its own."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.fc = nn.Linear(8, 4)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.fc(self.encoder(pixels[:, 0]).mean(dim=1))


def vit() -> nn.Module:
    sizes = {"img_size": 8, "patch_size": 4, "embed_dim": 12, "depth": 2, "num_heads": 2}
    return timm.create_model("vit_tiny_patch16_224", in_chans=1, num_classes=4, **sizes)


@pytest.mark.parametrize("make", [Pooled, Attention, vit])
@pytest.mark.parametrize("task", ["softmax", "sigmoid"])
def test_probabilities_of_a_network_have_the_largest_singular_value_of_their_whole_jacobian(
    make: Callable[[], nn.Module], task: str
) -> None:
    module = seeded(make)
    x, start = pictures()

    def outputs(v: torch.Tensor) -> torch.Tensor:
        z = module(v.clone())  # its first layer may work in place
        return z.softmax(1) if task == "softmax" else z.sigmoid()

    exact = singular(outputs, x)
    assert exact.min() > 1e-4 and exact.std() > 0
    many = spectral_norms(outputs, x, start, 150).numpy()
    assert many == pytest.approx(exact, rel=1e-3)
    few = spectral_norms(outputs, x, start, 5).numpy()
    assert (few <= exact * (1 + 1e-5)).all() and (few > 0.5 * exact).all()


def test_more_iterations_never_find_less() -> None:
    module = seeded(Pooled)
    x, start = pictures()
    found = [spectral_norms(module, x, start, count).numpy() for count in (1, 2, 5, 20)]
    assert (np.diff(found, axis=0) >= -1e-6 * found[-1]).all()
    assert (found[-1] > found[0]).any()


def test_a_picture_has_its_norm_whatever_stands_beside_it_and_however_long_its_start() -> None:
    module = seeded(Pooled)
    x, start = pictures()
    together = spectral_norms(module, x, start, 5)
    alone = [spectral_norms(module, a[None], 7 * b[None], 5) for a, b in zip(x, start, strict=True)]
    torch.testing.assert_close(torch.cat(alone), together)


def test_outputs_that_do_not_move_at_all_have_norm_zero() -> None:
    x, start = pictures()
    found = spectral_norms(lambda v: (1000 + v.flatten(1)).sigmoid(), x, start, 5)
    assert found.tolist() == [0] * len(x)
    assert unit(torch.zeros(2, 3)).tolist() == [[0, 0, 0], [0, 0, 0]]


def test_outputs_without_a_path_to_the_input_are_refused_and_the_input_is_left_alone() -> None:
    x, start = pictures()
    with pytest.raises(UserError, match="gradients can't be taken: no path leads from its outputs"):
        spectral_norms(lambda v: v.detach().flatten(1), x, start, 5)
    before = x.clone()
    with torch.no_grad():
        spectral_norms(seeded(Pooled), x, start, 1)
    assert torch.equal(x, before) and not x.requires_grad
