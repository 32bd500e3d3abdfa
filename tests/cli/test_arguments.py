"""Numbers and mappings on the command line: what is out of range is refused before any work."""

from __future__ import annotations

import argparse

import pytest

from stamp.__main__ import main
from stamp.cli.terminal.arguments import at_least, between, mapping


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "", "many"])
def test_a_whole_number_below_the_least_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="1 or more"):
        at_least(1)(text)
    assert (at_least(1)("1"), at_least(0)("0")) == (1, 0)


@pytest.mark.parametrize("text", ["0", "1", "nan", "inf", "half"])
def test_a_number_at_or_beyond_an_end_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="above 0 and below 1"):
        between(0, 1)(text)
    assert between(0)("12.5") == 12.5


@pytest.mark.parametrize("text", ["{a: [", "a", "[1]", ""])
def test_what_is_no_mapping_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="mapping"):
        mapping(text)
    assert mapping("{a: [1, 2], b: x}") == {"a": [1, 2], "b": "x"}


@pytest.mark.parametrize(
    "command",
    [
        ["audit-model"],
        ["check-data", "x"],
        ["example-data", "x"],
        ["statistics", "x.csv", "--out", "y"],
    ],
)
def test_no_command_takes_a_negative_seed(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main([*command, "--seed", "-1"])
    assert caught.value.code == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert "--seed" in last and "'-1'" in last and "0 or more" in last
