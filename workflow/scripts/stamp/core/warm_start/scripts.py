"""Snakemake's Python scripts, run in processes that are forked from a warm parent.

Only for jobs of a run on this machine that use no GPU: CUDA does not survive a fork, a job of a
cluster is on another machine, and an environment of conda or a container has packages of its own.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import shlex
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from functools import partialmethod
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from stamp.core.warm_start import parent

SCRIPTS = Path(__file__).resolve().parents[3]
# What is imported for all scripts, and for some. A package too many costs its import once in a run,
# one too few costs it in every job that needs it.
ALL = (
    *("snakemake.script", "snakemake.logging", "numpy", "numpy.typing", "polars"),
    *("safetensors.numpy", "tqdm", "difflib", "statistics"),
)
NETWORK = ("torch", "safetensors.torch", "stamp.models.torchvision_ops")
TRAINING = (*NETWORK, "torch._dynamo")
DRAWING = (
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_pdf",
    "matplotlib.figure",
    "matplotlib.style",
    "fontTools.subset",
    "seaborn",
)
PAGE = ("altair", "jinja2", "yaml")
MORE = {
    **dict.fromkeys(("train", "finetune"), TRAINING),
    **dict.fromkeys(("logits", "predictions", "backbone_embeddings"), NETWORK),
    **dict.fromkeys(("extra_outputs", "target_embeddings", "stress_tests"), NETWORK),
    "projection_norm": NETWORK,
    **dict.fromkeys(("figure", "analysis_figure", "training_figure", "pair_distances"), DRAWING),
    **dict.fromkeys(("analysis", "correlate", "agreement_on_the_line"), ("scipy.special",)),
    **dict.fromkeys(("calibrate", "probe"), ("scipy.optimize",)),
    "metrics": (
        "scipy.cluster.hierarchy",
        "scipy.optimize",
        "sklearn.linear_model",
        "sklearn.pipeline",
    ),
    **dict.fromkeys(("page", "index_page", "chart_library"), PAGE),
    "thumbnails": ("PIL.Image",),
}
SINGLE_THREADED = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "POLARS_ALLOW_FORKING_THREAD": "1",  # it warns of its own threads, idle in the parent
}


def imports(script: str) -> tuple[str, ...]:
    """What the parent shall have imported before it forks a script's process."""
    return (*ALL, *MORE.get(script.removesuffix(".py"), ()))


class WarmParent:
    """The parent of a run's jobs, started when the first job asks for it."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="stamp-"))
        self.lock = threading.Lock()
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process, once; it ends with this one, whose end of a pipe it reads."""
        with self.lock:
            if self.process is not None:
                return
            kept = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
            self.process = subprocess.Popen(
                [sys.executable, parent.__file__, str(self.folder), sys.executable],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**kept, **SINGLE_THREADED},
            )
            assert self.process.stdout is not None
            self.process.stdout.readline()
            atexit.register(self.end)

    def end(self) -> None:
        """End the process with this one; it would also end by itself."""
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()
            self.process.wait()

    def ask(self, script: str, environment: Mapping[str, str]) -> socket.socket:
        """A line to the parent, which forks a process for a script; OSError where there is none."""
        self.start()
        request = {
            "arguments": [script],
            "folder": os.getcwd(),
            "environment": dict(environment),
            "imports": imports(Path(script).name.partition(".")[2]),
        }
        text = json.dumps(request).encode()
        line = socket.socket(socket.AF_UNIX)
        line.connect(str(self.folder / parent.SOCKET))
        socket.send_fds(line, [struct.pack("!I", len(text))], [0, 1, 2])
        line.sendall(text)
        return line


def job_environment(threads: int, resources: Mapping[str, Any]) -> dict[str, str]:
    """What Snakemake gives a script: this environment, its threads, its temporary folder."""
    environment = dict(os.environ)
    libraries = ("OMP", "GOTO", "OPENBLAS", "MKL", "NUMEXPR")
    environment |= dict.fromkeys([f"{one}_NUM_THREADS" for one in libraries], str(threads))
    environment["VECLIB_MAXIMUM_THREADS"] = str(threads)
    if folder := resources.get("tmpdir"):
        names = ("TMPDIR", "TMP", "TEMPDIR", "TEMP")
        environment |= dict.fromkeys(names, str(folder))
    return environment


def received(line: socket.socket) -> int | None:
    """The next number from the parent, None where it has ended."""
    with contextlib.suppress(ConnectionError):
        if len(number := line.recv(4, socket.MSG_WAITALL)) == 4:
            return int(struct.unpack("!i", number)[0])
    return None


def wait(line: socket.socket, record: Any) -> int:
    """How the process at the other end of a line ended; Snakemake's record of it is filled."""
    from psutil import NoSuchProcess
    from snakemake.benchmark import benchmarked

    began, pid = time.time(), received(line)
    with contextlib.ExitStack() as stack:
        if record is not None and pid is not None:
            with contextlib.suppress(NoSuchProcess):
                stack.enter_context(benchmarked(pid, record))
        code = received(line)
    if record is not None and record.running_time is None:  # over before it could be looked at
        record.running_time, record.process_gone = time.time() - began, True
    return 1 if code is None else code


def run_warm(self: Any, fname: str, edit: bool = False, *, warm: WarmParent, cold: Any) -> None:
    """Snakemake's ``PythonScript.execute_script``, for our own scripts by the warm parent."""
    plain = self.container_img is None and self.conda_env is None and self.env_modules is None
    if not (plain and self.is_local and Path(self.local_path).resolve().parent == SCRIPTS):
        return cold(self, fname, edit)
    try:
        line = warm.ask(fname, job_environment(self.threads, self.resources))
    except OSError:  # it was ended by somebody
        return cold(self, fname, edit)
    with line:
        code = wait(line, self.bench_record)
    if code:
        report(code, f"set -euo pipefail;  {sys.executable} {shlex.quote(fname)}")


def report(code: int, command: str) -> None:
    """Let Snakemake raise its error of a command that failed, as it does of one it has started."""
    from snakemake.shell import shell

    ended = SimpleNamespace(stdout=(), wait=lambda: code)
    list(shell.iter_stdout(ended, command, None))


def allowed(workflow: Any, device: str) -> bool:
    """Whether the jobs of a run may be forked: started here, on the CPU, with these packages."""
    return (
        device == "cpu"
        and hasattr(os, "pidfd_open")
        and workflow.is_main_process
        and workflow.executor_plugin.name == "local"
        and not workflow.deployment_settings.deployment_method
    )


def use(workflow: Any, device: str) -> None:
    """From now on Snakemake lets a warm parent fork the processes of our scripts, if it may."""
    if allowed(workflow, device):
        from snakemake.script import PythonScript

        own, cold = WarmParent(), PythonScript.execute_script
        PythonScript.execute_script = partialmethod(run_warm, warm=own, cold=cold)
