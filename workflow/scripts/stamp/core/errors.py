"""A user's mistake, said in one line, and how a program ends on it."""

from __future__ import annotations

import difflib
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

MOST = 40  # names that a line lists: timm alone has more than a thousand


class UserError(Exception):
    """A mistake in configuration, data or model; its text is one line that a user can act on."""


def suggest(name: str, options: Iterable[str]) -> str:
    """``did you mean 'x'?`` for the option closest to ``name``, or what there is to choose from."""
    known = sorted(str(option) for option in options)
    close = difflib.get_close_matches(str(name), known, n=1, cutoff=0.6)
    if close:
        return f"did you mean '{close[0]}'?"
    more = f" and {len(known) - MOST:,} more" if len(known) > MOST else ""
    return f"known: {', '.join(known[:MOST])}{more}" if known else "none is defined"


@contextmanager
def naming(what: str) -> Iterator[None]:
    """Say of which model or file a mistake within is: ``what`` stands before its line."""
    try:
        yield
    except UserError as mistake:
        raise UserError(f"{what}: {mistake}") from None


def run(main: Callable[[Any], None], job: Any) -> None:
    """Run a rule's ``main`` and end the process.

    A user's mistake is one line on the screen and in the rule's log, any other error its traceback.
    After success the process ends at once: files are written and closed by then, and taking torch
    apart object by object would cost up to a second of every job.
    """
    try:
        main(job)
    except UserError as mistake:
        line = f"stamp: {mistake}"
        _log(job, line + "\n")
        sys.exit(line)
    except Exception:
        _log(job, traceback.format_exc())
        raise
    for path in _logs(job):
        path.unlink(missing_ok=True)  # what an earlier attempt said is true no more
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _logs(job: Any) -> list[Path]:
    """The log files of a job."""
    return [Path(str(path)) for path in getattr(job, "log", [])]


def _log(job: Any, text: str) -> None:
    """Write to the logs of a job."""
    for path in _logs(job):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
