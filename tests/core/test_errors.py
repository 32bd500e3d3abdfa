"""How a job ends: a user's mistake is a line in its log, which lasts until the job goes well."""

from __future__ import annotations

import os
import re
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

run(main, SimpleNamespace(log=["logs/job.log"], output=["results/m.json"]))
"""


def test_a_line_is_one_write_so_that_jobs_side_by_side_do_not_mix_theirs(tmp_path: Path) -> None:
    """A pipe of packets gives back what one write gave it, no more and no less."""
    read, write = os.pipe2(os.O_DIRECT)
    environment = {"PYTHONPATH": str(ROOT / "workflow" / "scripts"), "PYTHONUNBUFFERED": "1"}
    code = JOB.format(body="raise UserError('it broke')")
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, stderr=write)
    os.close(write)
    with open(read, "rb", buffering=0) as pipe:
        assert pipe.read(100) == b"stamp: it broke\n"


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
    code, said, log = ended(tmp_path, "pass")
    assert (code, said) == (0, "")
    assert re.fullmatch(
        r"done; [\d.]+ s, [\d.]+ s of CPU after [\d.]+ s of start-up, [\d,]+ MB\n", log
    )


def test_the_log_of_a_job_that_went_well_is_one_line_of_what_it_did(tmp_path: Path) -> None:
    body = """
    from stamp.core.progress import bar, note
    with bar(None, "m source", 1890) as shown:
        shown.update(1890)
    list(bar(range(3), "m", 3, "epoch"))
    note("loss 0.25")
    """
    code, said, log = ended(tmp_path, body.strip())
    assert (code, said, log.count("\n")) == (0, "", 1)
    assert re.search(
        r"; m source: 1,890 images \([\d,]+/s\), [\d.]+ s, [\d.]+ s of CPU; "
        r"m: 3 epochs; loss 0.25; ",
        log,
    ), log


def test_a_long_job_says_in_its_log_how_far_it_is_and_nothing_on_the_screen(tmp_path: Path) -> None:
    body = """
    from stamp.core import progress
    progress.PATIENCE = progress.EVERY = 0.0
    for number in progress.bar(range(5), "m", 5, "epoch"):
        if number == 3:
            lines = open("logs/job.log").read().splitlines()
            raise UserError(lines[-1])
    """
    code, said, _ = ended(tmp_path, body.strip())
    assert code == 1 and said.startswith("stamp: m: ") and "3/5" in said, said


def test_any_other_error_is_its_traceback(tmp_path: Path) -> None:
    code, said, log = ended(tmp_path, "1 / 0")
    assert code == 1
    assert log.startswith("Traceback ") and log.endswith("ZeroDivisionError: division by zero\n")
    assert "ZeroDivisionError" in said


@pytest.mark.parametrize("code", ["0", "", "3"])
def test_code_that_ends_the_process_fails_the_job(tmp_path: Path, code: str) -> None:
    ended_with, said, log = ended(tmp_path, f"import sys; sys.exit({code})")
    assert ended_with == 1
    assert (
        said
        == log
        == f"stamp: results/m.json: code that the job ran called sys.exit({code or None})\n"
    )


def test_an_interrupted_job_says_nothing(tmp_path: Path) -> None:
    assert ended(tmp_path, "raise KeyboardInterrupt") == (130, "", "")


FULL_DISKS = [
    "raise OSError(28, 'No space left on device')",
    "raise OSError(122, 'Disk quota exceeded')",
    "raise ValueError('parquet: underlying IO error: No space left on device (os error 28)')",
    "raise RuntimeError('torch: unexpected pos') from OSError(28, 'No space left on device')",
]


@pytest.mark.parametrize("body", FULL_DISKS)
def test_a_full_disk_is_one_line_in_any_librarys_words(tmp_path: Path, body: str) -> None:
    code, said, log = ended(tmp_path, body)
    assert code == 1
    assert (
        said == log == "stamp: results/m.json: no space left on the disk; make room and run again\n"
    )


def test_a_log_that_can_not_be_written_hides_nothing(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file where the folder would be")
    assert ended(tmp_path, "raise UserError('it broke')") == (1, "stamp: it broke\n", "")


def test_a_mistake_is_named_by_the_model_that_it_is_of_and_other_errors_are_left_alone() -> None:
    with pytest.raises(UserError, match=r"^model 'm': no such file$"), naming("model 'm'"):
        raise UserError("no such file")
    with pytest.raises(ZeroDivisionError), naming("model 'm'"):
        _ = 1 / 0
