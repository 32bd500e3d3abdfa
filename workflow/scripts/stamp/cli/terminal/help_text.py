"""Help that fits 80 columns, with an example for each command."""

from __future__ import annotations

import argparse
import os
import sys
import textwrap

WIDTH = 80


def program() -> str:
    """How the user called it: by the installed name, or as a module."""
    return "stamp" if os.path.basename(sys.argv[0]) == "stamp" else "python -m stamp"


class Paragraphs(argparse.HelpFormatter):
    """Paragraphs stay apart, and indented lines stay as they are."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=WIDTH - 2)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        parts = [part.strip("\n") for part in text.split("\n\n")]
        return "\n\n".join(
            part if "\n  " in f"\n{part}" else textwrap.fill(part, width) for part in parts
        )


def example(command: str) -> str:
    """An example as it stands in a command's help, broken as a shell reads it."""
    lines = textwrap.wrap(
        f"{program()} {command}", WIDTH - 8, break_long_words=False, break_on_hyphens=False
    )
    return "example:\n" + " \\\n".join(
        f"  {'  ' * bool(number)}{line}" for number, line in enumerate(lines)
    )
