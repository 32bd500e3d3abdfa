"""The local disk: space that a file needs, and its failures as one line."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stamp.core.errors import UserError, disk_is_full


def require_space(name: str, needed: float, folder: Path) -> None:
    """Refuse what will not fit on the disk of a folder: ``needed`` bytes and 1 % more."""
    free = shutil.disk_usage(folder).free
    if free < needed * 1.01:
        raise UserError(
            f"{name}: needs {readable_bytes(needed)}, {readable_bytes(free)} are free on {folder}"
        )


def readable_bytes(count: float) -> str:
    """A number of bytes as `1.2 GB`."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count:.0f} B"


@contextmanager
def disk_errors(final: Path) -> Iterator[None]:
    """Failures of the disk in one line; what has arrived stays for the next run."""
    try:
        yield
    except OSError as error:
        if disk_is_full(error):
            raise UserError(
                f"{final}: no space left on the disk; make room and run again, "
                "it resumes where it stopped"
            ) from None
        raise UserError(
            f"{error.filename2 or error.filename or final}: {error.strerror or error}"
        ) from None
