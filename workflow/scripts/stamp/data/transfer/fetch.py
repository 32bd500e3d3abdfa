"""Download one file: resume it, try again after failures, verify it, then give it its name."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tenacity
from filelock import FileLock, Timeout

from stamp.core.errors import UserError, say
from stamp.data.credentials import redact
from stamp.data.transfer import http
from stamp.data.transfer.disk import disk_errors, require_space
from stamp.data.transfer.http import TryAgain
from stamp.data.transfer.ledger import finished, progress_bar, remember, size_and_time
from stamp.data.transfer.part import Part
from stamp.data.transfer.remote import Remote, refuse_insecure

LONGEST_PAUSE = 60.0


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a server is waited for.

    ``attempts`` counts failures in a row that brought no new byte, with a pause between them that
    doubles from ``pause`` seconds. A silent server is given up after ``timeout`` seconds.
    """

    attempts: int = 6
    pause: float = 1.0
    timeout: float = 60.0


PATIENCE = Patience()


def fetch(
    remote: Remote,
    folder: Path,
    auth: tuple[str, str] | None = None,
    patience: Patience = PATIENCE,
    quiet: bool = False,
) -> Path:
    """The path of a downloaded and verified file; only what is missing of it is transferred.

    A ``quiet`` download is one of many small ones: it has no bar, and is not kept in the ledger.
    """
    final = Path(folder) / remote.name
    refuse_insecure(remote, auth)
    before = size_and_time(final)
    if finished(remote, Path(folder), quiet):
        return final
    with disk_errors(final):
        final.parent.mkdir(parents=True, exist_ok=True)
        with _alone(final):
            if size_and_time(final) != before and finished(remote, Path(folder), quiet):
                return final
            part = Part(final, remote)
            with progress_bar(final.name, remote.size, quiet) as meter:
                _transfer(remote, part, auth, patience, meter)
            _verify(remote, part)
            part.finish(final)
            if not quiet:
                remember(Path(folder), remote, final, part.found())
    return final


def _transfer(
    remote: Remote,
    part: Part,
    auth: tuple[str, str] | None,
    patience: Patience,
    meter: Any,
) -> None:
    """Attempts until all bytes are here; those that bring new bytes are not counted."""
    failures, furthest = 0, part.size

    def attempt() -> None:
        nonlocal failures, furthest
        try:
            _attempt(session, remote, part, auth, patience.timeout, meter)
        except TryAgain:
            failures = 0 if part.size > furthest else failures + 1
            furthest = max(furthest, part.size)
            raise

    def wait(state: tenacity.RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        delay = min(LONGEST_PAUSE, patience.pause * 2.0 ** max(0, failures - 1))
        delay *= random.uniform(0.5, 1.5)
        return max(delay, getattr(error, "after", None) or 0.0)

    with http.Session() as session, http.redacted_logs():
        try:
            tenacity.Retrying(
                retry=tenacity.retry_if_exception_type(TryAgain),
                stop=lambda _: failures >= patience.attempts,
                wait=wait,
                sleep=tenacity.nap.sleep,
                reraise=True,
            )(attempt)
        except TryAgain as error:
            raise UserError(
                f"{redact(remote.url)}: {error} ({patience.attempts} attempts)"
            ) from None


def _attempt(
    session: http.Session,
    remote: Remote,
    part: Part,
    auth: tuple[str, str] | None,
    timeout: float,
    meter: Any,
) -> None:
    """One request, and as many bytes as arrive; :class:`TryAgain` if some are missing."""
    with http.get(session, remote, part.request(), auth, timeout) as response:
        http.check_status(remote, response)
        if response.status_code == 416:
            if part.size and part.size == (http.content_range(response)[1] or part.total):
                return
            part.discard()
            raise TryAgain("the server could not continue the download")
        http.refuse_page(remote, response)
        if response.status_code == 206:
            if not part.continued_by(response):
                part.discard()
                raise TryAgain("the file changed on the server")
            total = part.total or http.content_range(response)[1]
        else:
            total = http.content_length(remote, response)
        if None not in (total, remote.size) and total != remote.size:
            part.discard()
            raise UserError(f"{remote.name}: {remote.size} bytes expected, the server has {total}")
        total = total if total is not None else remote.size
        if response.status_code == 200:
            part.start(response, total)
        if total is not None:
            require_space(remote.name, total - part.size, part.path.parent)
        meter.total, meter.n, meter.initial = total, part.size, part.size
        part.receive(http.blocks(response), meter)
    if total is not None and part.size < total:
        raise TryAgain(f"the connection was cut after {part.size} of {total} bytes")


def _verify(remote: Remote, part: Part) -> None:
    """Refuse and delete a file that has not the expected size and digests."""
    if remote.size is not None and part.size != remote.size:
        size = part.size
        part.discard()
        raise UserError(f"{remote.name}: {remote.size} bytes expected, {size} came; run again")
    found = part.found()
    for kind, expected in remote.digests.items():
        if found[kind] != expected:
            part.discard()
            raise UserError(
                f"{remote.name}: {kind} {expected} expected, {found[kind]} found; "
                "it was deleted: run again, or correct the checksum"
            )


@contextmanager
def _alone(final: Path) -> Iterator[None]:
    """One process at a time for a file; the next one finds it finished."""
    path = final.with_name(f".{final.name}.lock")
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        say(f"stamp: {final.name} is being downloaded already: waiting")
        lock.acquire()
    try:
        yield
        # Who waits with the old lock and who comes with a new one both find the file finished.
        path.unlink(missing_ok=True)
    finally:
        lock.release()
