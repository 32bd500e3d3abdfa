"""Python processes that start warm: forked from one that has imported the large packages already.

    subprocess.run([warm.python(), "-m", "snakemake", "--cores", "2"])

Most of a miniature study's time is the start of its processes. ``python()`` is a program that takes
``script.py``, ``-m module`` or ``-`` as Python does. It hands them with its folder, environment and
standard streams to a parent as jobs have one (``stamp.core.warm_start``), and ends as the process
ends that the parent forks for it. Kill the program, and the process dies with it.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from stamp.core.warm_start import scripts

PARENT = Path(__file__).resolve().parents[1] / "workflow/scripts/stamp/core/warm_start/parent.py"
PACKAGES = {
    *scripts.ALL,
    *(name for names in scripts.MORE.values() for name in names),
    *("jsonschema", "matplotlib.pyplot", "pandas", "pydantic", "requests", "rich.markdown"),
    *("scipy.stats", "sklearn.metrics", "snakemake.cli", "snakemake.report", "snakemake.workflow"),
    *("snakemake_executor_plugin_slurm", "snakemake_logger_plugin_rich", "torchxrayvision"),
}

CLIENT = """#!{python} -IS
import json, os, signal, socket, struct, sys
hub = socket.socket(socket.AF_UNIX)
hub.connect({address!r})
asked = {{"arguments": sys.argv[1:], "folder": os.getcwd(), "environment": dict(os.environ)}}
text = json.dumps({{**asked, "imports": [], "group": True}}).encode()
socket.send_fds(hub, [struct.pack("!I", len(text))], [0, 1, 2])
hub.sendall(text)
hub.recv(4, socket.MSG_WAITALL)  # its process id
answer = hub.recv(4, socket.MSG_WAITALL)
code = struct.unpack("!i", answer)[0] if answer else 1
if code < 0:
    if code != -signal.SIGKILL:
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
os._exit(code)
"""


@cache
def python() -> str:
    """The program that starts warm processes, for as long as this process lives.

    A program ``snakemake`` lies beside it.
    """
    folder = Path(tempfile.mkdtemp(prefix="stamp-warm-"))
    program = folder / "python"
    program.write_text(CLIENT.format(python=sys.executable, address=str(folder / "socket")))
    command = folder / "snakemake"
    command.write_text(f'#!/bin/sh\nexec {program} -m snakemake "$@"\n')
    for each in (program, command):
        each.chmod(0o755)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "POLARS_ALLOW_FORKING_THREAD": "1"}
    server = subprocess.Popen(
        [sys.executable, str(PARENT), str(folder), str(program), *sorted(PACKAGES)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    )
    assert server.stdin is not None and server.stdout is not None
    assert server.stdout.readline() == b"ready\n"
    atexit.register(end, server)
    return str(program)


def end(server: subprocess.Popen[bytes]) -> None:
    """The parent ends when nobody can ask it any more."""
    assert server.stdin is not None
    server.stdin.close()
    server.wait()
