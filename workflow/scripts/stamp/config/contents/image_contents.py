"""Whether a user's own images are still what they were: by sizes and times, in doubt by content.

Reading a hundred thousand images for every plan would take minutes, so a plan reads none as long
as no size, time or inode changed. The job that finds the images reads each once and keeps what it
held. From then on a plan reads those that look changed. If they hold the same as before, nothing
is redone. A plan compares a *token*: the digest of sizes and times that the images had when they
were first found, or that of their contents when these were found changed.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from stamp.core.atomic_file import atomic_write
from stamp.core.file_digest import Digests

THREADS = 4


def token(paths: Sequence[str], record: Path) -> str:
    """What stands for the contents of these images in a plan."""
    try:
        kept = json.loads(record.read_text())
        before, first = kept["contents"], str(kept["token"])
    except (OSError, ValueError, KeyError, TypeError):
        return _looks(paths)
    now = contents(paths, record)
    return first if now == before else now


def keep(paths: Sequence[str], record: Path, planned: str) -> None:
    """Read what was not read yet, and keep what the images held with the token ``planned``."""
    text = json.dumps({"token": planned, "contents": contents(paths, record)})
    with atomic_write(record) as part:
        part.write_text(text)


def contents(paths: Sequence[str], record: Path) -> str:
    """A digest of the images' names and contents; those that look as before are not read."""
    digests = Digests(record.with_name(f"{record.stem}.digests.json"), large=0)

    def one(find: Callable[[str], str | None], path: str) -> str | None:
        with suppress(OSError):
            return find(path)
        return "absent"

    images = sorted(set(paths))
    found = [one(digests.remembered, path) for path in images]
    unread = [place for place, digest in enumerate(found) if digest is None]
    with ThreadPoolExecutor(THREADS) as workers:
        read = workers.map(lambda place: one(digests.of, images[place]), unread)
        for place, digest in zip(unread, read, strict=True):
            found[place] = digest
    digests.save()
    state = hashlib.sha256()
    for path, digest in zip(images, found, strict=True):
        state.update(f"{path}\0{digest}\0".encode())
    return state.hexdigest()[:16]


def _looks(paths: Sequence[str]) -> str:
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
