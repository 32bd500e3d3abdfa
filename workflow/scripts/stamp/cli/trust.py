"""Make Snakemake trust results that were copied without its own records (``.snakemake``).

A result is trusted if its content is what a run wrote, by the digest that the run left in
``.provenance.json``. Snakemake then gets its record back and compares it with the plan as always:
what was made with other parameters, code or inputs is due. A result without a record, or with
another content, is marked so that its job is due.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stamp.cli.runs.dry_run import DueJob, counted, dry_run
from stamp.cli.terminal.report_lines import plural
from stamp.config.plan import read_plan
from stamp.core import job_records
from stamp.core.errors import UserError
from stamp.core.file_digest import Digests

HELP = "make Snakemake trust results that were copied without .snakemake, if they match the plan"
EXAMPLE = "trust"
SHOWN = 20
# A record that no plan has, so that the job is due: without any, Snakemake believes a file.
UNKNOWN = {"params": ["'not trusted'"], "record_format_version": 6, "incomplete": False}


@dataclass(frozen=True, slots=True)
class Sorted:
    """The results of a plan: those that may be trusted, and the others with the reason."""

    trusted: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)


def arguments(parser: argparse.ArgumentParser) -> None:
    """It has none."""


def run(given: argparse.Namespace) -> int:
    """Sort the results, bring records back, and say what is still due and why."""
    results = Path(read_plan().results)
    kept = job_records.read(results)
    if not kept:
        raise UserError(
            f"{results / job_records.KEPT}: is missing or damaged, so nothing says what these "
            "results were made from; copy it with them, or run again"
        )
    found = sort(list(planned()), kept, Digests(results / job_records.DIGESTS, large=0))
    now = time.time_ns()
    for result in found.trusted:
        job_records.restore(result, kept[result]["record"])
        os.utime(result, ns=(now, now))  # of one age, so that no input is newer
    for result in found.refused:
        job_records.restore(result, dict(UNKNOWN))
    if found.trusted or found.refused:
        print(f"{plural(len(found.trusted), 'result')} trusted: the content is what a run wrote")
    else:
        print("Snakemake has its records of all results: nothing to bring back")
    listed("not trusted", found.refused)
    due = dry_run()
    known = [job for job in due if found.refused.keys().isdisjoint(job.outputs)]
    listed("not of this plan", {job.outputs[0]: gist(job.reason) for job in outdated(known)})
    print(f"due: {counted(due)}" if due else "nothing is due")
    return 1 if found.refused else 0


def planned() -> Iterator[str]:
    """The results of the plan that are there, as Snakemake lists them."""
    command = [sys.executable, "-m", "snakemake", "--summary", "--nolock", "--cores", "1"]
    done = subprocess.run(command, text=True, capture_output=True)
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith("stamp: ")]
        last = said or done.stderr.strip().splitlines() or ["snakemake --summary fails"]
        raise UserError(last[-1].removeprefix("stamp: "))
    for line in done.stdout.splitlines()[1:]:
        name = line.split("\t")[0]
        if os.path.exists(name):
            yield name


def sort(present: list[str], kept: Mapping[str, Mapping[str, Any]], digests: Digests) -> Sorted:
    """Which of the results are what a run wrote; those that Snakemake knows are left to it."""
    found = Sorted()
    for result in present:
        if job_records.file_of(result).is_file():
            continue
        if result not in kept:
            found.refused[result] = "no run has left a record of it"
            continue
        expected = {key: value for key, value in kept[result].items() if key != "record"}
        if job_records.measured(result, digests) == expected:
            found.trusted.append(result)
        else:
            found.refused[result] = "its content is not what the run wrote"
    digests.save()
    return found


def outdated(due: list[DueJob]) -> list[DueJob]:
    """Jobs that are due because the plan is another than that of their results."""
    return [job for job in due if job.outputs and re.search("ha(ve|s) changed", job.reason)]


def gist(reason: str) -> str:
    """Snakemake's reason for a job without the values."""
    return reason.partition(":")[0]


def listed(what: str, reasons: Mapping[str, str]) -> None:
    """One line per result, the first of many."""
    for result, reason in sorted(reasons.items())[:SHOWN]:
        print(f"{what}: {result}: {reason}")
    if len(reasons) > SHOWN:
        print(f"{what}: {len(reasons) - SHOWN:,} more")
