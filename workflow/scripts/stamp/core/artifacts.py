"""Files: whole or not at all, each carrying what it was made from.

Tables are Parquet, arrays are safetensors, records are JSON. Every artefact has a *metadata*: a
flat dictionary of strings (model, view, digest of the row ids, versions) that its reader may check.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import struct
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from stamp.core.errors import UserError

METADATA_KEY = "stamp"
# What the system says of files and folders that a user named: no mistake of the program's.
REFUSED = (PermissionError, NotADirectoryError, IsADirectoryError, FileExistsError)
FULL = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def whole(path: str | Path) -> Iterator[Path]:
    """A path beside ``path`` to write to; it takes its place if the block ends well, else goes."""
    final = Path(path)
    beside = final.with_name(f".{final.name}.{os.getpid()}.part")
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        yield beside
        os.replace(beside, final)
    except OSError as error:
        if error.errno in FULL:
            raise UserError(f"{final}: no space left on the disk; nothing was written") from None
        # polars names the file in its text only
        named = str(beside) in str(error) or error.filename in map(str, final.parents)
        if isinstance(error, REFUSED) and named:
            reason = error.strerror or "permission denied"
            raise UserError(f"{final}: can't be written: {reason}") from None
        raise
    finally:
        with suppress(OSError):  # where the folder itself can't be
            beside.unlink()


def ids_digest(ids: Iterable[str]) -> str:
    """A digest of an ordered list of image ids."""
    state = hashlib.sha256()
    for one in ids:
        state.update(one.encode())
        state.update(b"\0")
    return state.hexdigest()[:16]


def check_metadata(path: str | Path, found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Refuse an artefact that was made from something else than ``expected``, by name."""
    for key, value in expected.items():
        if str(found.get(key)) != str(value):
            raise UserError(
                f"{path}: made with {key} '{found.get(key)}', but '{value}' is needed; "
                "delete the file and run again"
            )


def write_table(path: str | Path, table: pl.DataFrame, metadata: Mapping[str, Any]) -> None:
    """Write a table as Parquet with its metadata, or as CSV by the ending ``.csv``."""
    with whole(path) as part:
        if str(path).endswith(".csv"):
            table.write_csv(part)
        else:
            text = json.dumps({key: str(value) for key, value in sorted(metadata.items())})
            table.write_parquet(part, metadata={METADATA_KEY: text})


def read_table(path: str | Path, **expected: Any) -> pl.DataFrame:
    """A table written by :func:`write_table`, after checking its metadata."""
    if expected:
        check_metadata(path, table_metadata(path), expected)
    return pl.read_parquet(path)


def table_metadata(path: str | Path) -> dict[str, str]:
    """What a Parquet table was made from."""
    return json.loads(pl.read_parquet_metadata(path).get(METADATA_KEY, "{}"))


def write_json(path: str | Path, record: Mapping[str, Any]) -> None:
    """Write a record as readable JSON."""
    with whole(path) as part:
        part.write_text(json.dumps(record, indent=2, sort_keys=True, allow_nan=False) + "\n")


def read_json(path: str | Path) -> dict[str, Any]:
    """A record written by :func:`write_json`."""
    return json.loads(Path(path).read_text())


def write_arrays(
    path: str | Path, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, Any]
) -> None:
    """Write named arrays as safetensors with their metadata."""
    from safetensors.numpy import save_file

    with whole(path) as part:
        save_file(
            {name: np.ascontiguousarray(array) for name, array in arrays.items()},
            part,
            metadata={key: str(value) for key, value in sorted(metadata.items())},
        )


def read_arrays(path: str | Path, **expected: Any) -> dict[str, np.ndarray]:
    """The arrays of a safetensors file, after checking its metadata."""
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        check_metadata(path, file.metadata() or {}, expected)
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def array_metadata(path: str | Path) -> dict[str, str]:
    """What a safetensors file was made from."""
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        return dict(file.metadata() or {})


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
