"""Digests of code that are kept between runs: the same as anew, and never those of other code."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from project import ROOT

from stamp.core.code_digest import code_digest

SCRIPTS = ROOT / "workflow" / "scripts"
KEPT = Path(".snakemake", "code-digests.json")
ASK = """
from stamp.core.kept_code_digests import SCRIPTS, kept_code_digest
print(kept_code_digest(SCRIPTS / "score.py"))
"""


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    """A copy of the library that may be edited."""
    ignored = shutil.ignore_patterns("__pycache__")
    return shutil.copytree(SCRIPTS, tmp_path / "scripts", ignore=ignored)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where Snakemake has run before."""
    (tmp_path / "project" / ".snakemake").mkdir(parents=True)
    return tmp_path / "project"


def asked(scripts: Path, folder: Path) -> str:
    """The digest of a script's code, as another process in the folder finds it."""
    done = subprocess.run(
        [sys.executable, "-c", ASK],
        cwd=folder,
        env={"PYTHONPATH": str(scripts)},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


def mark(file: Path) -> None:
    """Put something else in the place of the kept digest, to tell whether it is read."""
    kept = json.loads(file.read_text())
    kept["digests"]["score.py"] = "kept"
    file.write_text(json.dumps(kept))


def test_a_later_run_takes_what_an_earlier_one_kept(scripts: Path, folder: Path) -> None:
    assert asked(scripts, folder) == code_digest(SCRIPTS / "score.py")
    mark(folder / KEPT)
    assert asked(scripts, folder) == "kept"
    assert asked(scripts, folder.parent) == code_digest(SCRIPTS / "score.py")
    assert not (folder.parent / KEPT).exists(), "no folder is made for it"


@pytest.mark.parametrize("change", ["edited", "new", "renamed", "gone"])
def test_nothing_is_kept_when_a_source_file_changed(
    scripts: Path, folder: Path, change: str
) -> None:
    asked(scripts, folder)
    mark(folder / KEPT)
    other = scripts / "stamp" / "report" / "wording.py"
    if change == "edited":
        other.write_text(other.read_text() + "\n")
    elif change == "new":
        (scripts / "stamp" / "another.py").touch()
    elif change == "renamed":
        other.rename(other.with_name("words.py"))
    else:
        other.unlink()
    assert asked(scripts, folder) == code_digest(SCRIPTS / "score.py")
    assert json.loads((folder / KEPT).read_text())["digests"]["score.py"] != "kept"


@pytest.mark.parametrize("content", ["", "{", "[]", '{"sources": 1}', "\0"])
def test_a_file_that_says_nothing_is_written_anew(
    scripts: Path, folder: Path, content: str
) -> None:
    (folder / KEPT).write_text(content)
    found = asked(scripts, folder)
    assert found == code_digest(SCRIPTS / "score.py")
    assert json.loads((folder / KEPT).read_text())["digests"] == {"score.py": found}
