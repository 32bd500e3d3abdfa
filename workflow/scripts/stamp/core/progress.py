"""How far work is: a bar on a terminal; in a job, lines in its log and in the end one summary.

Many jobs share a terminal, so none of them draws on it.
"""

from __future__ import annotations

import io
import resource
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PATIENCE = 2.0  # seconds before a bar appears
DONE = "done"  # how the log of a job that went well begins its last line
EVERY = 30.0  # seconds between two lines of a log
NAMED = ("torch", "timm", "torchxrayvision", "onnxruntime", "transformers", "polars")


@dataclass
class JobLog:
    """The log of the job that this process is, and what it has done so far."""

    path: Path | None = None
    notes: list[str] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)


_job: list[JobLog] = []


def begin_job(path: Path | None) -> None:
    """From now on this process is a job with this log, if it has one."""
    _job[:] = [JobLog(path)]


def note(text: str) -> None:
    """Keep a few words for the summary of the job, if this process is one."""
    if _job:
        _job[0].notes.append(text)


def summary() -> str:
    """What the job did: its notes, seconds and memory, and the versions of what it used."""
    job, used = _job[0], resource.getrusage(resource.RUSAGE_SELF)
    cost = (
        f"{time.monotonic() - job.began:.1f} s, {used.ru_utime + used.ru_stime:.1f} s of CPU, "
        f"{used.ru_maxrss // 1024:,} MB"
    )
    modules = ((name, sys.modules.get(name)) for name in NAMED)
    versions = [f"{name} {one.__version__}" for name, one in modules if one is not None]
    return "; ".join([DONE, *job.notes, cost, *versions])


def bar(items: Iterable[Any] | None, what: str, total: int, unit: str = "image") -> Any:
    """A tqdm bar that appears after two seconds; in a job, lines in its log."""
    from tqdm import tqdm

    common: dict[str, Any] = {
        "total": total,
        "desc": what,
        "unit": unit,
        "unit_scale": unit == "B",
        "delay": PATIENCE,
        "leave": False,
    }
    if not _job:
        live = sys.stderr.isatty()
        every = 0.5 if live else EVERY
        return tqdm(items, mininterval=every, dynamic_ncols=live, file=sys.stderr, **common)

    class Lines(tqdm):
        """A bar whose every drawing is one line of the log."""

        def display(self, msg: str | None = None, pos: int | None = None) -> None:
            if msg != "" and (path := _job[0].path) is not None:
                with open(path, "a") as log:
                    log.write(f"{self}\n")

        def close(self) -> None:
            if not self.disable and self.n:
                seconds = time.time() - self.start_t
                many = f"{self.n:,} {unit}{'' if self.n == 1 or unit == 'B' else 's'}"
                rate = f" ({self.n / seconds:,.0f}/s)" if unit in ("image", "B") else ""
                note(f"{what}: {many}{rate}")
            super().close()

    return Lines(items, mininterval=EVERY, file=io.StringIO(), ncols=80, **common)
