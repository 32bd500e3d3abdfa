"""The jobs that are due and why, read from a dry run of Snakemake.

A dry run knows all that decides whether a job is due (files, parameters, code, sets of inputs), and
asking it is the only way that can't disagree with the run itself.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from stamp.cli.runs.job_text import ASKING, Identity, identity, job_at
from stamp.core.errors import UserError

# Rules in the order of the stages, in which jobs are listed; all others follow.
STAGES = (
    "download",
    "make_dataset",
    "find_dataset",
    "find_images",
    "pairs",
    "source_view",
    "view",
    "pixels",
    "train",
    "finetune",
    "backbone_embeddings",
    "probe",
    "logits",
    "predictions",
    "extra_outputs",
    "calibrate",
    "score",
    "class_matched_score",
    "metrics",
    "model_profile",
    "evaluate",
    "collect",
    "agreement_on_the_line",
    "correlate",
    "main_table",
    "leaderboard",
    "figure",
    "pair_distances",
    "thumbnails",
    "chart_library",
    "page",
    "index_page",
)

NO_SUCH_RULE = "No rule to produce all"


@dataclass(frozen=True, slots=True)
class DueJob:
    """A job that is due: its rule, wildcards, files, and Snakemake's reason for it."""

    rule: str
    wildcards: dict[str, str] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    logs: tuple[str, ...] = ()
    reason: str = ""

    @property
    def name(self) -> str:
        """The rule and what it is done for, without the study and the model."""
        parts = [value for key, value in self.wildcards.items() if key not in ("study", "model")]
        return " ".join([self.rule, *parts])

    @property
    def identity(self) -> Identity:
        return identity(self.rule, self.wildcards)


def read(text: str) -> list[DueJob]:
    """The jobs in what a dry run printed, without the one that only asks for all of them."""
    lines = text.splitlines()
    found = [job for number in range(len(lines)) if (job := job_at(lines, number))]
    return [
        DueJob(
            rule=job.rule,
            wildcards=job.wildcards,
            outputs=job.files("output"),
            logs=job.files("log"),
            reason=job.fields.get("reason", ""),
        )
        for job in found
        if job.rule not in ASKING
    ]


def counted(jobs: Sequence[DueJob]) -> str:
    """How many jobs there are of each rule, in the order of the stages."""
    rules = [job.rule for job in jobs]
    known = [rule for rule in STAGES if rule in rules]
    others = sorted(set(rules) - set(known))
    return ", ".join(f"{rule} {rules.count(rule)}" for rule in [*known, *others])


def by_stage(jobs: Sequence[DueJob]) -> list[DueJob]:
    """Jobs in the order of the stages, the source's first: a dry run prints them in any order."""
    place = {rule: number for number, rule in enumerate(STAGES)}

    def order(job: DueJob) -> tuple[int, bool, str]:
        return place.get(job.rule, len(STAGES)), "source" not in job.wildcards.values(), job.name

    return sorted(jobs, key=order)


def dry_run(*arguments: str, config: Sequence[str] = ()) -> list[DueJob]:
    """The jobs that are due in the project of the current folder; ``config`` overrides its keys.

    Without ``arguments`` those of `all` are meant: the default target of a Snakefile that includes
    ours is whatever rule comes first. One that renames our rules is asked for its own.
    """
    if not Path("Snakefile").is_file():
        raise UserError(f"no Snakefile in {Path.cwd()}: run this in the project's folder")
    overrides = ["--config", *config] if config else []
    done = _asked(*(arguments or ("all",)), *overrides)
    if not arguments and NO_SUCH_RULE in done.stdout:
        done = _asked(*overrides)
    if done.returncode:
        said = [line for line in done.stdout.splitlines() if line.startswith("stamp: ")]
        if said:
            raise UserError(said[0].removeprefix("stamp: "))
        last = [line.strip() for line in done.stdout.splitlines() if line.strip()]
        raise UserError(f"snakemake --dry-run fails: {last[-1] if last else 'it says nothing'}")
    return read(done.stdout)


def _asked(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A dry run of Snakemake with these arguments."""
    command = [sys.executable, "-m", "snakemake", "--dry-run", "--nolock", "--cores", "1"]
    return subprocess.run(
        [*command, *_plain_profile(), *arguments],
        env={**os.environ, "NO_COLOR": "1"},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def _plain_profile() -> list[str]:
    """The settings of the project's own profile as arguments, without its live display."""
    profile = Path("profiles", "default", "config.yaml")
    settings = yaml.safe_load(profile.read_text()) if profile.is_file() else {}
    found = ["--workflow-profile", "none"]
    for name, value in settings.items():
        if name == "logger" or value is False:
            continue
        given = [] if value is True else value if isinstance(value, list) else [value]
        found += [f"--{name}", *map(str, given)]
    return found
