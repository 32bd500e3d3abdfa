"""A shuffled epoch read in large sequential blocks, for a pixel cache larger than memory.

Rows that are taken one by one in random order cost one read of the disk each once the cache does
not fit into memory. Here the cache is cut into blocks of consecutive rows. The blocks are shuffled,
each is read as a whole, and the rows of several blocks together are shuffled again: every row comes
once per epoch, near only a few of its neighbours in the cache.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from stamp.images.pixel_cache import PixelCache
from stamp.images.prefetch import ahead_on, pinned, prefetched
from stamp.models.training.splits import TrainingSplit

BLOCK = 64 * 2**20  # bytes that are read at once
TOGETHER = 8  # blocks whose rows are mixed
SHARE = 0.5  # of the machine's memory that a cache may have

Batch = tuple[torch.Tensor, torch.Tensor]


def fits_in_memory(cache: PixelCache) -> bool:
    """Whether the system can keep the cache in memory beside what else it does."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return len(cache) * cache.bytes_per_image <= SHARE * memory


@dataclass(frozen=True, slots=True)
class BlockShuffle:
    """How an epoch goes over the labeled rows of a split."""

    split: TrainingSplit
    size: int  # rows of a batch

    @property
    def height(self) -> int:
        """Rows of a block."""
        return max(1, BLOCK // self.split.cache.bytes_per_image)

    def buffers(self, seed: int) -> list[np.ndarray]:
        """The labeled rows of the blocks that are mixed with each other, in their final order."""
        rng = np.random.default_rng(seed)
        rows = np.sort(self.split.rows)
        blocks = np.split(rows, np.flatnonzero(np.diff(rows // self.height)) + 1)
        order = [blocks[number] for number in rng.permutation(len(blocks))]
        starts = range(0, len(order), TOGETHER)
        return [rng.permutation(np.concatenate(order[at : at + TOGETHER])) for at in starts]

    def read(self, rows: np.ndarray) -> np.ndarray:
        """The pixels of a buffer's rows, in their order; each block is one read."""
        cache = self.split.cache
        pixels = np.empty((len(rows), *cache.shape[1:]), dtype=np.uint8)
        of = rows // self.height
        for block in np.unique(of):
            start = int(block) * self.height
            own = np.flatnonzero(of == block)
            pixels[own] = cache.rows(start, start + self.height)[rows[own] - start]
        return pixels

    def batches(self, seed: int, device: str) -> Iterator[Batch]:
        """Pixels and labels of an epoch in whole batches; rows beyond the last one are left out."""
        buffers = self.buffers(seed)
        waiting: list[tuple[np.ndarray, np.ndarray]] = []
        for rows, pixels in zip(
            buffers, prefetched(self.read, buffers, min(1, ahead_on(device))), strict=True
        ):
            at = 0
            while at < len(rows):
                missing = self.size - sum(len(some) for some, _ in waiting)
                waiting.append((rows[at : at + missing], pixels[at : at + missing]))
                at += missing
                if sum(len(some) for some, _ in waiting) == self.size:
                    yield self._batch(waiting, device)
                    waiting = []

    def _batch(self, parts: list[tuple[np.ndarray, np.ndarray]], device: str) -> Batch:
        """One batch from the end of a buffer and the beginning of the next."""
        pixels = torch.from_numpy(np.concatenate([pixels for _, pixels in parts]))
        labels = torch.from_numpy(self.split.labels[np.concatenate([rows for rows, _ in parts])])
        return pinned(pixels, device), pinned(labels, device)
