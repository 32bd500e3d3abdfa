"""Regular expressions for the names that a wildcard may have."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby, takewhile


def any_of(names: Iterable[str]) -> str:
    """A regular expression that matches exactly these names; empty where there are none.

    What names begin with in common is tried once: of a thousand models a match then looks at a few
    letters, not at a thousand alternatives.
    """
    return _branches(sorted(set(names)))


def _branches(names: list[str]) -> str:
    """The alternatives of sorted names; one that others begin with comes after them."""
    found = []
    for first, group in groupby(names, key=lambda name: name[:1]):
        if first:
            own = list(group)
            start = _common_start(own[0], own[-1])
            rest = _branches([name[len(start) :] for name in own])
            found.append(re.escape(start) + (f"(?:{rest})" if len(own) > 1 else ""))
    return "|".join([*found, ""] if names[:1] == [""] else found)


def _common_start(first: str, last: str) -> str:
    """What two names begin with in common; of sorted names, what all between them do too."""
    both = takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
    return "".join(letter for letter, _ in both)
