"""The project that a command works in, and the user's paths as seen from there."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from stamp.cli.terminal.arguments import Place
from stamp.config.plan import CONFIG
from stamp.core.errors import UserError


def project_folder(named: Path | None) -> Path:
    """The folder that the user named, or the nearest one above with a configuration, or this."""
    here = Path.cwd()
    if named is not None:
        if not (named / CONFIG).is_file():
            raise UserError(f"--project {named}: no project, since it has no {CONFIG}")
        return named.resolve()
    return next((one for one in (here, *here.parents) if (one / CONFIG).is_file()), here)


def seen_from(root: Path, given: argparse.Namespace) -> None:
    """Change the paths among the arguments to ones that mean the same from ``root``.

    A ``Place`` may be a name too: it is a path where there is such a file or folder.
    """
    here = Path.cwd()
    for name, value in vars(given).items():
        if name != "project":
            setattr(given, name, _seen(value, here, root))


def _seen(value: Any, here: Path, root: Path) -> Any:
    if isinstance(value, list):
        return [_seen(one, here, root) for one in value]
    if isinstance(value, Path):
        return value if value.is_absolute() or here == root else Path(_path(here / value, root))
    if isinstance(value, Place):
        inside = here != root and not os.path.isabs(value) and (here / value).exists()
        return _path(here / value, root) if inside else str(value)
    return value


def _path(path: Path, root: Path) -> str:
    return os.path.relpath(path, root)
