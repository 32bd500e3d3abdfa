"""What the user supplies in the place of a model: which file of outputs serves which view.

Planning asks this, so nothing is imported here.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stamp.core.errors import UserError, suggest

PROBABILITIES = {"multiclass": "softmax", "multilabel": "sigmoid"}


def file_of(block: Mapping[str, Any], view: str) -> Path:
    """The file of outputs for the images of a view."""
    files = block.get("files", {})
    if view not in files and "file" not in block:
        raise UserError(f"files: none is given for the view '{view}': {suggest(view, files)}")
    return Path(files.get(view) or block["file"])


def ids_file(path: Path) -> Path | None:
    """The text file with the image ids of an array; tables have theirs inside."""
    return path.with_suffix(".txt") if path.suffix == ".npy" else None
