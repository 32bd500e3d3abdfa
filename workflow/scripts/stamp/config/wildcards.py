"""Regular expressions for the names that a wildcard may have."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby
from os.path import commonprefix


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
            start = commonprefix(own)
            rest = _branches([name[len(start) :] for name in own])
            found.append(re.escape(start) + (f"(?:{rest})" if len(own) > 1 else ""))
    return "|".join([*found, ""] if names[:1] == [""] else found)
