"""What a result was made from, as digests: a result is kept as long as they do not change."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def key_of(made_from: Mapping[str, Any]) -> str:
    """A digest of everything that a result depends on."""
    text = json.dumps(made_from, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def file_digest(path: str | Path) -> str:
    """The SHA-256 of a file's content."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digests(*files: str | Path | None) -> list[str]:
    """The SHA-256 of each file that is given."""
    return [file_digest(file) for file in files if file]
