"""Every command of the tutorial runs in order, and prints what the page shows."""

from __future__ import annotations

from pathlib import Path

import pytest
import walkthrough
from project import ROOT, checkout

TUTORIAL = ROOT / "docs" / "tutorial.md"
# Scores of trained networks may differ in the last digits between processors.
TOLERANCE = 0.05


def test_every_command_of_the_tutorial_prints_what_the_page_shows(tmp_path: Path) -> None:
    here = checkout(tmp_path / "stamp", "config")
    found = walkthrough.steps(TUTORIAL.read_text())
    assert len(found) > 10
    for step in found:
        printed = walkthrough.run(step.command, here)
        if step.shown is not None:
            assert step.shown.strip(), f"{step.command}\nhas no output on the page: regenerate it"
            assert walkthrough.alike(step.shown, printed, TOLERANCE), f"{step.command}\n{printed}"


def test_outputs_that_differ_are_told_apart() -> None:
    assert walkthrough.alike("score 0.51, n 3\n", "score 0.53, n 3\n", 0.05)
    assert not walkthrough.alike("score 0.51, n 3\n", "score 0.61, n 3\n", 0.05)
    assert not walkthrough.alike("score 0.51, n 3\n", "score 0.51, n 4\n", 0.05)
    assert not walkthrough.alike("score 0.51\n", "score none\n", 0.05)
    assert walkthrough.alike("about 20% of 3\n", "about 21% of 3\n", 0.05)
    assert not walkthrough.alike("about 20% of 3\n", "about 31% of 3\n", 0.05)


def test_a_command_that_fails_fails_the_page(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="no such"):
        walkthrough.run("echo no such file; false; true", tmp_path)
