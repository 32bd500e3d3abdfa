"""Code of the user's: where it is and what it is, found without running any of it."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from pathlib import Path

from stamp.core.errors import UserError


def source_files(module: str, where: str) -> list[Path]:
    """The Python files that a module may run: its own, or all of the package that it is in.

    The folder of the run is searched first, then what is installed. Only the first part of a dotted
    name is looked up, since looking up more would import it.
    """
    top, _, rest = module.partition(".")
    spec = PathFinder.find_spec(top, [str(Path.cwd()), *sys.path])
    if spec is None:
        raise UserError(f"{where}: no module '{top}' in {Path.cwd()} or among what is installed")
    folders = [Path(folder) for folder in spec.submodule_search_locations or ()]
    if not folders:
        if rest or spec.origin is None:
            raise UserError(f"{where}: '{top}' is no package: '{module}' can't be in it")
        return [Path(spec.origin)]
    below = Path(*rest.split(".")) if rest else Path()
    there = [folder / below for folder in folders]
    if rest and not any(path.with_suffix(".py").is_file() or path.is_dir() for path in there):
        raise UserError(f"{where}: the package '{top}' has no module '{rest}'")
    return sorted(file for folder in folders for file in folder.rglob("*.py"))


def digest(files: Sequence[Path]) -> str:
    """A digest of files' contents."""
    state = hashlib.sha256()
    for file in files:
        state.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return state.hexdigest()[:16]
