"""A job as Snakemake prints it: a head, then one indented ``key: value`` line per field.

A dry run prints its jobs this way, and so does the log of a run. Snakemake's logger plugins would
give the fields themselves, but a run's log is read afterwards, the user's own command wrote it, and
what SLURM did with a job stands in it as plain text in any case.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

HEAD = re.compile(r"(?P<indent> *)(?:local)?(?:rule|checkpoint) (?P<rule>\w+):$")
FIELD = re.compile(r" +(?P<key>[a-z_]+): (?P<value>.*)$")
ASKING = ("all", "everything")  # rules that only ask for others: ours, and a new project's own
Identity = tuple[str, frozenset[tuple[str, str]]]


@dataclass(frozen=True, slots=True)
class JobText:
    """A job's rule and printed fields; one that is ``indented`` belongs to a group."""

    rule: str
    fields: dict[str, str]
    indented: bool

    @property
    def wildcards(self) -> dict[str, str]:
        return assignments(self.fields.get("wildcards", ""))

    def files(self, field: str) -> tuple[str, ...]:
        return tuple(filter(None, self.fields.get(field, "").split(", ")))


def job_at(lines: Sequence[str], number: int) -> JobText | None:
    """The job whose head is this line; None where it is another line."""
    head = HEAD.match(lines[number])
    return head and JobText(head["rule"], fields_below(lines, number), bool(head["indent"]))


def fields_below(lines: Sequence[str], number: int) -> dict[str, str]:
    """The ``key: value`` lines that follow a line."""
    found = {}
    for line in lines[number + 1 :]:
        field = FIELD.match(line)
        if not field:
            break
        found[field["key"]] = field["value"]
    return found


def assignments(text: str, between: str = ", ") -> dict[str, str]:
    """``study=a, model=b`` as a dictionary."""
    return dict(part.split("=", 1) for part in text.split(between) if "=" in part)


def identity(rule: str, wildcards: dict[str, str]) -> Identity:
    """What tells a job from others, in a dry run and in a run's log."""
    return rule, frozenset(wildcards.items())
