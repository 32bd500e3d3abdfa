"""A real HTTP server on the loopback interface that serves a folder, well or badly as told.

    with Server(folder, auth=("user", "key")) as server:
        fetch(Remote(server.url("a.zip"), "a.zip"), elsewhere, auth=("user", "key"))
        assert server.requests[0].headers["Authorization"]

Faults are set on the running server: :meth:`cut`, :meth:`busy`, :meth:`redirect`, :meth:`page`, or
the attributes ``ranges``, ``etag``, ``edition`` (of ETag and date), ``delay`` (between blocks),
``silence`` (before an answer), ``most`` (bytes that a Range gets at once) and ``announced`` (what
stands in Content-Length instead of the size).
"""

from __future__ import annotations

import base64
import re
import sys
import threading
import time
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote, unquote, urlsplit

BLOCK = 16 * 1024
LOGIN = b"<!DOCTYPE html><html><body><form>Log in</form></body></html>"


@dataclass(slots=True)
class Request:
    """What a client asked for, what it was answered, and how many bytes of a body it was sent."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    status: int = 0
    sent: int = 0

    @property
    def range(self) -> str | None:
        return self.headers.get("Range")


@dataclass(slots=True)
class _Fault:
    left: int
    after: int = 0
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)


class Server:
    """Serves the files of a folder on a free port of 127.0.0.1 while the block runs.

    ``auth``: user and password that every request must bring. ``etag``: True, False or "weak".
    ``modified``: whether Last-Modified is sent. ``ranges``: whether Range is obeyed. ``length``:
    whether the size is announced; else bodies are chunked. ``types`` holds Content-Type by ending.
    """

    def __init__(
        self,
        folder: Path,
        auth: tuple[str, str] | None = None,
        etag: bool | str = True,
        modified: bool = True,
        ranges: bool = True,
        length: bool = True,
    ):
        self.folder = Path(folder)
        self.auth, self.etag, self.modified = auth, etag, modified
        self.ranges, self.length = ranges, length
        self.edition = 0
        self.delay = 0.0
        self.silence = 0.0
        self.most = sys.maxsize
        self.announced: str | None = None
        self.types: dict[str, str] = {".html": "text/html"}
        self.requests: list[Request] = []
        self._cut: _Fault | None = None
        self._busy: _Fault | None = None
        self._redirects: dict[str, tuple[str, int]] = {}
        self._pages: set[str] = set()
        self._lock = threading.Lock()
        self._http = _Loopback(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )

    def __enter__(self) -> Server:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    @property
    def port(self) -> int:
        return self._http.server_address[1]

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        """The address of a file; ``host="localhost"`` gives another host name of this server."""
        path, mark, query = path.partition("?")
        return f"http://{host}:{self.port}/{quote(path.lstrip('/'))}{mark}{query}"

    def cut(self, after: int, times: int = 1) -> None:
        """Close the connection after so many bytes of a body, for the next ``times`` answers."""
        self._cut = _Fault(times, after=after)

    def busy(self, times: int, status: int = 503, retry_after: str | None = None) -> None:
        """Answer the next ``times`` requests with a status that asks to come back."""
        headers = {} if retry_after is None else {"Retry-After": retry_after}
        self._busy = _Fault(times, status=status, headers=headers)

    def redirect(self, path: str, url: str, status: int = 302) -> None:
        """Send who asks for ``path`` elsewhere."""
        self._redirects["/" + path.lstrip("/")] = (url, status)

    def page(self, path: str) -> None:
        """Answer ``path`` with a login page and status 200."""
        self._pages.add("/" + path.lstrip("/"))

    def of(self, path: str, method: str = "GET") -> list[Request]:
        """The requests for one path, in order."""
        wanted = "/" + path.lstrip("/")
        return [one for one in self.requests if (one.path, one.method) == (wanted, method)]

    @property
    def sent(self) -> int:
        """Bytes of file content that were sent so far."""
        return sum(one.sent for one in self.requests)

    def _take(self, fault: _Fault | None) -> _Fault | None:
        with self._lock:
            if fault is None or fault.left <= 0:
                return None
            fault.left -= 1
            return fault


class _Loopback(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_HEAD(self) -> None:
            self.answer()

        def do_GET(self) -> None:
            self.answer()

        def answer(self) -> None:
            parts = urlsplit(self.path)
            path = unquote(parts.path)
            self.seen = Request(self.command, path, parts.query, dict(self.headers.items()))
            server.requests.append(self.seen)
            time.sleep(server.silence)
            if fault := server._take(server._busy):
                return self.reply(fault.status, fault.headers)
            if path in server._redirects:
                url, status = server._redirects[path]
                return self.reply(status, {"Location": url})
            if server.auth and self.headers.get("Authorization") != _basic(*server.auth):
                return self.reply(401, {"WWW-Authenticate": 'Basic realm="test"'})
            if path in server._pages:
                return self.reply(200, {"Content-Type": "text/html; charset=utf-8"}, LOGIN)
            file = server.folder / path.lstrip("/")
            if ".." in file.parts or not file.is_file():
                return self.reply(404, {})
            return self.serve(file)

        def reply(self, status: int, headers: dict[str, str], body: bytes = b"") -> None:
            self.seen.status = status
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def serve(self, file: Path) -> None:
            size = file.stat().st_size
            headers = self.validators(file)
            headers["Content-Type"] = server.types.get(file.suffix, "application/octet-stream")
            start, end = 0, size
            asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
            condition = self.headers.get("If-Range")
            fresh = condition in (None, headers.get("ETag"), headers.get("Last-Modified"))
            if server.ranges:
                headers["Accept-Ranges"] = "bytes"
            if asked and server.ranges and fresh:
                start = int(asked[1])
                end = min(size, int(asked[2]) + 1) if asked[2] else size
                if start >= size:
                    return self.reply(416, {**headers, "Content-Range": f"bytes */{size}"})
                end = min(end, start + server.most)
                headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
            self.seen.status = 206 if "Content-Range" in headers else 200
            self.send_response(self.seen.status)
            if server.length:
                headers["Content-Length"] = server.announced or str(end - start)
            else:
                headers["Transfer-Encoding"] = "chunked"
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.body(file, start, end)

        def validators(self, file: Path) -> dict[str, str]:
            found = file.stat()
            tag = f'"{found.st_mtime_ns:x}-{found.st_size:x}-{server.edition}"'
            headers = {}
            if server.etag:
                headers["ETag"] = f"W/{tag}" if server.etag == "weak" else tag
            if server.modified:
                headers["Last-Modified"] = formatdate(
                    found.st_mtime + 60 * server.edition, usegmt=True
                )
            return headers

        def body(self, file: Path, start: int, end: int) -> None:
            fault = server._take(server._cut)
            stop = end if fault is None else min(end, start + fault.after)
            with open(file, "rb") as data:
                data.seek(start)
                while start < stop:
                    block = data.read(min(BLOCK, stop - start))
                    start += len(block)
                    self.seen.sent += len(block)
                    self.write(block)
                    if server.delay:
                        time.sleep(server.delay)
            if stop < end:
                self.close_connection = True
            elif not server.length:
                self.wfile.write(b"0\r\n\r\n")

        def write(self, block: bytes) -> None:
            if server.length:
                self.wfile.write(block)
            else:
                self.wfile.write(f"{len(block):x}\r\n".encode() + block + b"\r\n")

    return Handler


def _basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
