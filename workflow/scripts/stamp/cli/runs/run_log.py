"""What became of each job of a Snakemake run, read from the run's own log.

Snakemake keeps one log per run in ``.snakemake/log``. It names every job with its rule, wildcards
and log file, says under which id and with which log it was submitted to SLURM, and how it ended.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from stamp.cli.runs.job_text import (
    ASKING,
    Identity,
    JobText,
    assignments,
    fields_below,
    identity,
    job_at,
)

FAILED = re.compile(r" *Error in rule \w+[:,]")
FINISHED = re.compile(r" *Finished jobid: (?P<id>\d+) ")
SUBMITTED = re.compile(
    r"Job (?P<id>\S+) has been submitted with SLURM jobid (?P<slurm>\d+) \(log: (?P<log>.*)\)\.$"
)
GROUP = re.compile(r"(?:\[.*\] )?Group job (?P<name>\S+) \(jobs in")
TIME = re.compile(r" *\[\w{3} (?P<time>\w{3} +\d+ [\d:]{8} \d{4})\]")
STATUS = re.compile(r"SLURM status is: '(?P<status>\w+)'")
TARGETS = re.compile(r"--target-jobs (?P<targets>.*?) --")
# What a reader looks for first.
STATES = ("failed", "running", "waiting", "submitted", "unfinished", "finished")


@dataclass(slots=True)
class Submission:
    """One time that a job was handed to SLURM."""

    id: str
    log: Path
    status: str = ""


@dataclass(slots=True)
class RunJob:
    """A job, how far it came, and where it wrote."""

    rule: str
    wildcards: dict[str, str] = field(default_factory=dict)
    log: Path | None = None
    state: str = "running"
    attempts: int = 0
    moment: int = 0
    submissions: list[Submission] = field(default_factory=list)

    @property
    def name(self) -> str:
        return " ".join([self.rule, *self.wildcards.values()])

    @property
    def identity(self) -> Identity:
        return identity(self.rule, self.wildcards)


@dataclass(slots=True)
class Run:
    """A run's jobs by their number."""

    file: Path
    jobs: dict[str, RunJob] = field(default_factory=dict)
    ended: bool = False
    began: str = ""


def latest(folder: Path) -> Run | None:
    """The newest run in a working folder that had anything to do."""
    for path in sorted((folder / ".snakemake" / "log").glob("*.snakemake.log"), reverse=True):
        run = read(path)
        if run.jobs:
            return run
    return None


def read(path: Path) -> Run:
    """The jobs of one run's log."""
    reader = _LogReader(path, path.read_text(errors="replace").splitlines())
    for number in range(len(reader.lines)):
        reader.line(number)
    return reader.run


class _LogReader:
    """Goes through a log line by line; ``group`` is the one whose jobs are being listed."""

    def __init__(self, path: Path, lines: list[str]):
        self.lines = lines
        ended = any(line.startswith("Complete log(s):") for line in lines)
        clocks = (found["time"] for line in lines if (found := TIME.match(line)))
        self.run = Run(path, ended=ended, began=next(clocks, ""))
        self.groups: dict[str, list[str]] = {}
        self.group: str | None = None

    def line(self, number: int) -> None:
        line = self.lines[number]
        if found := GROUP.match(line):
            self.group = found["name"]
            self.groups.setdefault(self.group, [])
        elif job := job_at(self.lines, number):
            self.started(job, number)
        elif FAILED.match(line):
            fields = fields_below(self.lines, number)
            status = STATUS.search(fields.get("message", ""))
            self.ended(
                fields.get("jobid", ""), "failed", status["status"] if status else "failed", number
            )
        elif found := FINISHED.match(line):
            self.ended(found["id"], "finished", "COMPLETED", number)
        elif found := SUBMITTED.match(line):
            self.submitted(found["id"], Submission(found["slurm"], Path(found["log"])))

    def started(self, text: JobText, number: int) -> None:
        jobid = text.fields.get("jobid")
        # the jobs that a failed group lists look the same, but were not started again
        if text.rule in ASKING or jobid is None or "reason" not in text.fields:
            return
        if text.indented and self.group is not None and jobid not in self.groups[self.group]:
            self.groups[self.group].append(jobid)
        job = self.run.jobs.setdefault(jobid, RunJob(text.rule))
        job.wildcards = text.wildcards
        job.log = next(map(Path, text.files("log")), None)
        job.state, job.attempts, job.moment = "running", job.attempts + 1, number

    def submitted(self, jobid: str, made: Submission) -> None:
        for one in members(jobid, made.log, self.run, self.groups):
            job = self.run.jobs[one]
            job.submissions.append(made)
            job.state = "submitted"

    def ended(self, jobid: str, state: str, status: str, number: int) -> None:
        job = self.run.jobs.get(jobid)
        if job is None:
            return
        job.state, job.moment = state, number
        if job.submissions:
            job.submissions[-1].status = status


def members(number: str, log: Path, run: Run, groups: dict[str, list[str]]) -> Iterable[str]:
    """The numbers of the jobs that a submission holds: itself, or those of its group.

    A group that has not been started is known by its name alone, which it may share.
    """
    if number in run.jobs:
        return [number]
    wanted = targets(log)
    if wanted:
        return [one for one, job in run.jobs.items() if job.identity in wanted]
    folder = log.parent.name
    named = [name for name in groups if folder.startswith(f"group_{name}_")]
    return groups[max(named, key=len)] if named else []


def targets(log: Path) -> set[Identity]:
    """The jobs that a SLURM log says it was started for; none where it has not been started."""
    try:
        with log.open(errors="replace") as file:
            head = file.read(65536)
    except OSError:
        return set()
    found = TARGETS.search(head)
    if not found:
        return set()
    named = [one.partition(":") for one in found["targets"].split()]
    return {identity(rule, assignments(values, ",")) for rule, _, values in named}


def ask_slurm(run: Run) -> None:
    """Tell jobs that wait in the queue from those that run; a run that has ended has neither."""
    open_jobs = [job for job in run.jobs.values() if job.state not in ("failed", "finished")]
    if run.ended:
        for job in open_jobs:
            job.state = "unfinished"
        return
    handed = [job for job in open_jobs if job.submissions]
    queue = queued({job.submissions[-1].id for job in handed}) if handed else {}
    for job in handed:
        status = queue.get(job.submissions[-1].id, "")
        job.submissions[-1].status = status
        job.state = {"PENDING": "waiting", "RUNNING": "running"}.get(status, "submitted")


def queued(ids: Iterable[str]) -> dict[str, str]:
    """The state of jobs in the queue, as far as SLURM answers."""
    command = ["squeue", "--noheader", "--states=all", "--format=%i %T", f"--jobs={','.join(ids)}"]
    try:
        done = subprocess.run(command, text=True, capture_output=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return {line.split()[0]: line.split()[1] for line in done.stdout.splitlines() if " " in line}


def ordered(jobs: Iterable[RunJob]) -> list[RunJob]:
    """Failed jobs first, finished ones last; the newest first among equals."""
    return sorted(jobs, key=lambda job: (STATES.index(job.state), -job.moment))
