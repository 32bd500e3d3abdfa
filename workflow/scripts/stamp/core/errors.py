"""A user's mistake, said in one line, and how a program ends on it."""

from __future__ import annotations

import difflib
import errno
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from stamp.core import progress

MOST = 40  # names that a line lists: timm alone has more than a thousand
FULL = (errno.ENOSPC, errno.EDQUOT)
# Libraries in Rust keep the system's number in their text only.
FULL_IN_WORDS = re.compile(rf"\(os error ({'|'.join(map(str, FULL))})\)")
INTERRUPTED = 130  # the exit code of what Ctrl-C ended


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


def disk_is_full(error: BaseException) -> bool:
    """Whether an error, or one that it came of, says that the disk has no space left."""
    return any(
        (isinstance(one, OSError) and one.errno in FULL) or FULL_IN_WORDS.search(str(one))
        for one in _chain(error)
    )


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error and those that it came of, the latest first."""
    seen: list[BaseException] = []
    while error is not None and error not in seen:
        seen.append(error)
        yield error
        error = error.__cause__ or error.__context__


@contextmanager
def naming(what: str) -> Iterator[None]:
    """Say of which model or file a mistake within is: ``what`` stands before its line."""
    try:
        yield
    except UserError as mistake:
        raise UserError(f"{what}: {mistake}") from None


def run(main: Callable[[Any], None], job: Any) -> None:
    """Run a rule's ``main`` and end the process.

    A user's mistake, a full disk and code that ends the process itself are one line on the screen
    and in the rule's log, any other error its traceback. After success the log holds one line that
    says what was done, and the process ends at once: files are written and closed by then, and
    taking torch apart object by object would cost up to a second of every job.
    """
    logs = _logs(job)
    _log(job, "")  # what an earlier attempt said is true no more
    progress.begin_job(logs[0] if logs else None)
    try:
        main(job)
    except UserError as mistake:
        _end(job, str(mistake))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except SystemExit as left:
        _end(job, f"{_written(job)}: code that the job ran called sys.exit({left.code!r})")
    except Exception as error:
        if disk_is_full(error):
            _end(job, f"{_written(job)}: no space left on the disk; make room and run again")
        _log(job, traceback.format_exc())
        raise
    _log(job, progress.summary() + "\n")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _end(job: Any, line: str) -> None:
    """End the process with one line."""
    _log(job, f"stamp: {line}\n")
    say(f"stamp: {line}")
    sys.exit(1)


def say(line: str) -> None:
    """One line on the screen, in one write: the lines of jobs side by side stay apart."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _written(job: Any) -> str:
    """What a job should have written, for a message that knows no better name."""
    return next((str(path) for path in getattr(job, "output", [])), "a job")


def _logs(job: Any) -> list[Path]:
    """The log files of a job."""
    return [Path(str(path)) for path in getattr(job, "log", [])]


def _log(job: Any, text: str) -> None:
    """Write to the logs of a job, where the disk lets it: the text is on the screen as well."""
    for path in _logs(job):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        except OSError:
            with suppress(OSError):
                path.unlink(missing_ok=True)
