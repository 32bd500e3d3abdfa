"""Logits of labeled source images under the changes of a study's stress tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

from stamp.config.registries.stress_changes import MODULE
from stamp.inference.extra_outputs.output_files import OutputKinds
from stamp.inference.extra_outputs.runner import ArrayStream, Chunk, Runner


def stress_tests(changes: Sequence[str]) -> OutputKinds:
    """The kinds of outputs of some changes, each a kind by its name.

    Each depends on a digest of its own code, see :func:`settings`.
    """
    makers = {name: _changed(name) for name in changes}
    return OutputKinds(makers, {name: ("images", _code(name)) for name in changes})


def settings(codes: Mapping[str, str], images: int) -> dict[str, Any]:
    """What decides the outputs: how many images, and a digest of the code of each change.

    Changes are found by name, so that a new or an edited one leaves those under all others alone.
    """
    return {"images": images, **{_code(name): digest for name, digest in codes.items()}}


def _code(name: str) -> str:
    return f"code of {name}"


def _changed(name: str) -> Callable[[Runner], ArrayStream]:
    """The maker of the logits of the selected images under one change."""

    def make(runner: Runner) -> ArrayStream:
        change = getattr(import_module(MODULE), name)
        rows = runner.images.rows
        # a change that these images can't take says so before anything is written
        change(runner.example, runner.images.selected_ids[:2], runner.seed)

        def chunks() -> Iterator[Chunk]:
            yield runner.rows_chunk
            for start, ids, pixels in runner.batches(rows):
                yield Chunk("logits", runner.logits(change(pixels, ids, runner.seed)), start)

        arrays = {"logits": runner.logits_shape(), "rows": runner.rows_shape}
        return ArrayStream(arrays, chunks(), len(rows), len(rows))

    return make
