"""Grad-CAM: maps against closed forms and finite differences, overlap against sets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from stamp.core.errors import UserError
from stamp.inference.extra_outputs.gradcam import GradCam, dice, top
from stamp.models.architectures import build
from stamp.models.loaders.checkpoint import NamedOutputs


class Known(nn.Module):
    """Two channels, the picture and its negative, averaged, then a linear layer."""

    def __init__(self, weights: list[list[float]]):
        super().__init__()
        first = nn.Conv2d(1, 2, 1, bias=False)
        first.weight.data = torch.tensor([1.0, -1.0])[:, None, None, None]
        self.layer1 = nn.Sequential(first)
        self.act = nn.ReLU(inplace=True)  # changes the block's output after it was given
        self.fc = nn.Linear(2, len(weights), bias=False)
        self.fc.weight.data = torch.tensor(weights)

    def get_classifier(self) -> nn.Module:
        return self.fc

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.fc(self.act(self.layer1(pixels)).mean(dim=(2, 3)))


def example(channels: int = 1, size: int = 8) -> torch.Tensor:
    return torch.randn(3, channels, size, size, generator=torch.Generator().manual_seed(2))


def test_the_map_of_a_known_network_is_its_closed_form() -> None:
    x = example().abs()  # the negative channel is 0 behind the ReLU, and has no slope
    cam = GradCam(Known([[1.0, 5.0], [-2.0, 5.0]]), x)
    maps, chosen = cam(x)
    assert chosen.tolist() == [0, 0, 0]  # logits mean(x) and -2 mean(x)
    low, high = x.amin(dim=(2, 3), keepdim=True), x.amax(dim=(2, 3), keepdim=True)
    assert torch.allclose(maps, ((x - low) / (high - low))[:, 0], atol=1e-6)


def test_evidence_against_a_class_leaves_no_map() -> None:
    x = example().abs()
    cam = GradCam(Known([[1.0, 5.0], [-2.0, 5.0]]), x)
    maps, chosen = cam(x, torch.tensor([1, 1, 1]))
    assert chosen.tolist() == [1, 1, 1]
    assert not maps.any() and not top(maps).any()
    assert torch.isnan(dice(top(maps), top(x[:, 0]))).all()


@pytest.mark.parametrize(
    ("arch", "arguments", "layer"),
    [
        (
            "resnet18",
            {"layers": [1, 1, 1, 1], "channels": [4, 4, 8, 8]},
            lambda module: module.layer3[0],  # the last block's map is a single place
        ),
        (
            "vit_tiny_patch16_224",
            {"img_size": 32, "patch_size": 8, "embed_dim": 24, "depth": 2, "num_heads": 3},
            lambda module: module.blocks[1].norm1,
        ),
        (
            "mlp_mixer:MlpMixer",
            {"img_size": 32, "patch_size": 8, "embed_dim": 16, "num_blocks": 2},
            lambda module: module.blocks[1].norm1,
        ),
        (
            "swin_tiny_patch4_window7_224",
            {
                "img_size": 32,
                "patch_size": 2,
                "window_size": 2,
                "embed_dim": 8,
                "depths": [1, 1],
                "num_heads": [2, 2],
            },
            lambda module: module.layers[1].blocks[0],
        ),
    ],
)
def test_the_map_is_made_of_the_slopes_of_the_logit(arch: str, arguments: Any, layer: Any) -> None:
    torch.manual_seed(1)
    module: Any = build(arch, arguments, 3, 1, 32).double().eval()
    for parameter in module.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    x = example(size=32).double()[:1]
    found, chosen = GradCam(module, x)(x)

    held: dict[str, torch.Tensor] = {}

    def run(shift: torch.Tensor | None = None) -> torch.Tensor:
        def keep(block: nn.Module, inputs: Any, output: torch.Tensor) -> torch.Tensor:
            held["output"] = output.clone()
            return output if shift is None else output + shift

        handle = layer(module).register_forward_hook(keep)
        with torch.no_grad():
            logits = module(x)
        handle.remove()
        return logits[0, int(chosen)]

    run()
    output = held["output"]
    # a channel's mean slope is the slope along that channel, divided by how many places it has
    tokens = output.ndim == 3
    last = tokens or arch.startswith("swin")
    channels = output.shape[-1] if last else output.shape[1]
    prefix = 1 if arch.startswith("vit") else 0
    slopes, step = [], 1e-5
    for channel in range(channels):
        shift = torch.zeros_like(output)
        if tokens:
            shift[:, prefix:, channel] = step
        elif last:
            shift[..., channel] = step
        else:
            shift[:, channel] = step
        slopes.append(float((run(shift) - run(-shift)) / (2 * step)))
    if tokens:
        side = int((output.shape[1] - prefix) ** 0.5)
        planes = output[0, prefix:].T.reshape(channels, side, side)
    else:
        planes = output[0].permute(2, 0, 1) if last else output[0]
    raw = torch.einsum("c,chw->hw", torch.tensor(slopes, dtype=torch.float64), planes).relu()
    wanted = nn.functional.interpolate(raw[None, None], (32, 32), mode="bilinear")[0, 0]
    wanted = (wanted - wanted.min()) / (wanted.max() - wanted.min())
    assert float(wanted.std()) > 0.01
    assert torch.allclose(found[0], wanted, atol=1e-4)


def test_a_batch_gives_the_maps_of_its_pictures() -> None:
    torch.manual_seed(0)
    module = build("resnet18", {"layers": [1, 1, 1, 1], "channels": [4, 4, 8, 8]}, 3, 1, 32).eval()
    x = example(size=32)
    cam = GradCam(module, x)
    whole, chosen = cam(x)
    for place in range(3):
        alone, own = cam(x[place : place + 1])
        assert int(own) == int(chosen[place])
        assert torch.allclose(alone[0], whole[place], atol=1e-5)


def test_a_class_that_the_model_has_not_is_never_chosen() -> None:
    x = example().abs()
    module = NamedOutputs(Known([[1.0, 5.0], [-2.0, 5.0]]), [None, 0, 1, None]).eval()
    maps, chosen = GradCam(module, x)(x)
    assert chosen.tolist() == [1, 1, 1]
    assert torch.isfinite(maps).all() and maps.amax() == 1


def test_networks_without_blocks_have_no_map() -> None:
    with pytest.raises(UserError, match="no blocks are known in Linear"):
        GradCam(build("linear", {}, 3, 1, 8), example())


def test_the_network_is_left_without_hooks() -> None:
    module = Known([[1.0, 5.0], [-2.0, 5.0]])
    GradCam(module, example())(example())
    assert not any(part._forward_hooks for part in module.modules())


def test_the_largest_fifth_of_the_pixels_counts_and_equals_count_too() -> None:
    maps = torch.arange(100.0).reshape(1, 10, 10)
    assert top(maps).flatten().nonzero().flatten().tolist() == list(range(80, 100))
    few = torch.zeros(1, 10, 10)
    few[0, 0, :3] = torch.tensor([0.2, 1.0, 0.5])
    assert int(top(few).sum()) == 3
    level = torch.cat([torch.zeros(50), torch.ones(50)]).reshape(1, 10, 10)
    assert int(top(level).sum()) == 50
    assert int(top(torch.full((1, 10, 10), 0.3)).sum()) == 0


@given(st.lists(st.integers(0, 20), min_size=4, max_size=4), st.integers(0, 2**16))
@settings(max_examples=60, deadline=None)
def test_rounding_does_not_part_pixels_of_one_value(places: list[int], seed: int) -> None:
    """Values at least 1/20 apart, with noise like that of another batch size."""
    exact = torch.tensor(places).reshape(1, 2, 2) / 20
    maps = exact.repeat_interleave(5, dim=1).repeat_interleave(5, dim=2)
    noise = torch.rand(maps.shape, generator=torch.Generator().manual_seed(seed)) - 0.5
    # a fifth of 100 pixels is less than the 25 of a place: the places with the largest value count
    wanted = (maps == maps.max()) & (maps > maps.min())
    assert torch.equal(top(maps + 1e-6 * noise), wanted)


@given(st.lists(st.booleans(), min_size=16, max_size=16), st.integers(0, 2**16 - 1))
@settings(max_examples=60, deadline=None)
def test_dice_is_that_of_sets(first: list[bool], bits: int) -> None:
    second = [bool(bits >> place & 1) for place in range(16)]
    a, b = ({k for k, inside in enumerate(each) if inside} for each in (first, second))
    found = float(dice(*(torch.tensor(each).reshape(1, 4, 4) for each in (first, second))))
    if a and b:
        assert found == pytest.approx(2 * len(a & b) / (len(a) + len(b)))
    else:
        assert np.isnan(found)
