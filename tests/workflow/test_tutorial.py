"""Every command of the tutorial runs in order, and prints what the page shows."""

from __future__ import annotations

from pathlib import Path

import page
import pytest
from project import ROOT, checkout

TUTORIAL = ROOT / "docs" / "tutorial.md"
# Scores of trained networks may differ in the last digits between processors.
TOLERANCE = 0.05


def test_every_command_of_the_tutorial_prints_what_the_page_shows(tmp_path: Path) -> None:
    here = checkout(tmp_path / "stamp", "config")
    found = page.steps(TUTORIAL.read_text())
    assert len(found) > 10
    for step in found:
        printed = page.run(step.command, here)
        if step.shown is not None:
            assert step.shown.strip(), f"{step.command}\nhas no output on the page: regenerate it"
            assert page.alike(step.shown, printed, TOLERANCE), f"{step.command}\n{printed}"


def test_outputs_that_differ_are_told_apart() -> None:
    assert page.alike("score 0.51, n 3\n", "score 0.53, n 3\n", 0.05)
    assert not page.alike("score 0.51, n 3\n", "score 0.61, n 3\n", 0.05)
    assert not page.alike("score 0.51, n 3\n", "score 0.51, n 4\n", 0.05)
    assert not page.alike("score 0.51\n", "score none\n", 0.05)


def test_a_command_that_fails_fails_the_page(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="no such"):
        page.run("echo no such file; false; true", tmp_path)
