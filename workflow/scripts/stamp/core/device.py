"""Which device the forward passes use, found without importing torch.

On a machine with several GPUs every job takes one for itself, by a lock on a small file that the
kernel gives back when the job's process ends, however it ends.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from stamp.core.errors import UserError, say, suggest
from stamp.core.progress import note

DEVICES = ("auto", "cuda", "cpu")

# Locks that this process holds: closing one would give its GPU away.
_held: list[int] = []


def choose(setting: str) -> str:
    """``cuda`` or ``cpu`` for a configured ``auto``, ``cuda`` or ``cpu``."""
    if setting not in DEVICES:
        raise UserError(f"device '{setting}' is unknown: {suggest(setting, DEVICES)}")
    if setting != "auto":
        return setting
    return "cuda" if present() and visible() else "cpu"


def present() -> int:
    """The number of GPUs in this machine."""
    numbered = len(list(Path("/dev").glob("nvidia[0-9]*")))
    return numbered or int(Path("/dev/dxg").exists())


def visible() -> list[str]:
    """The GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them."""
    listed = os.environ.get("CUDA_VISIBLE_DEVICES")
    if listed is None:
        return [str(number) for number in range(present())]
    # as CUDA reads it: a name that is empty or negative ends the list
    names = (name.strip() for name in listed.split(","))
    return list(takewhile(lambda name: name and not name.startswith("-"), names))


def claim(resources: Mapping[str, Any]) -> str:
    """``cpu`` for a job without ``gpu``; else ``cuda``, which is then one GPU of the job's own.

    Call it before anything asks CUDA for its devices. With fewer free GPUs than jobs it waits.
    """
    if not resources.get("gpu"):
        note("device cpu")
        return "cpu"
    devices = visible()
    if devices:
        os.environ["CUDA_VISIBLE_DEVICES"] = take(devices, lock_folder())
    note(f"device cuda {os.environ.get('CUDA_VISIBLE_DEVICES', '')}".rstrip())
    return "cuda"


def lock_folder() -> Path:
    """Where a user's jobs on this machine tell each other which GPUs they hold.

    SLURM may number the GPUs of each of its jobs from 0, so that only the jobs inside one
    allocation can mean the same GPU by the same number.
    """
    allocation = os.environ.get("SLURM_JOB_ID")
    inside = f"slurm-{allocation}" if allocation else "machine"
    return Path(tempfile.gettempdir()) / f"stamp-gpu-{os.getuid()}" / inside


def take(devices: Sequence[str], folder: Path, pause: float = 1.0) -> str:
    """One of ``devices`` that no other process holds; it is this process's until it ends."""
    import fcntl

    said = False
    while True:
        for device in devices:
            path = folder / device.replace("/", "_")
            try:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            except PermissionError:
                raise UserError(
                    f"{path}: can't be written: set TMPDIR to a folder of yours"
                ) from None
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
                continue
            _held.append(lock)
            return device
        if not said:
            say(f"waiting for a GPU: all of {', '.join(devices)} are taken")
            said = True
        time.sleep(pause)
