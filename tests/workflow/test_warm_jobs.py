"""Jobs that are forked from a warm parent: which they are, and that nobody can tell otherwise."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from project import DIGITS, Project

VIEW = "results/small_digits/views/source.parquet"
# What a job's process finds when its script begins, and what a later one finds in the library.
WITNESS = """
import json as _json, os as _os, sys as _sys
from stamp.core import errors as _errors
_of = open(f"/proc/{_os.getppid()}/cmdline").read().split(chr(0))
_found = {"imported": "polars" in _sys.modules, "forked": any("parent.py" in one for one in _of)}
_found |= {"own": _os.getpid(), "parent": _os.getppid(), "edit": getattr(_errors, "EDIT", None)}
_found |= {"threads": _os.environ["OMP_NUM_THREADS"], "argv": _sys.argv[1:]}
open("witness.json", "w").write(_json.dumps(_found))
"""
EDITING = """
with open("workflow/scripts/stamp/core/errors.py", "a") as _file:
    _file.write("EDIT = 'seen'\\n")
"""
WAITING = """
import time as _time
_time.sleep(600)
"""


def before(project: Project, script: str, code: str) -> None:
    """Let a script begin with some code."""
    file = project.folder / "workflow" / "scripts" / script
    file.write_text(code + file.read_text())


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose job ``source_view`` leaves a witness; another edits the library before."""
    made = Project.create(tmp_path_factory.mktemp("warm") / "project", {"small_digits": DIGITS})
    before(made, "source_view.py", WITNESS)
    before(made, "make_dataset.py", EDITING)
    return made


def command(*arguments: str) -> list[str]:
    """Snakemake as a user starts it: not from the warm parent of the tests."""
    return [sys.executable, "-m", "snakemake", "--cores", "2", *arguments]


def run(project: Project, *arguments: str) -> str:
    """What a run says."""
    done = subprocess.run(
        command(*arguments),
        cwd=project.folder,
        env=project.environment(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=600,
    )
    return done.stdout


def witness(project: Project, *arguments: str) -> dict[str, Any]:
    """What the job of the source view found in its process."""
    (project.folder / "witness.json").unlink(missing_ok=True)
    said = run(project, VIEW, "--forcerun", "source_view", *arguments)
    file = project.folder / "witness.json"
    assert file.exists(), said
    return json.loads(file.read_text())


def gone(pid: int) -> bool:
    """Whether a process has ended; waits a minute for it."""
    deadline = time.monotonic() + 60
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    return not Path(f"/proc/{pid}").exists()


def test_a_job_on_the_cpu_is_forked_and_has_the_library_as_it_is_by_then(project: Project) -> None:
    found = witness(project)
    assert found["imported"] and found["forked"]
    assert found["edit"] == "seen"  # by the job before, while the parent was running
    assert (found["threads"], found["argv"]) == ("1", [])
    assert gone(found["parent"])


@pytest.mark.parametrize("setting", ["warm_start=False", "device=cuda"])
def test_no_job_is_forked_where_it_is_switched_off_or_a_gpu_is_used(
    project: Project, setting: str
) -> None:
    found = witness(project, "--config", setting)
    assert not found["imported"] and not found["forked"]


@pytest.mark.parametrize(
    "mistake", ["raise ValueError('a bug')", "import os; os.kill(os.getpid(), 9)"]
)
def test_a_job_that_fails_says_the_same_and_leaves_the_same_log(
    project: Project, tmp_path: Path, mistake: str
) -> None:
    copy = project.copy(tmp_path / "project")
    script = copy.folder / "workflow" / "scripts" / "source_view.py"
    script.write_text(
        script.read_text().replace("def main(smk):", f"def main(smk):\n    {mistake}")
    )
    log = copy.folder / "results" / "small_digits" / "logs" / "source_view.log"
    said, logs = [], []
    for setting in ("warm_start=True", "warm_start=False"):
        log.unlink(missing_ok=True)
        text = run(copy, VIEW, "--forcerun", "source_view", "--config", setting)
        said.append(plain(text))
        logs.append(plain(log.read_text()))
    assert any("Command '" in line for line in said[0])
    assert said[0] == said[1]
    assert logs[0] == logs[1]


def plain(text: str) -> list[str]:
    """The lines about an error, without the names of temporary files."""
    kept = ("Traceback", 'File "', "Error", "Command '")
    lines = re.sub(r"tmp\w{8}\.", "tmp.", text).splitlines()
    return sorted(line.strip() for line in lines if any(part in line for part in kept))


def test_a_killed_run_leaves_no_process_behind(project: Project, tmp_path: Path) -> None:
    copy = project.copy(tmp_path / "project")
    (copy.folder / "witness.json").unlink(missing_ok=True)
    script = copy.folder / "workflow" / "scripts" / "source_view.py"
    script.write_text(script.read_text().replace(WITNESS, WITNESS + WAITING))
    running = subprocess.Popen(
        command(VIEW, "--forcerun", "source_view"),
        cwd=copy.folder,
        env=copy.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    file, deadline = copy.folder / "witness.json", time.monotonic() + 300
    while not (file.exists() and file.read_text().endswith("}")) and time.monotonic() < deadline:
        time.sleep(0.05)
    found = json.loads(file.read_text())
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    assert found["forked"]
    assert gone(found["own"]) and gone(found["parent"])
