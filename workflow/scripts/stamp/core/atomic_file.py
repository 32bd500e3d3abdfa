"""Files that appear whole or not at all, and what killed processes left of them."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from stamp.core.errors import UserError, disk_is_full

# Errors about files and folders that a user named: no bug of ours.
REFUSED = (PermissionError, NotADirectoryError, IsADirectoryError, FileExistsError)
PART = re.compile(r"\..+\.([0-9a-f]{8})\.(\d+)\.part")
UNTOUCHED = 7 * 86400.0  # seconds after which nobody writes a file of another machine any more


def part_of(final: Path) -> Path:
    """The file beside ``final`` that this process writes to: its name says whose it is."""
    return final.with_name(f".{final.name}.{_machine()}.{os.getpid()}.part")


@cache
def _machine() -> str:
    """Where process numbers count: eight digits for this machine, or this container of it."""
    try:
        space = os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        space = 0
    return hashlib.sha256(f"{os.uname().nodename} {space}".encode()).hexdigest()[:8]


def sweep(folder: Path) -> None:
    """Remove what killed processes left half written in a folder.

    That is a part whose process is gone, or one of another machine's that nobody wrote to for a
    week: whether its process lives can't be known from here.
    """
    for path in folder.glob(".*.part"):
        if (named := PART.fullmatch(path.name)) is None:
            continue
        machine, process = named[1], int(named[2])
        with suppress(OSError):  # another process may sweep too
            if machine == _machine():
                left = not _alive(process)
            else:
                left = time.time() - path.stat().st_mtime > UNTOUCHED
            if left:
                path.unlink()


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True


@cache
def _swept(folder: Path) -> None:
    """Sweep a folder, the first time that this process writes into it."""
    sweep(folder)


@contextmanager
def atomic_write(path: str | Path) -> Iterator[Path]:
    """A path beside ``path`` to write to; it takes its place if the block ends well, else goes."""
    final = Path(path)
    beside = part_of(final)
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        _swept(final.parent)
        yield beside
        os.chmod(beside, 0o666 & ~_umask())  # some libraries keep their files to the user alone
        os.replace(beside, final)
    except UserError:
        raise
    except Exception as error:
        if disk_is_full(error):
            raise UserError(
                f"{final}: no space left on the disk; nothing was written: make room and run again"
            ) from None
        if isinstance(error, REFUSED) and _about(error, beside, final):
            reason = error.strerror or "permission denied"
            raise UserError(f"{final}: can't be written: {reason}") from None
        raise
    finally:
        with suppress(OSError):  # where the folder itself can't be
            beside.unlink()


@cache
def _umask() -> int:
    """The user's umask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _about(error: OSError, beside: Path, final: Path) -> bool:
    """Whether an error is of the file that is written, or of a folder above it."""
    return str(beside) in str(error) or error.filename in map(str, final.parents)
