"""Each model of a study: done, missing, stale or failed, and why."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from stamp.cli.runs import run_log
from stamp.cli.runs.dry_run import DueJob, by_stage, counted, dry_run
from stamp.cli.runs.job_text import Identity
from stamp.cli.terminal.tables import table
from stamp.config.plan import read_plan
from stamp.config.study import Study
from stamp.core.progress import DONE
from stamp.models.hub import unpinned

HELP = "list which models are done, missing, stale or failed, and why"
EXAMPLE = "status --study phantom"
# Snakemake's reasons that tell of a change, in the words that a reader of the table needs.
CHANGES = {
    "Params have changed": "its settings, its code or a package changed",
    "Code has changed": "its code changed",
    "Updated input files": "a file that it reads changed",
    "Set of input files": "it reads other files than before",
    "Software environment": "the environment changed",
    "Forced execution": "it was asked for",
}
# Of a job that failed and wrote nothing, as one that ran out of memory or was cancelled.
UNSAID = "it ended without a word, as a job that is killed does (`python -m stamp logs --failed`)"
Failed = frozenset[Identity]
# A job that only waits for another has this reason beside or instead of those above.
WAITING = "Input files updated by another job"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Which studies."""
    parser.add_argument(
        "--study", action="append", metavar="NAME", help="this study only; may be given again"
    )
    parser.add_argument("--json", action="store_true", help="for a program")


def run(arguments: argparse.Namespace) -> None:
    """Print one table per study."""
    plan = read_plan(arguments.study)
    names = list(plan.studies)
    chosen = f"studies=[{','.join(names)}]"
    failed, jobs = failures(Path()), dry_run(config=[chosen])
    if arguments.json:
        found = {name: record(plan.studies[name], jobs, failed) for name in names}
        print(json.dumps(found, indent=2))
    else:
        print("\n\n".join(report(plan.studies[name], jobs, failed) for name in names))


@dataclass(frozen=True, slots=True)
class ModelState:
    """One model: ``state`` is done, missing, stale, failed or unavailable."""

    model: str
    state: str
    why: str


def last_error(job: DueJob, failed: Failed = frozenset()) -> str | None:
    """Why a job failed, if it did and was not finished since: the line that its log ends with.

    That is a user's mistake, or the last line of a traceback. ``failed`` are the jobs that the last
    run's own log calls so: one that was killed leaves no line.
    """
    if all(Path(file).exists() for file in job.outputs):
        return None
    for log in map(Path, job.logs):
        text = log.read_text(errors="replace") if log.is_file() else ""
        lines = [line for line in text.splitlines() if line.strip()]
        said = [line.partition("stamp: ")[2] for line in lines if line.startswith("stamp: ")]
        if said:
            return said[-1]
        if lines and not lines[-1].startswith(f"{DONE}; "):
            return f"{lines[-1].strip()} (all of it in {log})"
    return UNSAID if job.identity in failed else None


def failures(folder: Path) -> Failed:
    """The jobs that failed in the last run."""
    run = run_log.latest(folder)
    jobs = run.jobs.values() if run else ()
    return frozenset(job.identity for job in jobs if job.state == "failed")


def change(job: DueJob) -> str | None:
    """What changed since a job's files were made, if they are there."""
    if not all(Path(file).exists() for file in job.outputs):
        return None
    for start, words in CHANGES.items():
        if start in job.reason:
            return words
    return None if WAITING in job.reason else job.reason.partition(":")[0].strip() or "it is due"


def state_of(model: str, jobs: Sequence[DueJob], failed: Failed = frozenset()) -> ModelState:
    """The state of a model from its jobs that are due, and from those that failed last."""
    if not jobs:
        return ModelState(model, "done", "")
    jobs = by_stage(jobs)
    for job in jobs:
        if line := last_error(job, failed):
            own = line.removeprefix(f"model '{model}': ")
            return ModelState(model, "failed", f"{job.name}: {own}")
    for job in jobs:
        if words := change(job):
            return ModelState(model, "stale", f"{job.name}: {words}; {_count(jobs)} to do")
    if all(Path(file).exists() for job in jobs for file in job.outputs):
        return ModelState(model, "stale", f"what it is made from changed; {_count(jobs)} to do")
    return ModelState(model, "missing", f"{_count(jobs)} to do: {counted(jobs)}")


def _count(jobs: Sequence[DueJob]) -> str:
    return f"{len(jobs)} job" if len(jobs) == 1 else f"{len(jobs)} jobs"


def rows(study: Study, jobs: Iterable[DueJob], failed: Failed = frozenset()) -> list[ModelState]:
    """The models of a study in the order of their keys, those that can't be scored at the end."""
    own = [job for job in jobs if job.wildcards.get("study") == study.name]
    found = [
        state_of(key, [job for job in own if job.wildcards.get("model") == key], failed)
        for key in study.models
    ]
    listed = [
        ModelState(key, "unavailable", texts["reason"]) for key, texts in study.unavailable.items()
    ]
    return [*found, *listed]


def shared_failures(
    study: Study, jobs: Iterable[DueJob], failed: Failed = frozenset()
) -> list[str]:
    """What failed of the jobs that serve all models: data, pairs, pixels, statistics."""
    found = []
    for job in jobs:
        ours = job.wildcards.get("study", study.name) == study.name
        if ours and "model" not in job.wildcards and (line := last_error(job, failed)):
            found.append(f"{job.name}: {line}")
    return found


def jobs_of_all(study: Study, jobs: Iterable[DueJob]) -> list[DueJob]:
    """The study's jobs that serve all models together."""
    own = [job for job in jobs if job.wildcards.get("study") == study.name]
    return [job for job in own if "model" not in job.wildcards]


def loose(study: Study) -> list[str]:
    """The models whose weights are not pinned to a commit of the hub."""
    return [key for key, model in study.models.items() if unpinned(model.load)]


def record(study: Study, jobs: Sequence[DueJob], failed: Failed = frozenset()) -> dict[str, Any]:
    """A study's state for a program."""
    return {
        "models": [asdict(row) for row in rows(study, jobs, failed)],
        "failed_for_all_models": shared_failures(study, jobs, failed),
        "jobs_for_all_models": len(jobs_of_all(study, jobs)),
        "not_pinned": loose(study),
    }


def report(study: Study, jobs: Sequence[DueJob], failed: Failed = frozenset()) -> str:
    """A study's table, and below it what concerns all models."""
    listed = rows(study, jobs, failed)
    states = [row.state for row in listed]
    counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(sorted(states)))
    lines = [f"{study.name}: {counts}"]
    lines.append(table([(row.model, row.state, row.why) for row in listed], indent="  "))
    lines += [f"  failed for all models: {line}" for line in shared_failures(study, jobs, failed)]
    if together := jobs_of_all(study, jobs):
        lines.append(f"  and {_count(together)} for all models together")
    if unpinned_ones := loose(study):
        named = ", ".join(unpinned_ones)
        lines.append(f"  not pinned to a commit of the hub: {named} (`python -m stamp pin`)")
    return "\n".join(lines)
