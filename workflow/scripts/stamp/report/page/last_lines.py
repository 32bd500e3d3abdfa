"""The last lines of a run: the first models of each study, and where its page is.

Planning prints them, so nothing heavy is imported here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


def last_lines(results: str, studies: Iterable[str]) -> str:
    """What the finished studies found; those without a page are left out."""
    blocks = []
    for study in studies:
        file = Path(results, study, "page.json")
        if file.is_file():
            blocks.append(study_lines(json.loads(file.read_text()), results))
    if Path(results, "index.html").is_file() and blocks:
        blocks.append([f"All studies: {results}/index.html (python -m stamp open)"])
    return "\n".join(line for block in blocks for line in ["", *block])


def study_lines(found: Mapping[str, Any], results: str) -> list[str]:
    """One study: a line per model with its interval and flags, then the page."""
    number = found["models"]
    names = [row["name"] for row in found["first"]]
    width = max(map(len, names), default=0)
    return [
        f"{found['title']}: {number} model{'' if number == 1 else 's'}",
        *(
            f"  {row['place'] or '-'}  {row['name']:<{width}}  {_score(row)}"
            for row in found["first"]
        ),
        f"  page: {results}/{found['address']}",
    ]


def _score(row: Mapping[str, Any]) -> str:
    interval = "no interval"
    if row["low"] is not None and row["high"] is not None:
        interval = f"{row['low']:.3f} to {row['high']:.3f}"
    flags = ", ".join(one["label"] for one in row["flags"]) or "no flags"
    return f"{row['stamp']:.3f} ({interval})  {flags}"
