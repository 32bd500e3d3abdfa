"""Which runs may fork their jobs, and what a forked process has of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import warm
from project import ROOT

from stamp.core.warm_start import scripts
from stamp.core.warm_start.scripts import allowed, imports, job_environment

THREADS = """
import numpy, threadpoolctl
numpy.ones((2, 2)) @ numpy.ones((2, 2))
print({pool["num_threads"] for pool in threadpoolctl.threadpool_info()})
"""


def run_of(**changed: Any) -> Any:
    """A workflow as Snakemake runs it on one machine, but for some changes."""
    usual = {"executor": "local", "main": True, "deployed": set(), **changed}
    return SimpleNamespace(
        is_main_process=usual["main"],
        executor_plugin=SimpleNamespace(name=usual["executor"]),
        deployment_settings=SimpleNamespace(deployment_method=usual["deployed"]),
    )


def test_a_run_on_this_machines_cpu_may_fork_its_jobs() -> None:
    assert allowed(run_of(), "cpu")


@pytest.mark.parametrize(
    ("changed", "device"),
    [
        ({}, "cuda"),
        ({"executor": "slurm"}, "cpu"),
        ({"executor": "slurm-jobstep"}, "cpu"),
        ({"main": False}, "cpu"),  # the process of a cluster's job
        ({"deployed": {"conda"}}, "cpu"),
    ],
)
def test_no_other_run_may(changed: dict[str, Any], device: str) -> None:
    assert not allowed(run_of(**changed), device)


def test_every_script_that_asks_for_packages_exists() -> None:
    assert all((scripts.SCRIPTS / f"{name}.py").is_file() for name in scripts.MORE)
    assert "torch" in imports("logits.py") and "torch" not in imports("precomputed_logits.py")


@pytest.mark.parametrize("number", ["1", "3"])
def test_a_forked_process_has_the_threads_of_its_environment(number: str) -> None:
    done = subprocess.run(
        [warm.python(), "-"],
        env={**os.environ, **job_environment(int(number), {})},
        input=THREADS,
        text=True,
        capture_output=True,
    )
    assert done.stdout.strip() == f"{{{number}}}", done.stderr


def test_an_error_has_the_traceback_of_its_script_alone(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("def f():\n    1 / 0\n\nf()\n")
    done = subprocess.run(
        [warm.python(), "script.py"], cwd=tmp_path, text=True, capture_output=True
    )
    assert done.returncode == 1
    files = [line.split('"')[1] for line in done.stderr.splitlines() if '  File "' in line]
    assert files == ["script.py", "script.py"]


@pytest.mark.parametrize(
    "program",
    [
        "print('done')",
        "import sys; sys.exit()",
        "import sys; print('said'); sys.exit(3)",
        "import sys; sys.exit(-1)",
        "import sys; sys.exit('a mistake')",
        "import atexit; atexit.register(print, 'at the end'); 1 / 0",
        "import time, threading; threading.Timer(0.2, print, ['a thread']).start()",
        "from concurrent.futures import ThreadPoolExecutor as T; T().submit(print, 'a pool')",
        "import os, signal; os.kill(os.getpid(), signal.SIGINT)",
        "import sys; sys.stdout.close()",
    ],
)
def test_a_forked_program_ends_as_one_that_was_started(tmp_path: Path, program: str) -> None:
    (tmp_path / "script.py").write_text(program)
    ended = [
        subprocess.run([python, "script.py"], cwd=tmp_path, text=True, capture_output=True)
        for python in (warm.python(), sys.executable)
    ]
    forked, started = ((one.returncode, one.stdout, one.stderr) for one in ended)
    assert forked[:2] == started[:2]
    assert forked[2].splitlines()[-1:] == started[2].splitlines()[-1:]


def test_memory_is_the_same_in_large_pages_and_a_fork_has_it() -> None:
    program = """
import hashlib, os
from stamp.core.warm_start.parent import use_large_pages
held = [os.urandom(1 << 16) for _ in range(400)]
def digest():
    return hashlib.sha256(b"".join(held)).hexdigest()
before = digest()
use_large_pages()
assert digest() == before
if os.fork() == 0:
    held[200] = b""
    os._exit(digest() == before)
assert os.wait()[1] == 0 and digest() == before
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "workflow" / "scripts")}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)


def test_a_job_has_its_threads_and_temporary_folder_as_snakemake_gives_them() -> None:
    found = job_environment(4, {"tmpdir": "/somewhere"})
    assert found["OMP_NUM_THREADS"] == found["VECLIB_MAXIMUM_THREADS"] == "4"
    assert found["TMPDIR"] == found["TEMP"] == "/somewhere"
