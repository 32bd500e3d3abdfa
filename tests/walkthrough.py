"""A page of the documentation whose commands are run and whose outputs are what they printed.

``python tests/walkthrough.py docs/tutorial.md`` runs a page in a copy of the project and writes its
outputs anew. An ``sh`` block of a page is run by bash, a ``text`` block after it shows what it
printed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from project import checkout

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"-?\d+\.\d+|\d+(?=%)")


@dataclass(frozen=True)
class Step:
    """A command of a page, and where the output that it shows stands, if it shows any."""

    command: str
    shown: str | None
    place: tuple[int, int] | None


def steps(text: str) -> list[Step]:
    """The commands of a page in order."""
    found: list[Step] = []
    for block in BLOCK.finditer(text):
        if block[1] == "sh":
            found.append(Step(block[2], None, None))
        elif block[1] == "text" and found and found[-1].shown is None:
            found[-1] = Step(found[-1].command, block[2], block.span(2))
    return found


def environment(folder: Path) -> dict[str, str]:
    """The active environment: its programs, and the library as `envs/install` links it."""
    kept = {key: value for key, value in os.environ.items() if key != "SNAKEMAKE_PROFILE"}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', '')}"
    library = str(folder / "workflow" / "scripts")
    return {**kept, "PATH": path, "PYTHONPATH": library, "XDG_CACHE_HOME": str(folder / "cache")}


def run(command: str, folder: Path) -> str:
    """What a command prints; one that fails raises with all that it said."""
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", command],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=600,
    )
    if done.returncode:
        raise AssertionError(f"{command}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def alike(shown: str, printed: str, tolerance: float) -> bool:
    """Whether two texts are equal but for decimals and percentages, which may differ a little."""
    if NUMBER.sub("#", shown) != NUMBER.sub("#", printed):
        return False
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=True)
    return all(abs(_value(a) - _value(b)) <= tolerance for a, b in pairs)


def _value(text: str) -> float:
    return float(text) if "." in text else float(text) / 100


def rewritten(page: Path) -> str:
    """The page with the outputs that its commands print now."""
    text = page.read_text()
    with tempfile.TemporaryDirectory() as folder:
        here = checkout(Path(folder) / "stamp", "config")
        outputs = [(step, run(step.command, here)) for step in steps(text)]
    for step, printed in reversed(outputs):
        if step.place is not None:
            start, end = step.place
            text = text[:start] + printed + text[end:]
    return text


if __name__ == "__main__":
    for name in sys.argv[1:]:
        Path(name).write_text(rewritten(Path(name)))
