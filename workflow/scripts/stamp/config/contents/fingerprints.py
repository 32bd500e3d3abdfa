"""What a user's own tables and images are right now, as digests that a plan compares.

Data sets that are downloaded change with their checksums; those that a user puts into a folder
change whenever the user edits them. Their adapters say what the index is made of (``tables``, or
``names`` where that is the names of all images) and, of data sets of the user's own, where the
images are (``files``). Tables count by their content. So do images, which may be many: see
:mod:`stamp.config.contents.image_contents`.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from stamp.config.contents import image_contents
from stamp.core.errors import UserError
from stamp.core.file_digest import planned

OWN = ("csv", "folder")  # adapters whose images a user may edit


def of_index(adapter: str, options: Mapping[str, Any], root: str) -> str | None:
    """A digest of what the index is made of; None for adapters that read no table."""
    return _index(adapter, json.dumps(options, sort_keys=True), root)


def of_images(adapter: str, options: Mapping[str, Any], root: str, record: Path) -> str | None:
    """What stands for the content of the images; None where nobody edits them.

    ``record`` is where the job that found them put what they held.
    """
    return _images(adapter, json.dumps(options, sort_keys=True), root, record)


def own_tables(adapter: str, options: Mapping[str, Any], root: str) -> list[str]:
    """The user's own files that an index is made of: tables, or the folder whose names it lists.

    A table that lies in the folder of the images is there with it.
    """
    if adapter not in OWN:
        return []
    module, (folder,) = _adapter(adapter), own_folders(adapter, options, root)
    if not hasattr(module, "tables"):
        return [folder]
    tables = [os.path.normpath(table) for table in module.tables(options, Path(root))]
    return [folder if Path(table).is_relative_to(folder) else table for table in tables]


def own_folders(adapter: str, options: Mapping[str, Any], root: str) -> list[str]:
    """The folder that a user's own images are below."""
    if adapter not in OWN:
        return []
    return [os.path.normpath(Path(root, str(options.get("images", "."))))]


@cache
def _index(adapter: str, options: str, root: str) -> str | None:
    """What can't be read is no mistake of the plan: the job that reads it says what is wrong."""
    module = _adapter(adapter)
    try:
        if hasattr(module, "names"):
            return str(module.names(json.loads(options), Path(root)))
        if not hasattr(module, "tables"):
            return None
        contents = [planned(table) for table in module.tables(json.loads(options), Path(root))]
    except (UserError, OSError):
        return "unreadable"
    return hashlib.sha256(" ".join(contents).encode()).hexdigest()[:16]


@cache
def _images(adapter: str, options: str, root: str, record: Path) -> str | None:
    if adapter not in OWN:
        return None
    try:
        files = _adapter(adapter).files(json.loads(options), Path(root))
    except (UserError, OSError):
        return "unreadable"
    return image_contents.token(files, record)


def _adapter(name: str) -> Any:
    return importlib.import_module(f"stamp.data.adapters.{name}")
