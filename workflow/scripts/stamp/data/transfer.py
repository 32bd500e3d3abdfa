"""Files from the network: resumed, retried, verified, and under their own name only when whole.

Bytes arrive in ``<name>.part``; ``<name>.part.json`` says which version of which file they belong
to, so that a later run asks for the rest of the same version only. What was verified once is kept
in ``.stamp-downloads.json`` and is not read again. URLs are printed without credentials or query.
"""

from __future__ import annotations

import errno
import hashlib
import ipaddress
import json
import logging
import os
import random
import re
import shutil
import ssl
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import requests
import tenacity
import urllib3
from filelock import FileLock, Timeout
from requests.utils import get_auth_from_url

from stamp import __version__
from stamp.core.artifacts import write_json
from stamp.core.errors import UserError
from stamp.core.progress import bar
from stamp.data.credentials import redact

AGENT = f"stamp-ood/{__version__}"
LEDGER = ".stamp-downloads.json"
BLOCK = 1 << 20
LONGEST_PAUSE = 60.0
LONGEST_WISH = 600.0
DIGITS = {"sha256": 64, "md5": 32}


@dataclass(frozen=True, slots=True)
class Remote:
    """A file somewhere else: where, the relative path to save it as, and what it should be."""

    url: str = field(repr=False)
    name: str
    sha256: str | None = None
    md5: str | None = None
    size: int | None = None

    def __post_init__(self) -> None:
        path = PurePosixPath(self.name)
        if path.is_absolute() or ".." in path.parts or not path.name or "\0" in self.name:
            raise UserError(f"{self.name!r}: a download's name is a relative path without '..'")
        for kind, digits in DIGITS.items():
            given = getattr(self, kind)
            if given is not None and not re.fullmatch(f"[0-9a-fA-F]{{{digits}}}", given):
                raise UserError(f"{self.name}: {kind} is not {digits} hexadecimal digits")

    @property
    def digests(self) -> dict[str, str]:
        """The digests that are known of it, by kind."""
        given = {kind: getattr(self, kind) for kind in DIGITS}
        return {kind: digest.lower() for kind, digest in given.items() if digest}

    @property
    def source(self) -> str:
        """A digest that tells URLs apart without keeping them."""
        return hashlib.sha256(_USER.sub("//", self.url).encode()).hexdigest()


_USER = re.compile(r"//[^/?#]*@")


def fetch(
    remote: Remote,
    folder: Path,
    auth: tuple[str, str] | None = None,
    attempts: int = 6,
    pause: float = 1.0,
    timeout: float = 60.0,
    quiet: bool = False,
) -> Path:
    """The path of a downloaded and verified file; only what is missing of it is transferred.

    ``attempts`` counts failures in a row that brought no new byte, with a pause that doubles from
    ``pause`` seconds between them. ``timeout`` is how long a silent server is waited for. A
    ``quiet`` download is one of many small ones: it has no bar, and is not kept in the ledger.
    """
    final = Path(folder) / remote.name
    _refuse_insecure(remote, auth)
    before = _stamp_of(final)
    if _finished(remote, Path(folder), quiet):
        return final
    with _disk(final):
        final.parent.mkdir(parents=True, exist_ok=True)
        with _alone(final):
            if _stamp_of(final) != before and _finished(remote, Path(folder), quiet):
                return final
            part = Part(final, remote)
            with _meter(final.name, remote.size, quiet) as meter:
                _transfer(remote, part, auth, attempts, pause, timeout, meter)
            _verify(remote, part)
            part.finish(final)
            if not quiet:
                _remember(Path(folder), remote, final, part.found())
    return final


def require_space(name: str, needed: float, folder: Path) -> None:
    """Refuse to begin what will not fit: ``needed`` bytes and 1 % more, on the disk of a folder."""
    free = shutil.disk_usage(folder).free
    if free < needed * 1.01:
        raise UserError(f"{name}: needs {_bytes(needed)}, {_bytes(free)} are free on {folder}")


def _bytes(count: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count:.0f} B"


class Again(Exception):
    """A failure that another attempt may cure; ``after`` is the wait that the server asked for."""

    def __init__(self, cause: str, after: float | None = None):
        super().__init__(cause)
        self.after = after


class Part:
    """The bytes of a file that are here already, and which version of it they belong to."""

    def __init__(self, final: Path, remote: Remote):
        self.path = final.with_name(f"{final.name}.part")
        self.record = final.with_name(f"{final.name}.part.json")
        self.source = remote.source
        self.checkable = bool(remote.digests)
        self.kinds = sorted({"sha256", *remote.digests})
        self.version: dict[str, Any] = {}
        self._begin()
        record = _read_record(self.record)
        if record.get("source") == self.source and self.path.is_file():
            self.version = record
            self._read()

    def _begin(self) -> None:
        self.size = 0
        self.hashes = {kind: hashlib.new(kind, usedforsecurity=False) for kind in self.kinds}

    def _read(self) -> None:
        with open(self.path, "rb") as file:
            while block := file.read(BLOCK):
                self._count(block)

    def _count(self, block: bytes | memoryview) -> None:
        self.size += len(block)
        for one in self.hashes.values():
            one.update(block)

    @property
    def total(self) -> int | None:
        return self.version.get("total")

    def request(self) -> dict[str, str]:
        """The headers that ask for the rest, if it is still the same file, or for all of it."""
        if self.size and (validator := _strong(self.version)):
            return {"Range": f"bytes={self.size}-", "If-Range": validator}
        if self.size and self.checkable and self.total:
            return {"Range": f"bytes={self.size}-"}
        return {}

    def continued_by(self, response: requests.Response) -> bool:
        """Whether a 206 answer brings the next bytes of the same version."""
        start, total = _content_range(response)
        same = all(
            self.version.get(key) == value
            for key, value in _validators(response).items()
            if value is not None and self.version.get(key) is not None
        )
        return same and start == self.size and (None in (total, self.total) or total == self.total)

    def start(self, response: requests.Response, total: int | None) -> None:
        """Forget what there is, and begin the version that a 200 answer brings."""
        self._begin()
        self.path.write_bytes(b"")
        self.version = {"source": self.source, "total": total, **_validators(response)}
        write_json(self.record, self.version)

    def receive(self, blocks: Iterator[bytes], meter: Any) -> None:
        """Append what arrives, unbuffered, so that a killed process loses nothing."""
        with open(self.path, "ab", buffering=0) as file:
            for block in blocks:
                rest = memoryview(block)
                while rest:
                    written = file.write(rest)
                    self._count(rest[:written])
                    rest = rest[written:]
                meter.update(len(block))

    def discard(self) -> None:
        self._begin()
        self.version = {}
        self.path.unlink(missing_ok=True)
        self.record.unlink(missing_ok=True)

    def found(self) -> dict[str, str]:
        return {kind: one.hexdigest() for kind, one in self.hashes.items()}

    def finish(self, final: Path) -> None:
        with open(self.path, "ab") as file:
            os.fsync(file.fileno())
        os.replace(self.path, final)
        self.record.unlink(missing_ok=True)


class _Session(requests.Session):
    """Proxies and certificates come from the environment, credentials from the caller alone."""

    def rebuild_auth(
        self, prepared_request: requests.PreparedRequest, response: requests.Response
    ) -> None:
        old, new = response.request.url or "", prepared_request.url or ""
        if self.should_strip_auth(old, new):
            prepared_request.headers.pop("Authorization", None)


def _transfer(
    remote: Remote,
    part: Part,
    auth: tuple[str, str] | None,
    attempts: int,
    pause: float,
    timeout: float,
    meter: Any,
) -> None:
    """Attempts until all bytes are here; those that bring new bytes are not counted."""
    failures, furthest = 0, part.size

    def attempt() -> None:
        nonlocal failures, furthest
        try:
            _attempt(session, remote, part, auth, timeout, meter)
        except Again:
            failures = 0 if part.size > furthest else failures + 1
            furthest = max(furthest, part.size)
            raise

    def wait(state: tenacity.RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        delay = min(LONGEST_PAUSE, pause * 2.0 ** max(0, failures - 1)) * random.uniform(0.5, 1.5)
        return max(delay, getattr(error, "after", None) or 0.0)

    with _Session() as session, _quiet_logs():
        try:
            tenacity.Retrying(
                retry=tenacity.retry_if_exception_type(Again),
                stop=lambda _: failures >= attempts,
                wait=wait,
                sleep=tenacity.nap.sleep,
                reraise=True,
            )(attempt)
        except Again as error:
            raise UserError(f"{redact(remote.url)}: {error} ({attempts} attempts)") from None


def _attempt(
    session: requests.Session,
    remote: Remote,
    part: Part,
    auth: tuple[str, str] | None,
    timeout: float,
    meter: Any,
) -> None:
    """One request, and as many bytes of its answer as arrive; :class:`Again` if some are missing"""
    with _get(session, remote, part.request(), auth, timeout) as response:
        _check_status(remote, response)
        if response.status_code == 416:
            if part.size and part.size == (_content_range(response)[1] or part.total):
                return
            part.discard()
            raise Again("the server could not continue the download")
        _refuse_page(remote, response)
        if response.status_code == 206:
            if not part.continued_by(response):
                part.discard()
                raise Again("the file changed on the server")
            total = part.total or _content_range(response)[1]
        else:
            total = _length(response)
        if None not in (total, remote.size) and total != remote.size:
            part.discard()
            raise UserError(f"{remote.name}: {remote.size} bytes expected, the server has {total}")
        total = total if total is not None else remote.size
        if response.status_code == 200:
            part.start(response, total)
        if total is not None:
            require_space(remote.name, total - part.size, part.path.parent)
        meter.total, meter.n, meter.initial = total, part.size, part.size
        part.receive(_blocks(response), meter)
    if total is not None and part.size < total:
        raise Again(f"the connection was cut after {part.size} of {total} bytes")


def _get(
    session: requests.Session,
    remote: Remote,
    headers: dict[str, str],
    auth: tuple[str, str] | None,
    timeout: float,
) -> requests.Response:
    user, password = auth or get_auth_from_url(remote.url)
    # A function that adds nothing keeps requests from looking into ~/.netrc on its own.
    basic: Any = (user.encode(), password.encode()) if user or password else lambda request: request
    own = {"User-Agent": AGENT, "Accept": "*/*", "Accept-Encoding": "identity"}
    try:
        return session.get(
            remote.url, headers=own | headers, auth=basic, stream=True, timeout=timeout
        )
    except requests.exceptions.TooManyRedirects:
        cause = "it redirects in a circle"
    except (requests.ConnectionError, requests.Timeout) as error:
        cause = _cause(error)
        if not _untrusted(error):
            raise Again(cause) from None
    except (requests.RequestException, ValueError) as error:
        cause = f"cannot be fetched ({type(error).__name__})"
    raise UserError(f"{redact(remote.url)}: {cause}")


def _blocks(response: requests.Response) -> Iterator[bytes]:
    """What arrives, as soon as it does, not decoded: the bytes that ranges and digests are of."""
    try:
        while block := response.raw.read1(BLOCK, decode_content=False):
            yield block
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise Again(_cause(error)) from None


def _check_status(remote: Remote, response: requests.Response) -> None:
    status, where = response.status_code, redact(remote.url)
    if status in (200, 206, 416):
        return
    if status in (401, 403):
        raise UserError(
            f"{where}: access was refused (HTTP {status}); "
            "accept the terms on its page and check your credentials"
        )
    if status in (404, 410):
        raise UserError(f"{where}: no such file on the server (HTTP {status})")
    if status in (408, 425, 429) or status >= 500:
        after = _retry_after(response)
        if after is not None and after > LONGEST_WISH:
            raise UserError(
                f"{where}: the server is busy (HTTP {status}) and asks to come back in "
                f"{after:.0f} s; run again then, the download goes on where it stopped"
            )
        raise Again(f"the server answers HTTP {status}", after)
    raise UserError(f"{where}: the server answers HTTP {status}")


def _refuse_page(remote: Remote, response: requests.Response) -> None:
    """A login page comes with status 200; saved as an archive it would only confuse."""
    kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind == "text/html" and not remote.name.lower().endswith((".html", ".htm")):
        raise UserError(
            f"{redact(remote.url)}: a web page came instead of {remote.name}, perhaps to log in; "
            "accept the terms on its page and check your credentials"
        )
    encoding = response.headers.get("Content-Encoding", "identity").lower()
    if encoding != "identity" and not remote.name.lower().endswith((".gz", ".tgz")):
        raise UserError(f"{redact(remote.url)}: the server sends {remote.name} only compressed")


def _refuse_insecure(remote: Remote, auth: tuple[str, str] | None) -> None:
    url = urlsplit(remote.url)
    if url.scheme not in ("http", "https") or not url.hostname:
        raise UserError(f"{redact(remote.url)}: not an http or https URL")
    if url.scheme == "http" and (auth or url.username) and not _loopback(url.hostname):
        raise UserError(f"{redact(remote.url)}: credentials are sent over https only")


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _cause(error: BaseException) -> str:
    """Why a transfer failed, in words that hold no URL: those of the libraries do."""
    if isinstance(error, (requests.Timeout, urllib3.exceptions.TimeoutError)):
        return "the server does not answer"
    if isinstance(error, requests.exceptions.ProxyError):
        return "the proxy does not let it through"
    for inner in _inside(error):
        if isinstance(inner, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted ({inner.verify_message})"
        if isinstance(inner, OSError) and inner.strerror:
            return f"the connection failed ({inner.strerror})"
    return "the connection was cut"


def _untrusted(error: BaseException) -> bool:
    return any(isinstance(inner, ssl.SSLCertVerificationError) for inner in _inside(error))


def _inside(error: BaseException) -> list[BaseException]:
    """An exception and all that it wraps, innermost last."""
    found: list[BaseException] = []
    waiting: list[Any] = [error]
    while waiting:
        one = waiting.pop(0)
        if isinstance(one, BaseException) and one not in found:
            found.append(one)
            waiting += [*one.args, getattr(one, "reason", None), one.__cause__, one.__context__]
    return found


def _validators(response: requests.Response) -> dict[str, str | None]:
    headers = response.headers
    return {"etag": headers.get("ETag"), "modified": headers.get("Last-Modified")}


def _strong(version: dict[str, Any]) -> str | None:
    """The validator that If-Range may carry: a weak ETag may not (RFC 9110, 13.1.5)."""
    etag = version.get("etag")
    return etag if etag and not etag.startswith("W/") else version.get("modified")


def _content_range(response: requests.Response) -> tuple[int | None, int | None]:
    """First byte and total size of a Content-Range header, each None where it does not say."""
    text = response.headers.get("Content-Range", "")
    found = re.fullmatch(r"\s*bytes\s+(?:(\d+)-\d+|\*)/(\d+|\*)\s*", text)
    if not found:
        return None, None
    start, total = found.groups()
    return (int(start) if start else None), (int(total) if total != "*" else None)


def _length(response: requests.Response) -> int | None:
    text = response.headers.get("Content-Length", "")
    return int(text) if text.isdigit() else None


def _retry_after(response: requests.Response) -> float | None:
    """Seconds of a Retry-After header, which holds a number or a date."""
    text = response.headers.get("Retry-After", "").strip()
    if text.isdigit():
        return float(text)
    with suppress(ValueError):
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    return None


def _verify(remote: Remote, part: Part) -> None:
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


def _finished(remote: Remote, folder: Path, quiet: bool) -> bool:
    """Whether the file is here as it should be; it is read only if that is not known already.

    Without a digest to hold it against, it should be what was downloaded from the same URL; a file
    that somebody put there is taken as it is.
    """
    final = folder / remote.name
    seen = _stamp_of(final)
    if seen is None or remote.size not in (None, seen[0]):
        return False
    known = _read_record(folder / LEDGER).get(remote.name)
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
            _remember(folder, remote, final, found)
    return True


def _stamp_of(path: Path) -> tuple[int, int] | None:
    """Size and time of change of a file; None if there is none."""
    if not path.is_file():
        return None
    found = path.stat()
    return found.st_size, found.st_mtime_ns


def _digests_of(path: Path, kinds: list[str], quiet: bool) -> dict[str, str]:
    hashes = {kind: hashlib.new(kind, usedforsecurity=False) for kind in kinds}
    size = path.stat().st_size
    with open(path, "rb") as file, _meter(f"checking {path.name}", size, quiet) as meter:
        while block := file.read(BLOCK):
            for one in hashes.values():
                one.update(block)
            meter.update(len(block))
    return {kind: one.hexdigest() for kind, one in hashes.items()}


def _remember(folder: Path, remote: Remote, final: Path, found: dict[str, str]) -> None:
    size, mtime = _stamp_of(final) or (0, 0)
    with FileLock(folder / f"{LEDGER}.lock"):
        known = _read_record(folder / LEDGER)
        known[remote.name] = {"source": remote.source, "size": size, "mtime": mtime, **found}
        write_json(folder / LEDGER, known)


def _read_record(path: Path) -> dict[str, Any]:
    """A record of our own; one that cannot be read only costs its savings."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


@contextmanager
def _alone(final: Path) -> Iterator[None]:
    """One process at a time for a file; the next one finds it finished."""
    path = final.with_name(f".{final.name}.lock")
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        print(f"stamp: {final.name} is being downloaded already: waiting", file=sys.stderr)
        lock.acquire()
    try:
        yield
        # Who waits with the old lock and who comes with a new one both find the file finished.
        path.unlink(missing_ok=True)
    finally:
        lock.release()


def _meter(name: str, total: int | None, quiet: bool) -> Any:
    if quiet:
        return nullcontext(SimpleNamespace(update=lambda count: None))
    return bar(None, name, total or 0, "B")


@contextmanager
def _disk(final: Path) -> Iterator[None]:
    """Failures of the local disk in one line; what has arrived stays for the next run."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise UserError(
                f"{final}: no space left on the disk; make room and run again, "
                "the download goes on where it stopped"
            ) from None
        raise UserError(
            f"{error.filename2 or error.filename or final}: {error.strerror or error}"
        ) from None


@contextmanager
def _quiet_logs() -> Iterator[None]:
    """Debug logs of urllib3 without the queries of URLs, where signed links keep their key."""

    def hide(record: logging.LogRecord) -> bool:
        record.msg, record.args = redact(record.getMessage()), ()
        return True

    loggers = [logging.getLogger(f"urllib3.{name}") for name in ("connectionpool", "util.retry")]
    for logger in loggers:
        logger.addFilter(hide)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(hide)
