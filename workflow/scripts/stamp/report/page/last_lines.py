"""The last lines of a run: the first models of each study, where its page is, and what failed.

Planning prints them, so nothing heavy is imported here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

MOST_FAILED = 10  # jobs that are named


def last_lines(results: str, studies: Iterable[str]) -> str:
    """What the finished studies found; those without a page are left out."""
    blocks = _found(results, studies)
    if Path(results, "index.html").is_file() and blocks:
        blocks.append([f"All studies: {results}/index.html (python -m stamp open)"])
    return _text(blocks)


def lines_of_failure(results: str, studies: Iterable[str], jobs: Iterable[Any]) -> str:
    """What the other studies found, then what failed and why; ``jobs`` are Snakemake's.

    Where a job of no study failed, such as a download, no study is said to be finished.
    """
    failed = sorted((job for one in jobs for job in _members(one)), key=_name)
    if not failed:
        return "\nThe run failed, but no job did: Snakemake's own lines say why."
    touched = {job.wildcards_dict.get("study") for job in failed}
    whole = [] if None in touched else [one for one in studies if one not in touched]
    number = "A job" if len(failed) < 2 else f"{len(failed)} jobs"
    block = [f"{number} failed:", *(f"  {_name(job)}: {_why(job)}" for job in failed[:MOST_FAILED])]
    if len(failed) > MOST_FAILED:
        block.append(f"  and {len(failed) - MOST_FAILED} more")
    said = "python -m stamp logs shows their logs; the same command continues the run."
    return _text([*_found(results, whole), [*block, said]])


def _members(job: Any) -> list[Any]:
    """A job, or the jobs of a group."""
    return list(job.jobs) if job.is_group() else [job]


def _name(job: Any) -> str:
    """A job's rule and what it is of: ``logits (digits, source, vit-plain)``."""
    parts = [str(value) for value in job.wildcards_dict.values()]
    return job.rule.name + (f" ({', '.join(parts)})" if parts else "")


def _why(job: Any) -> str:
    """The last line of a job's log, which has the mistake."""
    for path in map(Path, job.log):
        lines = path.read_text(errors="replace").split("\n") if path.is_file() else []
        if said := [line.strip() for line in lines if line.strip()]:
            return said[-1].removeprefix("stamp: ")
    return "its log is empty: it was ended from outside, or there was no room for a word"


def _found(results: str, studies: Iterable[str]) -> list[list[str]]:
    """The lines of every study that has a page."""
    files = [Path(results, study, "page.json") for study in studies]
    return [study_lines(json.loads(one.read_text()), results) for one in files if one.is_file()]


def _text(blocks: Iterable[Iterable[str]]) -> str:
    return "\n".join(line for block in blocks for line in ["", *block])


def study_lines(found: Mapping[str, Any], results: str) -> list[str]:
    """One study: a line per model with its interval and flags, then the page."""
    number = found["models"]
    names = [row["name"] for row in found["first"]]
    width = max(map(len, names), default=0)
    return [
        f"{found['title']}: {number} model{'' if number == 1 else 's'}",
        *(
            f"  {row['place'] or '-'}  {row['name']:<{width}}  {_score(row)}"
            for row in found["first"]
        ),
        f"  page: {results}/{found['address']}",
    ]


def _score(row: Mapping[str, Any]) -> str:
    interval = "no interval"
    if row["low"] is not None and row["high"] is not None:
        interval = f"{row['low']:.3f} to {row['high']:.3f}"
    flags = ", ".join(one["label"] for one in row["flags"]) or "no flags"
    return f"{row['stamp']:.3f} ({interval})  {flags}"
