"""Grad-CAM: where in an image the evidence for a class lies, and how far two such maps overlap.

Selvaraju et al. 2017: with activations A [c, h, w] of a late layer and the logit z_t of a class,
``map = relu(sum_c a_c A_c)``, ``a_c = mean_hw dz_t / dA_chw``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from stamp.core.errors import UserError
from stamp.images.augmentations import mirror
from stamp.inference.extra_outputs.runner import (
    SMALL_BATCH,
    ArrayStream,
    Chunk,
    Runner,
    differentiating,
)
from stamp.models.taps import blocks, layout

SHARE = 0.2
FLAT = 1e-5  # of its largest value: what a map must vary by to be more than rounding
TIE = 1e-5  # of a map's range: values that are nearer to each other count as equal
NORMS = ("norm1", "layer_norm1", "layernorm_before")


class GradCam:
    """Maps of a network: of its last block's output, or for tokens of that block's first norm.

    The last block is the last one whose map has more than one place, which a small image may not
    leave it. The output of the last block of a network with patch tokens reaches the logits through
    the class token alone where there is one, so the tokens are taken before its attention; they are
    put back on their grid without the class token. Only what comes after the layer is
    differentiated. The network's parameters are frozen.
    """

    def __init__(self, module: nn.Module, example: torch.Tensor):
        self.module = module.requires_grad_(False)
        self.prefix, self.channels_last, self.grid = layout(module)
        self.layer: Any = self._last(example)
        self.kept: torch.Tensor | None = None
        self._run(example)
        if self.kept is None:
            raise UserError("its blocks can't be watched")
        self._map(self.kept)

    def _last(self, example: torch.Tensor) -> nn.Module:
        """The layer that maps are made of."""
        found, shapes = blocks(self.module), {}

        def keep(block: nn.Module, inputs: Any, output: Any) -> None:
            tensor = output if isinstance(output, torch.Tensor) else output[0]
            shapes[block] = tensor.shape

        handles = [block.register_forward_hook(keep) for block in found]
        with torch.no_grad():
            self.module(example)
        for handle in handles:
            handle.remove()
        if not shapes:
            raise UserError("its blocks can't be watched")
        for block in reversed(found):
            shape = shapes.get(block, ())
            if len(shape) == 3:
                return self._norm(block)
            places = shape[1:3] if self.channels_last else shape[2:]
            if len(shape) == 4 and math.prod(places) > 1:
                return block
        raise UserError("none of its blocks has a map of more than one place")

    def _norm(self, block: nn.Module) -> nn.Module:
        for name in NORMS:
            if isinstance(norm := getattr(block, name, None), nn.Module):
                return norm
        raise UserError(f"no norm before the attention is known in {type(block).__name__}")

    def _run(self, pixels: torch.Tensor) -> torch.Tensor:
        """The logits, with the layer's output kept and the beginning of the graph."""

        def keep(layer: nn.Module, inputs: Any, output: Any) -> Any:
            tensor = output if isinstance(output, torch.Tensor) else output[0]
            self.kept = tensor.detach().requires_grad_(True)
            # a copy goes on: later layers may work in place
            copy = self.kept.clone()
            return copy if isinstance(output, torch.Tensor) else (copy, *output[1:])

        self.kept = None
        handle = self.layer.register_forward_hook(keep)
        try:
            with torch.enable_grad():
                return self.module(pixels)
        finally:
            handle.remove()

    def _map(self, values: torch.Tensor) -> torch.Tensor:
        """[n, c, h, w] of a map, or of tokens without the first ones."""
        if values.ndim == 4:
            return values.permute(0, 3, 1, 2) if self.channels_last else values
        tokens = values[:, self.prefix :]
        count = tokens.shape[1]
        square = (round(count**0.5), round(count**0.5))
        height, width = self.grid if self.grid and math.prod(self.grid) == count else square
        if tokens.ndim != 3 or height * width != count:
            raise UserError(f"{count} patch tokens form no grid that is known")
        return tokens.transpose(1, 2).unflatten(2, (height, width))

    def __call__(
        self, pixels: torch.Tensor, chosen: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Maps [n, h, w] of the input's size, and the classes that they are of.

        Those are the ``chosen``, or the ones with the largest logits. Each map is scaled to
        [0, 1]; a constant one is 0.
        """
        logits = self._run(pixels)
        if chosen is None:
            chosen = logits.detach().nan_to_num(nan=-torch.inf).argmax(dim=1)
        score = logits.gather(1, chosen[:, None]).sum()
        kept: Any = self.kept
        (slope,) = torch.autograd.grad(score, kept)
        weights = self._map(slope).mean(dim=(2, 3), keepdim=True)
        maps = (weights * self._map(kept.detach())).sum(dim=1, keepdim=True).relu()
        size = list(pixels.shape[2:])
        maps = functional.interpolate(maps, size, mode="bilinear", align_corners=False)[:, 0]
        low, high = maps.amin(dim=(1, 2), keepdim=True), maps.amax(dim=(1, 2), keepdim=True)
        spread = high - low
        varies = spread > FLAT * high
        return torch.where(varies, (maps - low) / spread, torch.zeros_like(maps)), chosen


def top(maps: torch.Tensor, share: float = SHARE) -> torch.Tensor:
    """Boolean [n, h, w]: the pixels of the largest ``share`` of each map, those at its least never.

    ``maps`` are scaled to [0, 1]. Pixels equal to the last one that counts count too; a constant
    map has none. Values within ``TIE`` are equal. A map of few places that is enlarged has whole
    rows of pixels with one value, which rounding tells apart in another way in every batch size:
    without ``TIE`` some of them would be in and some out.
    """
    flat = maps.flatten(1)
    count = max(1, round(share * flat.shape[1]))
    least = flat.topk(count, dim=1).values[:, -1:]
    lowest = flat.amin(dim=1, keepdim=True)
    return ((flat >= least - TIE) & (flat > lowest + TIE)).view_as(maps)


def dice(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """``2 |A and B| / (|A| + |B|)`` of masks [n, h, w]; NaN where one of them is empty."""
    a, b = a.flatten(1), b.flatten(1)
    sizes = [each.sum(dim=1).double() for each in (a, b)]
    shared = (a & b).sum(dim=1).double()
    empty = (sizes[0] == 0) | (sizes[1] == 0)
    return torch.where(empty, torch.nan, 2 * shared / (sizes[0] + sizes[1]))


def gradcam(runner: Runner) -> ArrayStream:
    """The overlap of the maps of an image and its mirror image, and of those of a semantic pair."""
    rows, (first, second) = runner.images.rows, runner.images.pairs
    with differentiating():
        cam = GradCam(runner.module, runner.forward.normalised(runner.example))
        cam(runner.forward.normalised(runner.example))

    def chunks() -> Iterator[Chunk]:
        yield runner.rows_chunk
        masks, classes = [], np.zeros(len(rows), dtype=np.int64)
        for start, _, pixels in runner.batches(rows, SMALL_BATCH):
            maps, chosen = cam(runner.forward.normalised(pixels))
            mirrored, _ = cam(runner.forward.normalised(mirror(pixels)), chosen)
            here = top(maps)
            overlap = dice(here, top(mirrored.flip(2)))
            yield Chunk("dice", overlap.float().cpu().numpy(), start)
            masks.append(np.packbits(here.flatten(1).cpu().numpy(), axis=1))
            classes[start : start + len(pixels)] = chosen.cpu().numpy()
        packed = np.concatenate(masks)
        for start, _, pixels in runner.batches(rows[second], SMALL_BATCH):
            place = first[start : start + len(pixels)]
            wanted = torch.from_numpy(classes[place]).to(runner.device)
            maps, _ = cam(runner.forward.normalised(pixels), wanted)
            there = top(maps).flatten(1).cpu()
            bits = np.unpackbits(packed[place], axis=1, count=there.shape[1])
            overlap = dice(torch.from_numpy(bits.astype(bool)), there)
            yield Chunk("pair_dice", overlap.float().numpy(), start)

    arrays = {
        "dice": (np.float32, (len(rows),)),
        "pair_dice": (np.float32, (len(first),)),
        "rows": runner.rows_shape,
    }
    return ArrayStream(arrays, chunks(), len(rows), 2 * len(rows) + len(first))
