"""The part of a file that has arrived, and which version of the file it belongs to."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import requests

from stamp.core.artifacts import write_json
from stamp.data.transfer.http import BLOCK, content_range
from stamp.data.transfer.remote import Remote


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
        record = read_record(self.record)
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
        start, total = content_range(response)
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


def _validators(response: requests.Response) -> dict[str, str | None]:
    headers = response.headers
    return {"etag": headers.get("ETag"), "modified": headers.get("Last-Modified")}


def _strong(version: dict[str, Any]) -> str | None:
    """The validator that If-Range may carry: a weak ETag may not (RFC 9110, 13.1.5)."""
    etag = version.get("etag")
    return etag if etag and not etag.startswith("W/") else version.get("modified")


def read_record(path: Path) -> dict[str, Any]:
    """A record of an earlier download; empty where it is missing or damaged."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}
