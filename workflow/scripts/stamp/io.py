"""Files: whole or not at all, each carrying what it was made from.

Tables are Parquet, arrays are safetensors, records are JSON. Every artefact has a *provenance*: a
flat dictionary of strings (model, view, digest of the row ids, versions) that its reader may check.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import struct
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from stamp.errors import UserError

PROVENANCE = "stamp"


@contextmanager
def whole(path: str | Path) -> Iterator[Path]:
    """A path beside ``path`` to write to; it takes its place if the block ends well, else goes."""
    final = Path(path)
    final.parent.mkdir(parents=True, exist_ok=True)
    beside = final.with_name(f".{final.name}.{os.getpid()}.part")
    try:
        yield beside
        os.replace(beside, final)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise UserError(f"{final}: no space left on the disk; nothing was written") from None
        raise
    finally:
        beside.unlink(missing_ok=True)


def ids_digest(ids: Iterable[str]) -> str:
    """A digest of an ordered list of image ids."""
    state = hashlib.sha256()
    for one in ids:
        state.update(one.encode())
        state.update(b"\0")
    return state.hexdigest()[:16]


def check_provenance(
    path: str | Path, found: Mapping[str, Any], expected: Mapping[str, Any]
) -> None:
    """Refuse an artefact that was made from something else than ``expected``, by name."""
    for key, value in expected.items():
        if str(found.get(key)) != str(value):
            raise UserError(
                f"{path}: made with {key} '{found.get(key)}', but '{value}' is needed; "
                "delete the file and run again"
            )


def write_table(path: str | Path, table: pl.DataFrame, provenance: Mapping[str, Any]) -> None:
    """Write a table as Parquet with its provenance, or as CSV by the ending ``.csv``."""
    with whole(path) as part:
        if str(path).endswith(".csv"):
            table.write_csv(part)
        else:
            text = json.dumps({key: str(value) for key, value in sorted(provenance.items())})
            table.write_parquet(part, metadata={PROVENANCE: text})


def read_table(path: str | Path, **expected: Any) -> pl.DataFrame:
    """A table written by :func:`write_table`, after checking its provenance."""
    if expected:
        check_provenance(path, table_provenance(path), expected)
    return pl.read_parquet(path)


def table_provenance(path: str | Path) -> dict[str, str]:
    """What a Parquet table was made from."""
    return json.loads(pl.read_parquet_metadata(path).get(PROVENANCE, "{}"))


def write_json(path: str | Path, record: Mapping[str, Any]) -> None:
    """Write a record as readable JSON."""
    with whole(path) as part:
        part.write_text(json.dumps(record, indent=2, sort_keys=True, allow_nan=False) + "\n")


def read_json(path: str | Path) -> dict[str, Any]:
    """A record written by :func:`write_json`."""
    return json.loads(Path(path).read_text())


def write_arrays(
    path: str | Path, arrays: Mapping[str, np.ndarray], provenance: Mapping[str, Any]
) -> None:
    """Write named arrays as safetensors with their provenance."""
    from safetensors.numpy import save_file

    with whole(path) as part:
        save_file(
            {name: np.ascontiguousarray(array) for name, array in arrays.items()},
            part,
            metadata={key: str(value) for key, value in sorted(provenance.items())},
        )


def read_arrays(path: str | Path, **expected: Any) -> dict[str, np.ndarray]:
    """The arrays of a safetensors file, after checking its provenance."""
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        check_provenance(path, file.metadata() or {}, expected)
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def array_provenance(path: str | Path) -> dict[str, str]:
    """What a safetensors file was made from."""
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        return dict(file.metadata() or {})


class RowWriter:
    """One float32 array written row by row as safetensors: memory does not grow with rows."""

    def __init__(
        self, path: Path, name: str, shape: tuple[int, int], provenance: Mapping[str, Any]
    ):
        self.expected = int(np.prod(shape)) * 4
        header = {
            "__metadata__": {key: str(value) for key, value in sorted(provenance.items())},
            name: {"dtype": "F32", "shape": list(shape), "data_offsets": [0, self.expected]},
        }
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        self.file = open(path, "wb")  # noqa: SIM115
        self.file.write(struct.pack("<Q", len(text)) + text)
        self.written = 0

    def append(self, rows: np.ndarray) -> None:
        self.written += self.file.write(np.ascontiguousarray(rows, dtype="<f4").tobytes())

    def close(self) -> None:
        self.file.close()
        if self.written != self.expected:
            raise ValueError(f"{self.written} bytes of rows written, {self.expected} announced")
