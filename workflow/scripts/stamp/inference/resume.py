"""Rows of a long job, kept beside its output until the job ends, so that a killed job resumes.

Snakemake deletes the outputs of a failed job; these two files are no outputs. One holds the rows. A
small record beside it says what they are made from, and how many rows were safely on disk when it
was written. Later rows are written again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from stamp.core.artifacts import write_json
from stamp.core.errors import UserError, disk_is_full


class ResumableRows:
    """float32 rows of one width; ``key`` is a digest of everything they depend on.

    Rows with another key, or whose record can't be read, do not count.
    """

    def __init__(self, target: Path, key: str, width: int):
        self.rows, self.record = (
            target.with_name(f".{target.name}.unfinished{end}") for end in ("", ".json")
        )
        self.key, self.width = key, width
        self.done = self._found()

    def _found(self) -> int:
        try:
            record = json.loads(self.record.read_text())
            there = self.rows.stat().st_size // self._bytes(1)
            whole = record["key"] == self.key and there >= record["done"]
        except (OSError, ValueError, KeyError, TypeError):
            return 0
        return int(record["done"]) if whole else 0

    def _bytes(self, rows: int) -> int:
        return rows * self.width * np.dtype(np.float32).itemsize

    def keep(self, parts: Iterator[np.ndarray]) -> None:
        """Append rows, and record each part once it is on disk."""
        try:
            self.rows.parent.mkdir(parents=True, exist_ok=True)
            with open(self.rows, "r+b" if self.done else "wb") as file:
                file.truncate(self._bytes(self.done))
                file.seek(0, os.SEEK_END)
                for part in parts:
                    self._append(file, part)
        except OSError as error:
            if not disk_is_full(error):
                raise
            raise UserError(
                f"{self.rows}: no space left on the disk; {self.done} rows are kept: make room and "
                "run again"
            ) from None

    def _append(self, file: BinaryIO, part: np.ndarray) -> None:
        file.write(np.ascontiguousarray(part, dtype=np.float32).tobytes())
        file.flush()
        os.fsync(file.fileno())
        self.done += len(part)
        write_json(self.record, {"key": self.key, "done": self.done})

    def parts(self, size: int) -> Iterator[np.ndarray]:
        """All rows that were kept, up to ``size`` at a time."""
        with open(self.rows, "rb") as file:
            for start in range(0, self.done, size):
                count = min(size, self.done - start)
                held = np.frombuffer(file.read(self._bytes(count)), dtype=np.float32)
                yield held.reshape(count, self.width)

    def drop(self) -> None:
        """Remove both files: the job is done."""
        for file in (self.record, self.rows):
            file.unlink(missing_ok=True)
