"""A user's files where a job has them: Snakemake's storage leaves a copy of each input elsewhere.

Tables and views name images by the paths that the user gave. A job that reads its inputs from a
storage finds them under a folder of its own machine, with the same path below that folder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from stamp.core.artifacts import read_table, table_metadata, write_table


@dataclass(frozen=True, slots=True)
class LocalCopies:
    """Where the copies of files and folders are, by the paths that the user gave them."""

    places: Mapping[str, str]

    def here(self, path: str) -> str:
        """The copy of a file that was staged, by itself or with its folder; others as they are."""
        known = os.path.normpath(path)
        for named, local in self.places.items():
            if known == named or known.startswith(f"{named}{os.sep}"):
                return local + known[len(named) :]
        return path

    def folder(self, root: str) -> str:
        """Where a folder would be whose files were staged one by one; as it is if none was."""
        known = os.path.normpath(root).lstrip(os.sep)
        for named, local in self.places.items():
            base = local.removesuffix(named.lstrip(os.sep))
            if base != local:
                return os.path.join(base, known)
        return root

    def block(self, value: Any) -> Any:
        """A model's ``load`` block in which files of the user's are their copies."""
        if isinstance(value, Mapping):
            return {key: self.block(inner) for key, inner in value.items()}
        return self.here(value) if isinstance(value, str) and value in self.places else value

    def view(self, file: str | Path, folder: Path) -> str:
        """A copy of a view in ``folder`` whose paths lead to the copies of the images."""
        rows, made = read_table(file), folder / Path(file).name
        paths = [self.here(path) for path in rows["path"]]
        write_table(made, rows.with_columns(path=pl.Series(paths)), table_metadata(file))
        return str(made)


def named_again(index: pl.DataFrame, local: str, root: str) -> pl.DataFrame:
    """An index made from copies below ``local``, with the paths below the user's ``root``."""
    paths = [
        os.path.join(root, os.path.relpath(path, local)) if path.startswith(local) else path
        for path in index["path"]
    ]
    return index.with_columns(path=pl.Series(paths, dtype=pl.String))
