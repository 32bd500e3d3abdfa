"""What was downloaded and verified before, so that it is not read again."""

from __future__ import annotations

import hashlib
from contextlib import nullcontext, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from filelock import FileLock

from stamp.core.artifacts import write_json
from stamp.core.progress import bar
from stamp.data.transfer.http import BLOCK
from stamp.data.transfer.part import read_record
from stamp.data.transfer.remote import Remote

LEDGER = ".stamp-downloads.json"


def finished(remote: Remote, folder: Path, quiet: bool) -> bool:
    """Whether the file is here as it should be; it is read only if that is not known already.

    Without a digest to hold it against, it should be what was downloaded from the same URL; a file
    that somebody put there is taken as it is.
    """
    final = folder / remote.name
    seen = size_and_time(final)
    if seen is None or remote.size not in (None, seen[0]):
        return False
    known = read_record(folder / LEDGER).get(remote.name)
    known = known if isinstance(known, dict) else {}
    expected = remote.digests
    if not expected:
        if not known:
            return True
        if known.get("source") != remote.source or "sha256" not in known:
            return False
        expected = {"sha256": known["sha256"]}
    untouched = (known.get("size"), known.get("mtime")) == seen
    if untouched and all(known.get(kind) == digest for kind, digest in expected.items()):
        return True
    found = _digests_of(final, sorted({"sha256", *expected}), quiet)
    if any(found[kind] != digest for kind, digest in expected.items()):
        return False
    if not quiet:
        with suppress(OSError):
            remember(folder, remote, final, found)
    return True


def size_and_time(path: Path) -> tuple[int, int] | None:
    """Size and modification time of a file; None if there is none."""
    if not path.is_file():
        return None
    found = path.stat()
    return found.st_size, found.st_mtime_ns


def _digests_of(path: Path, kinds: list[str], quiet: bool) -> dict[str, str]:
    hashes = {kind: hashlib.new(kind, usedforsecurity=False) for kind in kinds}
    size = path.stat().st_size
    with open(path, "rb") as file, progress_bar(f"checking {path.name}", size, quiet) as meter:
        while block := file.read(BLOCK):
            for one in hashes.values():
                one.update(block)
            meter.update(len(block))
    return {kind: one.hexdigest() for kind, one in hashes.items()}


def remember(folder: Path, remote: Remote, final: Path, found: dict[str, str]) -> None:
    """Note a file that was verified, with its digests."""
    size, mtime = size_and_time(final) or (0, 0)
    with FileLock(folder / f"{LEDGER}.lock"):
        known = read_record(folder / LEDGER)
        known[remote.name] = {"source": remote.source, "size": size, "mtime": mtime, **found}
        write_json(folder / LEDGER, known)


def progress_bar(name: str, total: int | None, quiet: bool) -> Any:
    """A progress bar in bytes; none where it is quiet."""
    if quiet:
        return nullcontext(SimpleNamespace(update=lambda count: None))
    return bar(None, name, total or 0, "B")
