"""Every command of the pages that are walked through runs in order, and prints what they show."""

from __future__ import annotations

from pathlib import Path

import pytest
import walkthrough
from project import ROOT
from walkthrough import Step

DOCS = ROOT / "docs"


@pytest.mark.parametrize(
    ("page", "outputs", "tolerance"),
    [
        # convolutions differ in their last digits between processors, and training makes much of it
        ("tutorial.md", 12, 0.3),
        ("add-a-model.md", 8, 0.0),
        ("outputs-only.md", 4, 0.01),
        ("something-failed.md", 4, 0.0),
    ],
)
def test_every_command_of_a_page_prints_what_the_page_shows(
    tmp_path: Path, page: str, outputs: int, tolerance: float
) -> None:
    assert walkthrough.check(DOCS / page, tmp_path / "stamp", tolerance) >= outputs


def test_every_page_with_commands_and_their_outputs_is_walked_through() -> None:
    shown = {
        page.name
        for page in DOCS.glob("*.md")
        if any(step.shown is not None for step in walkthrough.steps(page.read_text()))
    }
    assert shown == set(walkthrough.PAGES)


def test_both_kinds_of_blocks_are_steps_with_the_place_of_their_output() -> None:
    text = (
        "```sh\necho a\n```\n```text\na\n```\n```console\n$ echo b \\\n    c\nb c\n```\n"
        "```sh\ntrue\n```\n```text\n```\n```console\n$ true\n```\n"
    )
    found = walkthrough.steps(text)
    assert [step.command for step in found] == [
        "echo a\n", "echo b \\\n    c\n", "true\n", "true\n"
    ]  # fmt: skip
    assert [step.shown for step in found] == ["a\n", "b c\n", "", ""]
    for step in found:
        assert step.place is not None and text[slice(*step.place)] == step.shown
    assert walkthrough.run(found[1], Path()) == found[1].shown


def test_outputs_that_differ_are_told_apart() -> None:
    assert walkthrough.alike("score 0.51, n 3\n", "score 0.53, n 3\n", 0.05)
    assert not walkthrough.alike("score 0.51, n 3\n", "score 0.61, n 3\n", 0.05)
    assert not walkthrough.alike("score 0.51, n 3\n", "score 0.51, n 4\n", 0.05)
    assert not walkthrough.alike("score 0.51\n", "score none\n", 0.05)
    assert walkthrough.alike("about 20% of 3\n", "about 21% of 3\n", 0.05)
    assert not walkthrough.alike("about 20% of 3\n", "about 31% of 3\n", 0.05)
    first = "\u2502 1     \u2506 a \u2506 0.51 \u2502\n\u2502 2     \u2506 b \u2506 -0.01 \u2502\n"
    other = "\u2502 1 \u2506 b \u2506 0.02 \u2502\n\u2502 2 \u2506 a \u2506 0.50 \u2502\n"
    assert walkthrough.alike(first, other, 0.05) and not walkthrough.alike(first, other, 0.0)
    assert not walkthrough.alike(first, other.replace("a", "c"), 0.05)


def test_a_command_that_fails_fails_the_page_unless_its_mistake_is_shown(tmp_path: Path) -> None:
    command = "echo no such file >&2; false; true"
    with pytest.raises(AssertionError, match="no such"):
        walkthrough.run(Step(command), tmp_path)
    assert walkthrough.run(Step(command, everything=True), tmp_path) == "no such file\n"
