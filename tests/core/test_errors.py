"""How a job ends: a user's mistake is a line in its log, which lasts until the job goes well."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from project import ROOT

from stamp.core.errors import UserError, naming

JOB = """
from types import SimpleNamespace
from stamp.core.errors import UserError, run

def main(job):
    {body}

run(main, SimpleNamespace(log=["logs/job.log"]))
"""


def ended(folder: Path, body: str) -> tuple[int, str, str]:
    """The exit code, the standard error and the log of a job."""
    done = subprocess.run(
        [sys.executable, "-c", JOB.format(body=body)],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT / "workflow" / "scripts")},
        text=True,
        capture_output=True,
    )
    log = folder / "logs" / "job.log"
    return done.returncode, done.stderr, log.read_text() if log.exists() else ""


def test_a_mistake_is_one_line_and_is_forgotten_once_the_job_went_well(tmp_path: Path) -> None:
    line = "stamp: model 'm': it broke\n"
    mistake = "raise UserError(\"model 'm': it broke\")"
    assert ended(tmp_path, mistake) == (1, line, line)
    assert ended(tmp_path, "pass") == (0, "", "")


def test_any_other_error_is_its_traceback(tmp_path: Path) -> None:
    code, said, log = ended(tmp_path, "1 / 0")
    assert code == 1
    assert log.startswith("Traceback ") and log.endswith("ZeroDivisionError: division by zero\n")
    assert "ZeroDivisionError" in said


def test_a_mistake_is_named_by_the_model_that_it_is_of_and_other_errors_are_left_alone() -> None:
    with pytest.raises(UserError, match=r"^model 'm': no such file$"), naming("model 'm'"):
        raise UserError("no such file")
    with pytest.raises(ZeroDivisionError), naming("model 'm'"):
        _ = 1 / 0
