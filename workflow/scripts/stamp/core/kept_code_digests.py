"""Digests of code that an earlier run worked out, kept while no source file changes.

Working them out takes a third of a second, every time that Snakemake starts. They are kept with a
digest of all source files and the version of Python, so what is kept is never of other code.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from stamp.core import code_digest
from stamp.core.atomic_file import atomic_write
from stamp.core.errors import UserError

SCRIPTS = code_digest.LIBRARY.parent
FILE = Path(".snakemake", "code-digests.json")


def kept_code_digest(script: Path, *modules: str) -> str:
    """``code_digest.code_digest``, of this run or an earlier one in this folder."""
    known = _kept()
    name = " ".join([script.name, *modules])
    if name not in known["digests"]:
        if not known["new"]:
            known["new"] = True
            atexit.register(_keep, known, FILE.absolute())
        known["digests"][name] = code_digest.code_digest(script, *modules)
    return str(known["digests"][name])


@cache
def _kept() -> dict[str, Any]:
    """What an earlier run kept, if it was of the same code."""
    known = {"sources": digest_of_sources(), "digests": {}, "new": False}
    with suppress(OSError, ValueError):
        found = json.loads(FILE.read_text())
        if isinstance(found, dict) and found.get("sources") == known["sources"]:
            known["digests"] = found["digests"]
    return known


def _keep(known: dict[str, Any], file: Path) -> None:
    """Leave the digests to later runs, if there is a place for them."""
    with suppress(OSError, UserError):
        if file.parent.is_dir():
            with atomic_write(file) as part:
                part.write_text(json.dumps({key: known[key] for key in ("sources", "digests")}))


def digest_of_sources() -> str:
    """A digest of every source file of ours, by name and content, and of Python's version."""
    found = hashlib.sha256(repr(sys.version_info[:2]).encode())
    for folder, inner, names in os.walk(SCRIPTS):
        inner.sort()
        for name in sorted(names):
            if name.endswith(".py"):
                file = Path(folder, name)
                content = hashlib.sha256(file.read_bytes()).hexdigest()
                found.update(f"{file.relative_to(SCRIPTS)} {content}\n".encode())
    return found.hexdigest()
