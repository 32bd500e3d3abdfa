"""The files of one model's extra outputs: made where they are missing, kept between runs.

The files are no outputs of a rule. Each lies beside a small record with the key of what it was made
from, and is made again only when that key changes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from stamp.core.array_writer import ArrayWriter
from stamp.core.artifacts import atomic_write, ids_digest, read_json, write_json
from stamp.core.errors import UserError
from stamp.core.file_digest import read_sha256
from stamp.core.progress import bar
from stamp.inference.extra_outputs.runner import ArrayStream, Runner, Unavailable
from stamp.inference.provenance import key_of


@dataclass(frozen=True, slots=True)
class OutputKinds:
    """Kinds of outputs by name: the function that makes each, and the settings it depends on."""

    makers: Mapping[str, Callable[[Runner], ArrayStream]]
    settings: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class OutputFiles:
    """Where one model's extra outputs lie, and what they are made from.

    ``made_from`` is what all kinds depend on. Of the ``settings`` (with those ``OF_STUDY`` of
    ``config.registries``) each kind depends on its own. ``metadata`` goes into every file.
    """

    folder: Path
    model: str
    made_from: Mapping[str, Any]
    settings: Mapping[str, Any]
    metadata: Mapping[str, Any]
    known: OutputKinds

    def make(self, kinds: Sequence[str], load: Callable[[], Runner]) -> dict[str, Any]:
        """The manifest's entry of each kind; the model is loaded only if one has to be made."""
        entries: dict[str, Any] = {}
        runner: Runner | None = None
        for kind in bar(kinds, f"{self.model} extra outputs", len(kinds), "kind"):
            key = self._key(kind)
            entry = self.kept(kind, key)
            if entry is None:
                runner = runner or load()
                entry = self._made(kind, key, runner)
            entries[kind] = entry
        return entries

    def kept(self, kind: str, key: str) -> dict[str, Any] | None:
        """The entry of a kind that was made from the same before, if its file is undamaged."""
        record = self._record(kind)
        if not record.is_file():
            return None
        entry = read_json(record)
        if entry.get("key") != key:
            return None
        if "reason" in entry:
            return entry
        file = self.folder / entry["file"]
        undamaged = file.is_file() and read_sha256(file) == entry["digest"]
        return entry if undamaged else None

    def _record(self, kind: str) -> Path:
        return self.folder / kind / f"{self.model}.json"

    def _key(self, kind: str) -> str:
        own = {setting: self.settings[setting] for setting in self.known.settings[kind]}
        return key_of({**self.made_from, "kind": kind, "settings": own})

    def _made(self, kind: str, key: str, runner: Runner) -> dict[str, Any]:
        """Make one kind and its record; what the model can't give is a reason without a file.

        Where memory runs out, the kind is made again from its first image with smaller batches.
        """
        began, used = time.perf_counter(), time.process_time()
        runner.parts = runner.first_parts
        while (entry := self._tried(kind, key, runner)) is None:
            runner.take_smaller_batches()
        if "reason" not in entry:
            entry["seconds"] = round(time.perf_counter() - began, 3)
            entry["cpu_seconds"] = round(time.process_time() - used, 3)
        entry["key"] = key
        write_json(self._record(kind), entry)
        return entry

    def _tried(self, kind: str, key: str, runner: Runner) -> dict[str, Any] | None:
        """The entry of a kind, or of why there is none; None where memory ran out."""
        try:
            try:
                stream = self.known.makers[kind](runner)
            except UserError as mistake:
                return _reason(mistake)
            return self._written(kind, key, stream, runner)
        except Unavailable as mistake:
            return _reason(mistake)
        except torch.OutOfMemoryError:
            return None

    def _written(self, kind: str, key: str, stream: ArrayStream, runner: Runner) -> dict[str, Any]:
        """Compute a stream into its file; what the manifest says of it."""
        file = Path(kind) / f"{self.model}.safetensors"
        selected = "rows" in stream.arrays
        ids = runner.images.selected_ids[: stream.images] if selected else runner.images.ids
        with atomic_write(self.folder / file) as part:
            card = {**self.metadata, "key": key, "kind": kind, "ids": ids_digest(ids)}
            writer = ArrayWriter(part, stream.arrays, card)
            for chunk in stream.chunks:
                writer.put(chunk.array, chunk.values, chunk.row, chunk.plane)
            writer.close()
        return {
            "file": str(file),
            "digest": read_sha256(self.folder / file),
            "images": stream.images,
            "forwarded": stream.forwarded,
            **stream.notes,
        }


def _reason(mistake: UserError) -> dict[str, Any]:
    return {"reason": str(mistake).removeprefix("not available: ")}
