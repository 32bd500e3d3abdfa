"""A command's report: what there is to say, then errors, warnings and notes, one per line."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

ERROR, WARNING, NOTE = "error", "warning", "note"


@dataclass(slots=True)
class Report:
    """Lines for a reader, and what was found wrong or missing."""

    lines: list[str] = field(default_factory=list)
    findings: list[tuple[str, str]] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)  # what a program wants to know

    def say(self, line: str) -> None:
        self.lines.append(line)

    def found(self, level: str, line: str) -> None:
        if (level, line) not in self.findings:
            self.findings.append((level, line))

    def count(self, level: str) -> int:
        return sum(1 for one, _ in self.findings if one == level)

    def record(self) -> dict[str, Any]:
        """The report for a program: its facts, and its findings by level."""
        levels = {f"{one}s": [text for level, text in self.findings if level == one]
                  for one in (ERROR, WARNING, NOTE)}  # fmt: skip
        return {**self.facts, **levels}

    def text(self) -> str:
        """The whole report, errors first; the last line counts errors and warnings."""
        order = {ERROR: 0, WARNING: 1, NOTE: 2}
        found = sorted(self.findings, key=lambda one: order[one[0]])
        listed = [f"{level}: {line}" for level, line in found]
        errors, warnings = self.count(ERROR), self.count(WARNING)
        end = f"{plural(errors, 'error')}, {plural(warnings, 'warning')}"
        gap = [""] if self.lines and listed else []
        return "\n".join([*self.lines, *gap, *listed, "", end])


def plural(number: int, word: str) -> str:
    """``1 image``, ``1,200 images``."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"
