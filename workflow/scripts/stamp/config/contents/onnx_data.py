"""The files beside an ONNX file that hold its weights, read from the file itself.

Weights beyond 2 GB, and those of whoever prefers it, lie in other files ("external data") whose
names only the ONNX file knows. It is a protocol buffer: tagged fields, some of them messages again.
Only the messages that can hold a tensor are entered, everything else is skipped by its length, so
that planning needs no package for it. Field numbers are those of ``onnx.proto``.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

# message: the fields that hold further messages of interest
INSIDE = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "function": {7: "node"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {13: "entry"},
}
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class _Damaged(Exception):
    """What is no protocol buffer."""


def external_files(path: str | Path) -> list[str]:
    """The files that hold weights of an ONNX file, in order of name.

    None for a file that is not there or no ONNX: whoever runs it says what is wrong.
    """
    try:
        found = _found(str(path), os.stat(path).st_mtime_ns)
    except (OSError, ValueError, IndexError, _Damaged):
        return []
    return [os.path.join(os.path.dirname(path), name) for name in found]


@cache
def _found(path: str, changed: int) -> list[str]:
    """The locations in a file, which is read again once it ``changed``."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        return sorted(set(_locations(text, 0, len(text), "model")))


def _locations(text: mmap.mmap, start: int, end: int, message: str) -> Iterator[str]:
    """The ``location`` of each tensor in a message whose data are external."""
    inside = INSIDE[message]
    for field, first, last in _fields(text, start, end):
        kind = inside.get(field)
        if kind == "entry":
            parts = {number: text[a:b] for number, a, b in _fields(text, first, last)}
            if parts.get(1) == b"location":
                yield parts.get(2, b"").decode()
        elif kind is not None:
            yield from _locations(text, first, last, kind)


def _fields(text: mmap.mmap, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """The number of each field with bytes in a message, and where its content starts and ends."""
    while at < end:
        tag, at = _varint(text, at)
        kind = tag & 7
        if kind == VARINT:
            _, at = _varint(text, at)
        elif kind in (FIXED64, FIXED32):
            at += 8 if kind == FIXED64 else 4
        elif kind == BYTES:
            length, at = _varint(text, at)
            if at + length > end:
                raise _Damaged
            yield tag >> 3, at, at + length
            at += length
        else:
            raise _Damaged


def _varint(text: mmap.mmap, at: int) -> tuple[int, int]:
    """A number of seven bits per byte, the lowest first, and where the next field begins."""
    value = shift = 0
    while True:
        byte = text[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise _Damaged
