"""Monte Carlo dropout: the logits of several forward passes with dropout switched on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.nn.modules.dropout import _DropoutNd

from stamp.core.artifacts import ids_digest
from stamp.core.errors import UserError
from stamp.inference.extra_outputs.runner import ArrayStream, Chunk, Runner
from stamp.inference.extra_outputs.seeding import seed_of
from stamp.models.classifier import classifier
from stamp.models.taps import Taps


def dropout_layers(module: nn.Module) -> list[nn.Module]:
    """The dropout layers with p > 0; stochastic depth does not count."""
    return [layer for layer in module.modules() if isinstance(layer, _DropoutNd) and layer.p > 0]


@contextmanager
def dropping(module: nn.Module, head_dropout: float | None = None) -> Iterator[str]:
    """Only the dropout layers in train mode; gives a note if the dropout is not the model's own.

    In a model without dropout layers, a share ``head_dropout`` of the last linear layer's input is
    dropped, if given. Dropout inside fused attention follows the mode of the attention and stays
    off.
    """
    layers, handle, note = dropout_layers(module), None, ""
    if not layers:
        if head_dropout is None:
            raise UserError("it has no dropout layer with p > 0")
        if not hasattr(module, "get_classifier"):
            raise UserError("it has no dropout layer, and its last linear layer is not known")
        note = f"dropout of {head_dropout:g} before the last layer: it has none of its own"

        def drop(layer: nn.Module, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
            return (functional.dropout(inputs[0], head_dropout, training=True), *inputs[1:])

        handle = classifier(module).register_forward_pre_hook(drop)
    try:
        for layer in layers:
            layer.train()
        yield note
    finally:
        for layer in layers:
            layer.eval()
        if handle is not None:
            handle.remove()


def mc_dropout(runner: Runner) -> ArrayStream:
    """The logits of several passes with dropout, seeded by the images of each batch."""
    rows, samples = runner.images.rows, runner.settings["samples"]
    head_dropout = runner.settings["head_dropout"]
    with dropping(runner.module, head_dropout) as note:
        pass
    head = _last_step(runner) if note else None

    def chunks() -> Iterator[Chunk]:
        yield runner.rows_chunk
        devices = [torch.cuda.current_device()] if runner.device == "cuda" else []
        for start, ids, pixels in runner.batches(rows):
            embedded = None if head is None else _embedded(runner, pixels)
            for plane in range(samples):
                with torch.random.fork_rng(devices):
                    torch.manual_seed(seed_of(runner.seed, ids_digest(ids), "dropout", plane))
                    if head is not None and embedded is not None:
                        logits = runner.checked(_through(head, embedded, head_dropout))
                    else:
                        # on again for each pass: between two chunks others may use the network
                        with dropping(runner.module, head_dropout):
                            logits = runner.logits(pixels)
                yield Chunk("logits", logits, start, plane)

    arrays = {"logits": runner.logits_shape(samples), "rows": runner.rows_shape}
    notes = {"note": note} if note else {}
    passes = 1 if head is not None else samples
    return ArrayStream(arrays, chunks(), len(rows), passes * len(rows), notes)


def _last_step(runner: Runner) -> nn.Linear | None:
    """The last linear layer, if a model's logits are what it gives and nothing follows it.

    Dropout before it then needs one pass through the network, not one per sample.
    """
    head, embedded = classifier(runner.module), _embedded(runner, runner.example)
    if embedded is None:
        return None
    alone, whole = _through(head, embedded, 0.0), runner.forward(runner.example)
    close = 1e-2 if runner.device == "cuda" else 1e-4
    same = alone.shape == whole.shape and np.allclose(alone, whole, rtol=close, atol=close)
    return head if same else None


def _embedded(runner: Runner, pixels: torch.Tensor) -> torch.Tensor | None:
    """What enters the last linear layer."""
    with Taps(runner.module, pooled=False) as taps:
        runner.forward(pixels)
    return None if taps.classifier_input is None else taps.classifier_input.float()


@torch.inference_mode()
def _through(head: nn.Linear, embedded: torch.Tensor, share: float) -> np.ndarray:
    """The logits of embeddings of which a share is dropped."""
    dropped = functional.dropout(embedded, share, training=True)
    return head(dropped).float().cpu().numpy()
