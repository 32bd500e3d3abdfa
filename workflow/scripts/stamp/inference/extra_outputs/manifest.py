"""The manifest of one model's extra outputs, and how they are read.

A manifest lists every kind that was asked for, with its file or with the reason why the model has
none. Nothing here needs torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from stamp.config.registries.extra_outputs import OF_TARGETS
from stamp.core.artifacts import (
    array_metadata,
    check_metadata,
    ids_digest,
    read_arrays,
    read_json,
    write_json,
)
from stamp.core.errors import UserError

SOURCE, TARGETS = "source", "targets"  # whose images a kind is of
PRECOMPUTED = "its logits are precomputed, and nothing can be run"


class NotAvailable(LookupError):
    """A kind of extra output that a model can't give; its text is the reason."""


def write_manifest(
    path: str | Path,
    model: str,
    study: str,
    entries: Mapping[str, Any],
    files: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write the manifest of a model's extra outputs, one entry per kind; ``files`` are its own."""
    write_json(Path(path), {"model": model, "study": study, **files, "extra_outputs": entries})


def write_precomputed(path: str | Path, model: str, study: str, kinds: Sequence[str]) -> None:
    """Write the manifest of a model with precomputed logits, which can't be run."""
    write_manifest(path, model, study, {kind: {"reason": PRECOMPUTED} for kind in kinds})


def read_output(
    manifest: str | Path, kind: str, ids: Sequence[str] | None = None
) -> dict[str, np.ndarray]:
    """The arrays of one kind.

    With the image ``ids`` of the whole source view (or, for a kind of the targets, of all targets'
    views one after the other), outputs on other images are refused. A kind that the model can't
    give raises :class:`NotAvailable` with the reason.
    """
    record = read_json(manifest)
    if kind not in record["extra_outputs"]:
        raise NotAvailable(f"the extra output '{kind}' was not asked for")
    entry = record["extra_outputs"][kind]
    if "reason" in entry:
        raise NotAvailable(entry["reason"])
    file = Path(manifest).parent / entry["file"]
    if not file.is_file():
        raise UserError(f"{file}: is gone; delete {manifest} and run again")
    view = TARGETS if kind in OF_TARGETS else SOURCE
    expected = {"model": record["model"], "view": view, "kind": kind}
    if "key" in entry:
        expected["key"] = entry["key"]
    arrays = read_arrays(file, **expected)
    if ids is not None:
        own = [ids[row] for row in arrays["rows"]] if "rows" in arrays else ids
        check_metadata(file, array_metadata(file), {"ids": ids_digest(own)})
    return arrays


def note_of(manifest: str | Path, kind: str) -> str:
    """What a reader must know of a kind, such as a dropout that is not the model's own."""
    return read_json(manifest)["extra_outputs"].get(kind, {}).get("note", "")
