"""A file on a server: its URL, the name to save it as, and its digests and size."""

from __future__ import annotations

import hashlib
import ipaddress
import re
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from stamp.core.errors import UserError
from stamp.data.credentials import redact

DIGITS = {"sha256": 64, "md5": 32}


_USER = re.compile(r"//[^/?#]*@")


@dataclass(frozen=True, slots=True)
class Remote:
    """A file on a server: where, the relative path to save it as, and what it should be."""

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
        """The known digests of it, by kind."""
        given = {kind: getattr(self, kind) for kind in DIGITS}
        return {kind: digest.lower() for kind, digest in given.items() if digest}

    @property
    def source(self) -> str:
        """A digest that tells URLs apart without keeping them."""
        return hashlib.sha256(_USER.sub("//", self.url).encode()).hexdigest()


def refuse_insecure(remote: Remote, auth: tuple[str, str] | None) -> None:
    """Credentials travel over https only; other schemes than http and https are refused."""
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
