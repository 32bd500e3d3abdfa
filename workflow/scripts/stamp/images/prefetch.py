"""Parts of a long input, read by a thread while what was read before is worked on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import torch

Part = TypeVar("Part")
Read = TypeVar("Read")

AHEAD = 2  # batches that are ready before the model asks for them


def prefetched(
    read: Callable[[Part], Read], parts: Iterable[Part], ahead: int = AHEAD
) -> Iterator[Read]:
    """What ``read`` gives for each part, in order; up to ``ahead`` of them are read meanwhile.

    With ``ahead`` of 0 no thread is started: each is read when it is asked for.
    """
    if not ahead:
        yield from map(read, parts)
        return
    worker = ThreadPoolExecutor(1)
    waiting: deque[Future[Read]] = deque()
    try:
        for part in parts:
            waiting.append(worker.submit(read, part))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        worker.shutdown(cancel_futures=True)


def pinned(tensor: torch.Tensor, device: str) -> torch.Tensor:
    """The tensor where a GPU fetches it from without stopping the program; else as it is."""
    return tensor.pin_memory() if device == "cuda" else tensor


def ahead_on(device: str) -> int:
    """How many batches of a pixel cache are read ahead.

    On the CPU the operating system reads ahead, and a thread would take time from the model.
    """
    return AHEAD if device == "cuda" else 0
