"""Extra inference outputs of one model, kept on disk: their manifest, and how they are read.

A manifest lists every kind that was asked for, with its file or with the reason why the model has
none. The files are no outputs of a rule: each is kept beside a small record with the key of what it
was made from, and made again only when that key changes. Nothing here needs torch.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stamp.config.extra_outputs import OF_TARGETS
from stamp.core.artifacts import (
    array_metadata,
    check_metadata,
    ids_digest,
    read_arrays,
    read_json,
)
from stamp.core.errors import UserError

VIEW, TARGETS = "source", "targets"
PRECOMPUTED = "its outputs were given, and nothing can be run"


class NotAvailable(LookupError):
    """A kind of pass that a model can't give; its text is the reason."""


def read_output(
    manifest: str | Path, kind: str, ids: Sequence[str] | None = None
) -> dict[str, np.ndarray]:
    """The arrays of one kind of pass.

    With the image ``ids`` of the whole source view (or of all targets' views, one after the other,
    for a kind of theirs), passes of other images are refused. A kind that the model can't give
    raises :class:`NotAvailable` with the reason.
    """
    record = read_json(manifest)
    if kind not in record["extra_outputs"]:
        raise NotAvailable(f"the pass '{kind}' was not asked for")
    entry = record["extra_outputs"][kind]
    if "reason" in entry:
        raise NotAvailable(entry["reason"])
    file = Path(manifest).parent / entry["file"]
    if not file.is_file():
        raise UserError(f"{file}: is gone; delete {manifest} and run again")
    view = TARGETS if kind in OF_TARGETS else VIEW
    expected = {"model": record["model"], "view": view, "kind": kind}
    if "key" in entry:
        expected["key"] = entry["key"]
    arrays = read_arrays(file, **expected)
    if ids is not None:
        own = [ids[row] for row in arrays["rows"]] if "rows" in arrays else ids
        check_metadata(file, array_metadata(file), {"ids": ids_digest(own)})
    return arrays


def note_of(manifest: str | Path, kind: str) -> str:
    """What is to know of a kind of pass, such as a dropout that the model itself has not."""
    return read_json(manifest)["extra_outputs"].get(kind, {}).get("note", "")


def key_of(made_from: Mapping[str, Any]) -> str:
    """A digest of everything that decides a pass."""
    text = json.dumps(made_from, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def file_digest(path: str | Path) -> str:
    """The SHA-256 of a file's content."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digests(*files: str | Path | None) -> list[str]:
    """The SHA-256 of those of some files that there are."""
    return [file_digest(file) for file in files if file]


def kept(folder: Path, kind: str, model: str, key: str) -> dict[str, Any] | None:
    """The entry of a pass that is there already, made from the same, with its file unharmed."""
    record = folder / kind / f"{model}.json"
    if not record.is_file():
        return None
    entry = read_json(record)
    if entry.get("key") != key:
        return None
    if "reason" in entry:
        return entry
    file = folder / entry["file"]
    there = file.is_file() and file_digest(file) == entry["digest"]
    return entry if there else None
