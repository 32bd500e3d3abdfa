"""Result files: written completely or not at all, each with metadata on what it was made from.

Tables are Parquet, arrays are safetensors, records are JSON. Metadata is a flat dictionary of
strings (model, view, digest of the image ids, versions) that a reader may check.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from stamp.core.atomic_file import atomic_write
from stamp.core.errors import UserError
from stamp.core.shown_text import FORMULA, NUMBER

METADATA_KEY = "stamp"


def ids_digest(ids: Iterable[str]) -> str:
    """A digest of an ordered list of image ids."""
    state = hashlib.sha256()
    for one in ids:
        state.update(one.encode())
        state.update(b"\0")
    return state.hexdigest()[:16]


def check_metadata(path: str | Path, found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Refuse an artifact that was made from something else than ``expected``, by name."""
    for key, value in expected.items():
        if str(found.get(key)) != str(value):
            raise UserError(
                f"{path}: made with {key} '{found.get(key)}', but '{value}' is needed; "
                "delete the file and run again"
            )


def write_table(path: str | Path, table: pl.DataFrame, metadata: Mapping[str, Any]) -> None:
    """Write a table as Parquet with its metadata, or as CSV by the ending ``.csv``."""
    content = BytesIO()  # written here, not by polars, which may hide why it could not write
    if str(path).endswith(".csv"):
        without_formulas(table).write_csv(content)
    else:
        text = json.dumps({key: str(value) for key, value in sorted(metadata.items())})
        table.write_parquet(content, metadata={METADATA_KEY: text})
    with atomic_write(path) as part, open(part, "wb") as file:
        file.write(content.getbuffer())


def without_formulas(table: pl.DataFrame) -> pl.DataFrame:
    """The table as spreadsheets show it: a quote before what they would run, as they write it."""
    text = pl.col(pl.String)
    formula = text.str.contains(FORMULA) & ~text.str.contains(NUMBER)
    return table.with_columns(pl.when(formula).then(text.str.replace("^", "'")).otherwise(text))


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
    with atomic_write(path) as part:
        part.write_text(json.dumps(record, indent=2, sort_keys=True, allow_nan=False) + "\n")


def read_json(path: str | Path) -> dict[str, Any]:
    """A record written by :func:`write_json`."""
    return json.loads(Path(path).read_text())


def write_arrays(
    path: str | Path, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, Any]
) -> None:
    """Write named arrays as safetensors with their metadata."""
    from safetensors.numpy import save

    with atomic_write(path) as part:
        content = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        told = {key: str(value) for key, value in sorted(metadata.items())}
        part.write_bytes(save(content, told))  # `save_file` would leave a file behind when killed
        sort_header(part)


def sort_header(path: Path) -> None:
    """Put the header of a safetensors file in order: the library writes metadata in any order."""
    with open(path, "r+b") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        text = json.dumps(header, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        if len(text.encode()) > length:
            raise ValueError(f"{path}: the header in order does not fit into its {length} bytes")
        file.seek(8)
        file.write(text.encode().ljust(length))


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
