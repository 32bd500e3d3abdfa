"""Result files: written completely or not at all, each with metadata on what it was made from.

Tables are Parquet, arrays are safetensors, records are JSON. Metadata is a flat dictionary of
strings (model, view, digest of the image ids, versions) that a reader may check.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import struct
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from stamp.core.errors import UserError, disk_is_full
from stamp.core.shown_text import FORMULA, NUMBER

METADATA_KEY = "stamp"
# Errors about files and folders that a user named: no bug of ours.
REFUSED = (PermissionError, NotADirectoryError, IsADirectoryError, FileExistsError)
PART = re.compile(r"\..+\.([0-9a-f]{8})\.(\d+)\.part")
UNTOUCHED = 7 * 86400.0  # seconds after which nobody writes a file of another machine any more


def part_of(final: Path) -> Path:
    """The file beside ``final`` that this process writes to: its name says whose it is."""
    return final.with_name(f".{final.name}.{_machine()}.{os.getpid()}.part")


@cache
def _machine() -> str:
    """Where process numbers count: eight digits for this machine, or this container of it."""
    try:
        space = os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        space = 0
    return hashlib.sha256(f"{os.uname().nodename} {space}".encode()).hexdigest()[:8]


def sweep(folder: Path) -> None:
    """Remove what killed processes left half written in a folder.

    That is a part whose process is gone, or one of another machine's that nobody wrote to for a
    week: whether its process lives can't be known from here.
    """
    for path in folder.glob(".*.part"):
        if (named := PART.fullmatch(path.name)) is None:
            continue
        machine, process = named[1], int(named[2])
        with suppress(OSError):  # another process may sweep too
            if machine == _machine():
                left = not _alive(process)
            else:
                left = time.time() - path.stat().st_mtime > UNTOUCHED
            if left:
                path.unlink()


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True


@cache
def _swept(folder: Path) -> None:
    """Sweep a folder, the first time that this process writes into it."""
    sweep(folder)


@contextmanager
def atomic_write(path: str | Path) -> Iterator[Path]:
    """A path beside ``path`` to write to; it takes its place if the block ends well, else goes."""
    final = Path(path)
    beside = part_of(final)
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        _swept(final.parent)
        yield beside
        os.chmod(beside, 0o666 & ~_umask())  # some libraries keep their files to the user alone
        os.replace(beside, final)
    except UserError:
        raise
    except Exception as error:
        if disk_is_full(error):
            raise UserError(
                f"{final}: no space left on the disk; nothing was written: make room and run again"
            ) from None
        if isinstance(error, REFUSED) and _about(error, beside, final):
            reason = error.strerror or "permission denied"
            raise UserError(f"{final}: can't be written: {reason}") from None
        raise
    finally:
        with suppress(OSError):  # where the folder itself can't be
            beside.unlink()


@cache
def _umask() -> int:
    """The user's umask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _about(error: OSError, beside: Path, final: Path) -> bool:
    """Whether an error is of the file that is written, or of a folder above it."""
    return str(beside) in str(error) or error.filename in map(str, final.parents)


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
