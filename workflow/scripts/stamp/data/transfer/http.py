"""One HTTP request and what can go wrong with it: which failures are worth another attempt."""

from __future__ import annotations

import logging
import re
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email.utils import parsedate_to_datetime
from typing import Any

import requests
import urllib3
from requests.utils import get_auth_from_url

from stamp import __version__
from stamp.core.errors import UserError
from stamp.data.credentials import redact
from stamp.data.transfer.remote import Remote

AGENT = f"stamp-ood/{__version__}"
SIZE = "[0-9]{1,18}"  # a number in a header; Python's own digits are more than these ten


BLOCK = 1 << 20


LONGEST_RETRY_AFTER = 600.0


class TryAgain(Exception):
    """A failure that another attempt may cure; ``after`` is the wait that the server asked for."""

    def __init__(self, cause: str, after: float | None = None):
        super().__init__(cause)
        self.after = after


class Session(requests.Session):
    """Proxies and certificates come from the environment, credentials from the caller alone."""

    def rebuild_auth(
        self, prepared_request: requests.PreparedRequest, response: requests.Response
    ) -> None:
        old, new = response.request.url or "", prepared_request.url or ""
        if self.should_strip_auth(old, new):
            prepared_request.headers.pop("Authorization", None)


def get(
    session: requests.Session,
    remote: Remote,
    headers: dict[str, str],
    auth: tuple[str, str] | None,
    timeout: float,
) -> requests.Response:
    """The answer to one request, its body not read yet; :class:`TryAgain` where that may help."""
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
            raise TryAgain(cause) from None
    except (requests.RequestException, ValueError) as error:
        cause = f"cannot be fetched ({type(error).__name__})"
    raise UserError(f"{redact(remote.url)}: {cause}")


def blocks(response: requests.Response) -> Iterator[bytes]:
    """What arrives, as soon as it does, not decoded: the bytes that ranges and digests are of."""
    try:
        while block := response.raw.read1(BLOCK, decode_content=False):
            yield block
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise TryAgain(_cause(error)) from None


def check_status(remote: Remote, response: requests.Response) -> None:
    """Go on with 200, 206 and 416; every other status is a mistake or asks for another attempt."""
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
        if after is not None and after > LONGEST_RETRY_AFTER:
            raise UserError(
                f"{where}: the server is busy (HTTP {status}) and asks to come back in "
                f"{after:.0f} s; run again then, the download resumes where it stopped"
            )
        raise TryAgain(f"the server answers HTTP {status}", after)
    raise UserError(f"{where}: the server answers HTTP {status}")


def refuse_page(remote: Remote, response: requests.Response) -> None:
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


def content_range(response: requests.Response) -> tuple[int | None, int | None]:
    """First byte and total size of a Content-Range header, each None where it does not say."""
    text = response.headers.get("Content-Range", "")
    found = re.fullmatch(rf"\s*bytes\s+(?:({SIZE})-{SIZE}|\*)/({SIZE}|\*)\s*", text)
    if not found:
        return None, None
    start, total = found.groups()
    return (int(start) if start else None), (int(total) if total != "*" else None)


def content_length(remote: Remote, response: requests.Response) -> int | None:
    """Bytes of a Content-Length header; None where there is none, a malformed one is refused.

    Without it nobody could tell a whole file from one that was cut.
    """
    text = response.headers.get("Content-Length")
    if text is None:
        return None
    if not re.fullmatch(SIZE, text.strip()):
        shown = text if len(text) <= 20 else f"{text[:20]}…"
        raise UserError(f"{redact(remote.url)}: the server sends a Content-Length of {shown!a}")
    return int(text)


def _retry_after(response: requests.Response) -> float | None:
    """Seconds of a Retry-After header, which holds a number or a date; None for anything else."""
    text = response.headers.get("Retry-After", "").strip()
    if re.fullmatch(SIZE, text):
        return float(text)
    with suppress(ValueError, TypeError, OverflowError):
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    return None


@contextmanager
def redacted_logs() -> Iterator[None]:
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
