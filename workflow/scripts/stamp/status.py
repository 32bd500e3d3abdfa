"""Where each model of a study stands: done, missing, stale or failed, and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from stamp.config import Plan, Study
from stamp.dryrun import Job, by_stage, counted, dry_run
from stamp.models.hubs import unpinned

# Snakemake's reasons that tell of a change, in the words that a reader of the table needs.
CHANGES = {
    "Params have changed": "its settings, its code or a package changed",
    "Code has changed": "its code changed",
    "Updated input files": "a file that it reads changed",
    "Set of input files": "it reads other files than before",
    "Software environment": "the environment changed",
    "Forced execution": "it was asked for",
}
# A job that only waits for another has this reason beside or instead of those above.
WAITING = "Input files updated by another job"


@dataclass(frozen=True, slots=True)
class Row:
    """One model: ``state`` is done, missing, stale, failed or unavailable."""

    model: str
    state: str
    why: str


def last_error(job: Job) -> str | None:
    """The line that a job ended with, if it failed with one and was not finished since."""
    if all(Path(file).exists() for file in job.outputs):
        return None
    for log in map(Path, job.logs):
        lines = log.read_text(errors="replace").splitlines() if log.is_file() else []
        said = [line.partition("stamp: ")[2] for line in lines if line.startswith("stamp: ")]
        if said:
            return said[-1]
    return None


def change(job: Job) -> str | None:
    """What changed since a job's files were made, if they are there."""
    if not all(Path(file).exists() for file in job.outputs):
        return None
    for start, words in CHANGES.items():
        if start in job.reason:
            return words
    return None if WAITING in job.reason else job.reason.partition(":")[0].strip() or "it is due"


def state_of(model: str, jobs: Sequence[Job]) -> Row:
    """The state of a model from its jobs that are due."""
    if not jobs:
        return Row(model, "done", "")
    jobs = by_stage(jobs)
    for job in jobs:
        if line := last_error(job):
            own = line.removeprefix(f"model '{model}': ")
            return Row(model, "failed", f"{job.name}: {own}")
    for job in jobs:
        if words := change(job):
            return Row(model, "stale", f"{job.name}: {words}; {_count(jobs)} to do")
    if all(Path(file).exists() for job in jobs for file in job.outputs):
        return Row(model, "stale", f"what it is made from changed; {_count(jobs)} to do")
    return Row(model, "missing", f"{_count(jobs)} to do: {counted(jobs)}")


def _count(jobs: Sequence[Job]) -> str:
    return f"{len(jobs)} job" if len(jobs) == 1 else f"{len(jobs)} jobs"


def rows(study: Study, jobs: Iterable[Job]) -> list[Row]:
    """The models of a study in the order of their keys, those that can't be scored at the end."""
    own = [job for job in jobs if job.wildcards.get("study") == study.name]
    found = [
        state_of(key, [job for job in own if job.wildcards.get("model") == key])
        for key in study.models
    ]
    listed = [Row(key, "unavailable", texts["reason"]) for key, texts in study.unavailable.items()]
    return [*found, *listed]


def shared_failures(study: Study, jobs: Iterable[Job]) -> list[str]:
    """What failed of the jobs that serve all models: data, pairs, pixels, statistics."""
    found = []
    for job in jobs:
        ours = job.wildcards.get("study", study.name) == study.name
        if ours and "model" not in job.wildcards and (line := last_error(job)):
            found.append(f"{job.name}: {line}")
    return found


def report(study: Study, jobs: Sequence[Job]) -> str:
    """A study's table with what else there is to say of it."""
    table = rows(study, jobs)
    widths = [max(len(getattr(row, part)) for row in table) for part in ("model", "state")]
    states = [row.state for row in table]
    counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(sorted(states)))
    lines = [f"{study.name}: {counts}"]
    lines += [
        f"  {row.model:<{widths[0]}}  {row.state:<{widths[1]}}  {row.why}".rstrip() for row in table
    ]
    lines += [f"  failed for all models: {line}" for line in shared_failures(study, jobs)]
    together = [
        job
        for job in jobs
        if job.wildcards.get("study") == study.name and "model" not in job.wildcards
    ]
    if together:
        lines.append(f"  and {_count(together)} for all models together")
    loose = [key for key, model in study.models.items() if unpinned(model.load)]
    if loose:
        lines.append(
            f"  not pinned to a commit of the hub: {', '.join(loose)} (`python -m stamp pin`)"
        )
    return "\n".join(lines)


def status(plan: Plan, names: Sequence[str]) -> str:
    """The reports of some studies of a plan, with one dry run for all."""
    chosen = f"studies=[{','.join(names)}]"
    jobs = dry_run(config=[chosen])
    return "\n\n".join(report(plan.studies[name], jobs) for name in names)
