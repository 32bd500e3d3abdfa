"""What tables and figures say of new models: from arguments, or from a table for many of them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stamp.core.errors import UserError, suggest
from stamp.data import table_files

NEEDED = ("family", "objective", "regime")
KNOWN = ("label", *NEEDED, "backbone", "superfamily")


def entry_texts(arguments: argparse.Namespace, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The texts of each model's entry; a table's cell goes before the argument."""
    table = _table(Path(arguments.about), keys) if arguments.about else {}
    found: dict[str, dict[str, Any]] = {}
    for key in keys:
        said = {name: getattr(arguments, name, None) for name in KNOWN} | table.get(key, {})
        entry = {"label": said["label"] or key, **{name: said[name] for name in NEEDED}}
        for name in NEEDED:
            if not entry[name]:
                where = f"{arguments.about}: " if arguments.about else ""
                raise UserError(
                    f"{where}model '{key}' has no {name}: give --{name} NAME, or a table by --about"
                )
        entry |= {name: said[name] for name in ("backbone", "superfamily") if said[name]}
        if arguments.trained_on is not None:  # without a split: it has seen none of them
            entry["trained_on"] = arguments.trained_on
        if arguments.contamination:
            entry["contamination"] = arguments.contamination
        found[key] = entry
    return found


def _table(file: Path, keys: Sequence[str]) -> dict[str, dict[str, str]]:
    """The filled cells of each model's row."""
    table = table_files.read(file)
    table_files.column(table, "model", "the models' keys", file)
    for name in table.columns:
        if name not in ("model", *KNOWN, table_files.ROW):
            raise UserError(f"{file}: unknown column '{name}': {suggest(name, KNOWN)}")
    rows = {row["model"]: row for row in table.iter_rows(named=True)}
    for key in keys:
        if key not in rows:
            raise UserError(f"{file}: no row of model '{key}': {suggest(key, rows)}")
    return {key: {name: row[name] for name in KNOWN if row.get(name)} for key, row in rows.items()}
