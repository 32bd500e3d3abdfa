"""The contracts between the rooms of the library hold, and each notices the import it forbids."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from project import ROOT


def broken(folder: Path) -> list[str]:
    """The names of the contracts that the library in a folder breaks."""
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--no-logo"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder / "workflow" / "scripts"), "COLUMNS": "200"},
        text=True,
        capture_output=True,
    )
    found = re.findall(r"^(.+) BROKEN\b", done.stdout, re.MULTILINE)
    assert done.returncode == bool(found), done.stdout + done.stderr
    return found


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    shutil.copy2(ROOT / "pyproject.toml", tmp_path)
    scripts, copy = (each / "workflow" / "scripts" / "stamp" for each in (ROOT, tmp_path))
    shutil.copytree(scripts, copy, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_the_library_keeps_every_contract(checkout: Path) -> None:
    assert broken(checkout) == []


@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        ("scoring/stamp.py", "import stamp.report", "A room imports only the rooms below it"),
        ("report/correlate.py", "import stamp.models.weights", "no torch and no pixels"),
        ("core/errors.py", "import numpy", "Planning imports nothing heavy"),
        ("stats/ranks.py", "import polars", "Statistics take arrays"),
        ("__init__.py", "import stamp.cli", "Only the program imports the command line"),
    ],
)
def test_a_forbidden_import_breaks_its_contract(
    checkout: Path, module: str, line: str, contract: str
) -> None:
    file = checkout / "workflow" / "scripts" / "stamp" / module
    file.write_text(f"{file.read_text()}\n{line}\n")
    assert any(contract in name for name in broken(checkout))
