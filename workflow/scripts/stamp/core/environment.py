"""What the processes of the jobs find in their environment."""

import os
from collections.abc import MutableMapping
from pathlib import Path

KEPT = str(2**30)


def prepare(scripts: Path, environment: MutableMapping[str, str] = os.environ) -> None:
    """Let the jobs that this process starts import ``scripts`` first and keep large blocks.

    Snakemake puts a script's own folder last on the path, so that another checkout's library, if
    one is installed in the environment, would come before it. And glibc gives large blocks back to
    the system at once and takes them again for every batch; keeping them saves the page faults,
    which are a good part of a small network's time on a CPU.
    """
    paths = [str(scripts), *environment.get("PYTHONPATH", "").split(os.pathsep)]
    environment["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(path for path in paths if path))
    for threshold in ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"):
        environment.setdefault(threshold, KEPT)
