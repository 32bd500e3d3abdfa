"""What was found about one thing."""

from __future__ import annotations

from dataclasses import dataclass

OK, NOTE, WARNING, ERROR = "ok", "note", "warning", "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """``level``: ok, note (nothing to do), warning (some models may fail) or error (a run will)."""

    level: str
    about: str
    text: str
