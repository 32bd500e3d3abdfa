"""Random numbers that depend on the seed, the image and the purpose alone."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch


def seed_of(*parts: Any) -> int:
    """A seed from a hash of what it is for."""
    text = "\0".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def noise(
    ids: Sequence[str], shape: Sequence[int], seed: int, purpose: str, number: int
) -> torch.Tensor:
    """Standard normal noise [n, ...], the ``number``-th draw for each image id."""
    drawn = [
        np.random.default_rng(seed_of(seed, image, purpose, number)).standard_normal(
            tuple(shape), dtype=np.float32
        )
        for image in ids
    ]
    return torch.from_numpy(np.stack(drawn))
