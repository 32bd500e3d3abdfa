"""The SHA-256 of files that a user may replace; that of a large file is remembered.

A file counts by its content. Reading gigabytes for every plan and every job would be slow, so the
digest of a large file is kept with its size, times and inode: as long as these are the same, the
file is not read again. Losing what was kept costs time and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from stamp.core.atomic_file import atomic_write
from stamp.core.errors import UserError

VARIABLE = "STAMP_DIGESTS"  # the file that remembers, for this process and the jobs it starts
LARGE = 1 << 20  # bytes; smaller files are read each time
SETTLED = 2_000_000_000  # nanoseconds after which a further change must show in a file's times

State = list[int]


def remember_in(file: Path) -> None:
    """Let this process and those that it starts remember digests in ``file``."""
    os.environ[VARIABLE] = str(file.absolute())


class Digests:
    """SHA-256 of files by their paths, remembered in a small JSON file if there is one.

    Several processes may remember in one file at once: it is replaced as a whole, and what one of
    them loses is read again.
    """

    def __init__(self, file: Path | None, large: int = LARGE):
        self.file, self.large = file, large
        self.known = self._read()
        self.found: dict[str, Any] = {}

    def of(self, path: str | Path) -> str:
        """The SHA-256 of a file's content."""
        place, state = os.path.abspath(path), _state(path)
        told = self._told(place, state)
        if told is not None:
            return told
        digest = read_sha256(path)
        # a file that was written a moment ago may change again within the same tick of its clock
        settled = time.time_ns() - max(state[1:3]) > SETTLED
        if state[0] >= self.large and settled and _state(path) == state:
            self.found[place] = [state, digest]
        return digest

    def remembered(self, path: str | Path) -> str | None:
        """The SHA-256 of a file that looks as it did when it was read; None for others."""
        return self._told(os.path.abspath(path), _state(path))

    def _told(self, place: str, state: State) -> str | None:
        for memory in (self.found, self.known):
            match memory.get(place):
                case [known, str(digest)] if known == state:
                    return digest
        return None

    def save(self) -> None:
        """Keep what was found; where that can't be written, it is read again next time."""
        if self.file is None or not self.found:
            return
        with suppress(OSError, UserError), atomic_write(self.file) as part:
            self.known = {**self._read(), **self.found}
            part.write_text(json.dumps(self.known, sort_keys=True))
            self.found = {}

    def _read(self) -> dict[str, Any]:
        try:
            kept = json.loads(self.file.read_text()) if self.file else {}
        except (OSError, ValueError):
            return {}
        return kept if isinstance(kept, dict) else {}


_memories: dict[str | None, Digests] = {}


def sha256_of(path: str | Path) -> str:
    """The SHA-256 of a file's content, as ``sha256sum`` prints it."""
    file = os.environ.get(VARIABLE)
    if file not in _memories:
        _memories[file] = Digests(Path(file) if file else None)
    memory = _memories[file]
    digest = memory.of(path)
    memory.save()
    return digest


def planned(path: str | Path) -> str:
    """The SHA-256 of a file for a plan; a file that can't be read yet is no mistake of the plan."""
    try:
        return sha256_of(path)
    except OSError:
        return "absent"


def check_sha256(path: str | Path, expected: str, why: str = "is expected") -> None:
    """Refuse a file whose content is not the expected, by name and both digests."""
    found = sha256_of(path)
    if found != expected:
        raise UserError(f"{path}: its sha256 is {found}, but {expected} {why}")


def _state(path: str | Path) -> State:
    """What tells of a changed file without reading it."""
    found = os.stat(path)
    return [found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino]


def read_sha256(path: str | Path) -> str:
    """The SHA-256 of a file, read whatever is remembered of it."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
