"""The state of a training run after its last epoch, on disk, so that a killed run resumes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from stamp.core.artifacts import atomic_write


def read_checkpoint(path: Path, digest: str) -> dict[str, Any] | None:
    """The state that a run with this digest saved; None if there is none that can be read."""
    if not path.is_file():
        return None
    try:
        saved = torch.load(path, map_location="cpu", weights_only=True)
    except Exception:
        return None
    matches = isinstance(saved, dict) and saved.get("digest") == digest
    return saved["state"] if matches else None


def write_checkpoint(path: Path, digest: str, state: Mapping[str, Any]) -> None:
    """Write a run's state, whole or not at all."""
    # torch's own way to a file hides why it could not write
    with atomic_write(path) as part, open(part, "wb") as file:
        torch.save({"digest": digest, "state": state}, file)


def drop_checkpoint(path: Path) -> None:
    """Remove a checkpoint."""
    path.unlink(missing_ok=True)
