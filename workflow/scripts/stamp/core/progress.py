"""How far work is: a bar on a terminal; in a job, lines in its log and in the end one summary.

Many jobs share a terminal, so none of them draws on it.
"""

from __future__ import annotations

import io
import re
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
LOOP = re.compile(r", (\d+\.\d+) s, (\d+\.\d+) s of CPU")
WHOLE = re.compile(r"; (\d+\.\d+) s, (\d+\.\d+) s of CPU(?: after (\d+\.\d+))?")
NAMED = ("torch", "timm", "torchxrayvision", "onnxruntime", "transformers", "polars")


@dataclass
class JobLog:
    """The log of the job that this process is, and what it has done so far."""

    path: Path | None = None
    notes: list[str] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    start_up: float = field(default_factory=time.process_time)

    @property
    def cost(self) -> str:
        """Seconds on the clock and of the CPU since it began, and of the CPU before that."""
        seconds, cpu = time.monotonic() - self.began, time.process_time() - self.start_up
        return f"{seconds:.2f} s, {cpu:.2f} s of CPU after {self.start_up:.2f} s of start-up"


@dataclass(frozen=True, slots=True)
class JobCost:
    """What a job took: seconds on the clock, seconds of CPU, and CPU seconds until it began."""

    seconds: float
    cpu: float
    start_up: float | None = None


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
    job = _job[0]
    cost = f"{job.cost}, {peak_memory():,} MB"
    modules = ((name, sys.modules.get(name)) for name in NAMED)
    versions = [f"{name} {one.__version__}" for name, one in modules if one is not None]
    return "; ".join([DONE, *job.notes, cost, *versions])


def peak_memory() -> int:
    """The most memory that this process had, in MB; what it shares with a warm parent is in it.

    Not by ``ru_maxrss`` where there is a choice: that of a larger process which started this one
    is handed down.
    """
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return int(re.findall(r"VmHWM:\s+(\d+)", status)[0]) // 1024


def read_cost(path: str | Path) -> JobCost | None:
    """What a job took by the last line of its log; of one with a loop over images, that loop alone.

    None without a log of a job that went well.
    """
    try:
        last = Path(path).read_text().rpartition(f"{DONE}; ")[2]
    except OSError:
        return None
    whole = WHOLE.search(f"; {last}")
    if whole is None:
        return None
    start_up = None if whole[3] is None else float(whole[3])
    loops = [(float(seconds), float(cpu)) for seconds, cpu in LOOP.findall(last)]
    if not loops:
        return JobCost(float(whole[1]), float(whole[2]), start_up)
    return JobCost(sum(one for one, _ in loops), sum(one for _, one in loops), start_up)


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

        def __init__(self, *arguments: Any, **settings: Any) -> None:
            self.start_cpu = time.process_time()
            super().__init__(*arguments, **settings)

        def display(self, msg: str | None = None, pos: int | None = None) -> None:
            if msg != "" and (path := _job[0].path) is not None:
                with open(path, "a") as log:
                    log.write(f"{self}\n")

        def close(self) -> None:
            if not self.disable and self.n:
                seconds = time.time() - self.start_t
                many = f"{self.n:,} {unit}{'' if self.n == 1 or unit == 'B' else 's'}"
                rate = f" ({self.n / seconds:,.0f}/s)" if unit in ("image", "B") else ""
                cpu = time.process_time() - self.start_cpu
                cost = f", {seconds:.2f} s, {cpu:.2f} s of CPU" if unit == "image" else ""
                note(f"{what}: {many}{rate}{cost}")
            super().close()

    return Lines(items, mininterval=EVERY, file=io.StringIO(), ncols=80, **common)
