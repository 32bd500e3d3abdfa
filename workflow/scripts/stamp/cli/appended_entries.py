"""Entries put at the end of a YAML file as text: its comments and formatting stay."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from stamp.config.documents import read_yaml
from stamp.core.errors import UserError


def appended(file: Path, what: str, entries: Mapping[str, Any], added: str) -> str:
    """The text of a file with ``added`` at its end, checked to mean just these new entries.

    ``what`` an entry is called in the line that refuses one which is there already.
    """
    text = file.read_text() if file.is_file() else ""
    text = "" if text.strip() == "{}" else text  # an empty file may say so
    held = (read_yaml(file, what) or {}) if text else {}
    for key in entries:
        if key in held:
            raise UserError(f"{file}: {what} '{key}' is there already")
    new = text + ("" if not text or text.endswith("\n") else "\n") + added
    try:
        means = yaml.safe_load(new)
    except yaml.YAMLError:
        means = None
    if means != {**held, **entries}:
        raise UserError(f"{file}: an entry can't be added at its end: write it by hand")
    return new
