"""Arrays that are written to a safetensors file part by part."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np


class ArrayWriter:
    """Named arrays written part by part as safetensors: memory does not grow with rows.

    ``arrays`` announces each one's type and shape, [rows, ...] or [planes, rows, ...] if it is of
    more than two dimensions.
    """

    def __init__(
        self,
        path: Path,
        arrays: Mapping[str, tuple[Any, tuple[int, ...]]],
        metadata: Mapping[str, Any],
    ):
        header: dict[str, Any] = {
            "__metadata__": {key: str(value) for key, value in sorted(metadata.items())}
        }
        self.places: dict[str, tuple[np.dtype[Any], tuple[int, ...], int]] = {}
        self.expected = self.written = 0
        # the widest types first, so that every array begins at a multiple of its type's size
        for name, (kind, shape) in sorted(
            arrays.items(), key=lambda each: -np.dtype(each[1][0]).itemsize
        ):
            dtype = np.dtype(kind).newbyteorder("<")
            end = self.expected + int(np.prod(shape)) * dtype.itemsize
            self.places[name] = (dtype, tuple(shape), self.expected)
            header[name] = {
                "dtype": f"{dtype.kind.upper()}{8 * dtype.itemsize}",
                "shape": list(shape),
                "data_offsets": [self.expected, end],
            }
            self.expected = end
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        self.start = 8 + len(text)
        self.file = open(path, "wb")  # noqa: SIM115
        self.file.write(struct.pack("<Q", len(text)) + text)

    def put(self, name: str, rows: np.ndarray, row: int = 0, plane: int = 0) -> None:
        """Write ``rows`` of an array, the first of them number ``row`` (of a plane)."""
        dtype, shape, offset = self.places[name]
        count, inner = (shape[1], shape[2:]) if len(shape) > 2 else (shape[0], shape[1:])
        if rows.shape[1:] != inner or row + len(rows) > count:
            raise ValueError(f"rows of shape {rows.shape} do not fit into {name} {shape}")
        at = (plane * count + row) * int(np.prod(inner)) * dtype.itemsize
        self.file.seek(self.start + offset + at)
        self.written += self.file.write(np.ascontiguousarray(rows, dtype=dtype).tobytes())

    def close(self) -> None:
        self.file.close()
        if self.written != self.expected:
            raise ValueError(f"{self.written} bytes of rows written, {self.expected} announced")


class RowWriter(ArrayWriter):
    """One float32 array written row by row."""

    def __init__(self, path: Path, name: str, shape: tuple[int, int], metadata: Mapping[str, Any]):
        super().__init__(path, {name: (np.float32, shape)}, metadata)
        self.name, self.row = name, 0

    def append(self, rows: np.ndarray) -> None:
        self.put(self.name, rows, self.row)
        self.row += len(rows)
