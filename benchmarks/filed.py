"""The code as it was when the limits of whole runs were set, to run it beside today's."""

from __future__ import annotations

import subprocess
from pathlib import Path

from benchmarks import ROOT

COMMIT = "ea9743c34b7cca5eef2e098aec9cf747d48f22c1"


def unpack(folder: Path) -> Path:
    """All its files in a new folder; needs the repository with its history."""
    folder.mkdir()
    archive = subprocess.run(
        ["git", "-C", str(ROOT), "archive", COMMIT], capture_output=True, check=False
    )
    if archive.returncode:
        raise RuntimeError(f"no commit {COMMIT[:7]} here: {archive.stderr.decode().strip()}")
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    return folder
