"""The logs of the last run's jobs: the rule's own and SLURM's, failed jobs first."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

from stamp.cli.runs.run_log import STATES, Run, RunJob, ask_slurm, latest, ordered
from stamp.core.errors import UserError, suggest

HELP = "find the logs of the last run's jobs, failed ones first"
EXAMPLE = "logs phantom --failed"
TAIL = 15


def arguments(parser: argparse.ArgumentParser) -> None:
    """A study, and whether only failed jobs are wanted."""
    parser.add_argument("study", nargs="?", help="only the jobs of this study")
    parser.add_argument(
        "--failed", action="store_true", help="only failed jobs, with the end of their logs"
    )
    parser.add_argument("--json", action="store_true", help="for a program")
    parser.add_argument("--folder", type=Path, help="where Snakemake was started (default: here)")


def run(arguments: argparse.Namespace) -> None:
    """Print the jobs of the newest run that had any."""
    folder = arguments.folder or Path()
    found = latest(folder)
    if found is None:
        raise UserError(
            f"{folder / '.snakemake' / 'log'}: no run with jobs in it (one with --quiet "
            "lists none: its logs are in results/<study>/logs)"
        )
    ask_slurm(found)
    if arguments.json:
        print(json.dumps(record(found, arguments.study, arguments.failed), indent=2))
    else:
        print(listing(found, folder, arguments.study, arguments.failed))


def chosen(found: Run, study: str | None) -> list[RunJob]:
    """The jobs of a run, or of one study of it."""
    jobs = list(found.jobs.values())
    if study is None:
        return jobs
    studies = {job.wildcards["study"] for job in jobs if "study" in job.wildcards}
    if study not in studies:
        raise UserError(f"no job of study '{study}' in the last run: {suggest(study, studies)}")
    return [job for job in jobs if job.wildcards.get("study") == study]


def record(found: Run, study: str | None, failed: bool) -> dict[str, Any]:
    """A run and its jobs for a program."""
    jobs = ordered(chosen(found, study))
    listed = [job for job in jobs if not failed or job.state == "failed"]
    return {
        "run": str(found.file),
        "began": found.began,
        "jobs": [
            {
                "rule": job.rule,
                "wildcards": job.wildcards,
                "state": job.state,
                "attempts": job.attempts,
                "log": None if job.log is None else str(job.log),
                "slurm": [
                    {"id": one.id, "status": one.status, "log": str(one.log)}
                    for one in job.submissions
                ],
            }
            for job in listed
        ],
    }


def listing(found: Run, folder: Path, study: str | None, failed: bool) -> str:
    """One line per job, its logs beneath."""
    jobs = chosen(found, study)
    counted = Counter(job.state for job in jobs)
    counts = ", ".join(f"{counted[state]} {state}" for state in STATES if counted[state])
    lines = [f"run of {found.began}: {found.file}", counts, ""]
    for job in ordered(jobs):
        if not failed or job.state == "failed":
            lines += described(job, folder, tail=failed)
    return "\n".join(lines).rstrip()


def described(job: RunJob, folder: Path, tail: bool) -> list[str]:
    """A job's state and name, then its logs that hold something."""
    again = f"  ({job.attempts} attempts)" if job.attempts > 1 else ""
    lines = [f"{job.state:<11}{job.name}{again}"]
    written = [folder / job.log] if job.log and size(folder / job.log) else []
    lines += [f"    {'log':<22} {path}" for path in written]
    for one in reversed(job.submissions):
        gone = "" if one.log.exists() else " (not there)"
        lines.append(f"    {f'slurm {one.id} {one.status}':<22} {shown(one.log)}{gone}")
    if tail:
        written += [one.log for one in reversed(job.submissions) if size(one.log)]
        ending = written[0].read_text(errors="replace").splitlines()[-TAIL:] if written else []
        lines += ["", *(f"    | {line}" for line in ending), ""]
    return lines


def shown(path: Path) -> Path:
    """A path as a reader can open it from here."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def size(path: Path) -> int:
    """The bytes of a file, none where it is not."""
    return path.stat().st_size if path.is_file() else 0
