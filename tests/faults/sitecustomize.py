"""Ends the job that it is loaded into, in the middle of a write: the kernel or a full disk does it.

Python imports this module when it starts, if its folder is on ``PYTHONPATH``. A folder of faults,
one JSON file each (see ``fault_study.Fault``), says which job is to end where. A process that makes
a file longer than ``RLIMIT_FSIZE`` gets SIGXFSZ, whichever library writes; Python ignores that
signal, but from the moment that a fault is due it is deadly again.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any


def arm(size: int) -> None:
    """From now on a file that grows beyond ``size`` bytes ends this process."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)


def arm_after(name: str, times: int, size: int) -> None:
    """Arm once so many files were given a name that ends like this."""
    left = times

    def count(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        if event == "os.rename" and str(arguments[1]).endswith(name):
            left -= 1
            if left == 0:
                arm(size)

    sys.addaudithook(count)


def fill(filler: Path, left: int) -> None:
    """Take all of a disk but for ``left`` bytes, as another program might."""
    disk = os.statvfs(filler.parent)
    filler.write_bytes(bytes(disk.f_bavail * disk.f_frsize - left))


def begin(faults: Path, script: str) -> None:
    """Take the first fault that is meant for this job, if there is one; nobody takes it again."""
    job = Path(script).name.partition(".")[2]
    for file in sorted(faults.glob("*.json")):
        fault = json.loads(file.read_text())
        if fault["script"] != job or fault["output"] not in Path(script).read_text():
            continue
        try:
            file.rename(file.with_suffix(".taken"))
        except FileNotFoundError:  # by another job
            continue
        sys.dont_write_bytecode = True
        if fault["filler"]:
            fill(Path(fault["filler"]), fault["size"])
        elif fault["after"]:
            arm_after(fault["after"], fault["times"], fault["size"])
        else:
            arm(fault["size"])
        return


if "STAMP_TEST_FAULTS" in os.environ and sys.argv[0].endswith(".py"):
    begin(Path(os.environ["STAMP_TEST_FAULTS"]), sys.argv[0])
