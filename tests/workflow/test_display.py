"""What a person sees of a run: a live display in a terminal, a few lines in a file."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

import pytest
from project import PARTS, ROOT, Project

PAIRS = "results/small_phantom/pairs.parquet"


@pytest.fixture
def displayed(tmp_path: Path) -> Project:
    """A project with the display that users have."""
    project = Project.create(tmp_path / "project")
    profile = Path("profiles", "default", "config.yaml")
    (project.folder / profile).write_text((ROOT / profile).read_text())
    assert "profiles" in PARTS and "logger" in (project.folder / profile).read_text()
    return project


def in_a_terminal(project: Project, *arguments: str) -> str:
    """What a run shows on a terminal."""
    ours, theirs = pty.openpty()
    run = subprocess.Popen(
        project.command(*arguments),
        cwd=project.folder,
        env={**project.environment(), "TERM": "xterm-256color", "COLUMNS": "100"},
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the last program has closed the terminal
            break
        if not part:
            break
        shown += part
    os.close(ours)
    assert run.wait() == 0, shown.decode()
    return shown.decode()


def test_a_terminal_shows_how_far_each_rule_is_and_a_file_gets_few_lines(
    displayed: Project,
) -> None:
    shown = in_a_terminal(displayed, PAIRS)
    assert "Total Progress" in shown and "make dataset" in shown
    assert "\x1b[" in shown  # drawn again and again, in place
    again = displayed.finish("--forcerun", "make_dataset", "--", PAIRS)
    assert "\x1b[" not in again.text
    assert "make dataset" in again.text and len(again.text.splitlines()) < 40
    (log,) = sorted((displayed.folder / ".snakemake" / "log").iterdir())[-1:]
    assert "localrule make_dataset:" in log.read_text()  # every job in full


def test_a_failed_job_is_named_with_its_own_line_and_log(displayed: Project) -> None:
    displayed.edit("datasets.yaml", lambda all: all["small_phantom"]["options"].update(size=1))
    done = displayed.run("--", PAIRS)
    assert done.code != 0
    assert "stamp: " in done.text and "make_dataset.log" in done.text, done.text
