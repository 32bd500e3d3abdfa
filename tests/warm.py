"""Python processes that start warm: forked from one that has imported the large packages already.

    subprocess.run([warm.python(), "-m", "snakemake", "--cores", "2"])

Most of a miniature study's time is the start of its jobs: each is a process that imports torch,
polars or matplotlib for a second and works for a tenth of it. ``python()`` is a program that takes
``script.py``, ``-m module`` or ``-`` as Python does. It hands them with its folder, environment and
standard streams to a server, and ends as the process ends that the server forks for it. Our own
library is not imported ahead: a process takes the one that its path names. Kill the program, and
the process dies with it.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib.util
import json
import os
import runpy
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

PACKAGES = (
    *("jsonschema", "matplotlib.pyplot", "numpy", "pandas", "PIL.Image", "polars", "requests"),
    *("safetensors.numpy", "safetensors.torch", "scipy.optimize", "scipy.special", "scipy.stats"),
    *("sklearn.linear_model", "sklearn.metrics", "snakemake.cli", "snakemake.script"),
    *("snakemake_executor_plugin_slurm", "torch", "torchxrayvision", "yaml"),
)

CLIENT = """#!{python} -IS
import json, os, signal, socket, struct, sys
hub = socket.socket(socket.AF_UNIX)
hub.connect({address!r})
asked = {{"arguments": sys.argv[1:], "folder": os.getcwd(), "environment": dict(os.environ)}}
text = json.dumps(asked).encode()
socket.send_fds(hub, [struct.pack("!I", len(text))], [0, 1, 2])
hub.sendall(text)
answer = hub.recv(4)
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
        [sys.executable, __file__, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    )
    assert server.stdin is not None and server.stdout is not None
    assert server.stdout.readline() == b"ready\n"
    atexit.register(end, server, folder)
    return str(program)


def end(server: subprocess.Popen[bytes], folder: Path) -> None:
    """The server ends when nobody can ask it any more."""
    assert server.stdin is not None
    server.stdin.close()
    server.wait()
    shutil.rmtree(folder)


def load() -> list[Any]:
    """Import the packages; what comes back must live as long as they are used."""
    sys.path[0] = str(Path(__file__).resolve().parents[1] / "workflow" / "scripts")
    kept = [importlib.import_module("stamp.models.torchvision_ops")]
    for name in [name for name in sys.modules if name.partition(".")[0] == "stamp"]:
        del sys.modules[name]
    del sys.path[0]
    kept += [importlib.import_module(name) for name in PACKAGES if importlib.util.find_spec(name)]
    return kept


def serve(folder: Path) -> dict[str, Any] | None:
    """Fork for each request; the request in a forked process, None once nobody can ask any more."""
    with socket.socket(socket.AF_UNIX) as hub:
        hub.bind(str(folder / "socket"))
        hub.listen(64)
        print("ready", flush=True)
        while True:
            ready, _, _ = select.select([hub, 0], [], [])
            if 0 in ready:  # the test run, which holds the other end, has ended
                return None
            line, _ = hub.accept()
            if os.fork() == 0:
                hub.close()
                return attend(line)
            line.close()
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass


def attend(line: socket.socket) -> dict[str, Any]:
    """Read a request and fork for it; beside that process wait for its end, or for the client's."""
    head, streams, _, _ = socket.recv_fds(line, 4, 3)
    with line.makefile("rb") as text:
        request = json.loads(text.read(struct.unpack("!I", head)[0]))
    pid = os.fork()
    if pid == 0:
        line.close()
        os.setpgid(0, 0)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        return request
    for number in (0, 1, 2, *streams):
        os.close(number)
    ended = os.pidfd_open(pid)
    ready, _, _ = select.select([line, ended], [], [])
    if ended not in ready:
        os.killpg(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    if ended in ready:
        line.sendall(struct.pack("!i", os.waitstatus_to_exitcode(status)))
    os._exit(0)


def customise(paths: list[str]) -> None:
    """Run the first ``sitecustomize`` of a path, as Python does when it starts."""
    for folder in paths:
        if (file := Path(folder) / "sitecustomize.py").is_file():
            exec(compile(file.read_text(), file, "exec"), {"__name__": "sitecustomize"})
            return


def run(program: str, request: dict[str, Any]) -> None:
    """Become the process that was asked for."""
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.executable, first = program, request["arguments"][0]
    if first == "-m":
        sys.argv = request["arguments"][1:]
        sys.path[:0] = [request["folder"], *paths]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    elif first == "-":
        sys.path[:0] = [request["folder"], *paths]
        exec(compile(sys.stdin.read(), "<stdin>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = request["arguments"]
        sys.path[:0] = [str(Path(first).resolve().parent), *paths]
        customise(paths)
        runpy.run_path(first, run_name="__main__")


if __name__ == "__main__":
    here = Path(sys.argv[1])
    kept = load()
    gc.collect()
    gc.freeze()
    asked = serve(here)
    if asked is not None:
        run(str(here / "python"), asked)
