"""What a user's own table and images are right now, as digests that a plan compares.

Downloaded data sets change with their checksums; a user's own change whenever the user edits them.
The adapters that read those say what their index is made of (``content``) and where their images
are (``files``). Tables count by their bytes; images, which may be many, by name, size and time of
change.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from stamp.core.errors import UserError

OWN = ("csv", "folder")  # adapters whose data a user edits


def of_index(adapter: str, options: Mapping[str, Any], root: str) -> str | None:
    """A digest of what the index is made of; None for data sets that nobody edits."""
    return _found("content", adapter, json.dumps(options, sort_keys=True), root)


def of_images(adapter: str, options: Mapping[str, Any], root: str) -> str | None:
    """A digest of the names, sizes and times of the images; None where nobody edits them."""
    return _found("files", adapter, json.dumps(options, sort_keys=True), root)


def of_file(path: Path) -> str:
    """A digest of a file's bytes."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def of_stats(paths: Iterable[str]) -> str:
    """A digest of each path with its size and time of change, absent ones as such."""
    state = hashlib.sha256()
    for path in paths:
        try:
            found = os.stat(path)
            about = f"{found.st_size} {found.st_mtime_ns}"
        except OSError:
            about = "absent"
        state.update(f"{path}\0{about}\0".encode())
    return state.hexdigest()[:16]


@cache
def _found(what: str, adapter: str, options: str, root: str) -> str | None:
    """What can't be read is no mistake of the plan: the job that reads it says what is wrong."""
    if adapter not in OWN:
        return None
    module = importlib.import_module(f"stamp.data.adapters.{adapter}")
    try:
        found = getattr(module, what)(json.loads(options), Path(root))
    except (UserError, OSError):
        return "unreadable"
    return found if isinstance(found, str) else of_stats(found)
