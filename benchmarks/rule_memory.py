"""The most memory that a job of each rule took, beside what the rule asks a cluster for.

``python -m benchmarks.rule_memory results`` reads the logs that a run left there and prints a table
for ``docs/cluster.md``. Run it with ``--config warm_start=False``, as jobs of a cluster are: a job
that was forked shares memory with its parent, and its log counts it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import yaml

from benchmarks import ROOT

RULE = re.compile(r"^rule (\w+):\n(.*?)(?=^rule |\Z)", re.MULTILINE | re.DOTALL)
ASKED = re.compile(r"mem_mb=memory\((\d+)\)")
TOOK = re.compile(r", ([\d,]+) MB(?:;|$)")


def asked() -> dict[str, int]:
    """The megabytes that each rule asks for at its first attempt, or else the profile for it."""
    profile = yaml.safe_load((ROOT / "profiles" / "slurm" / "config.yaml").read_text())
    default = int(str(profile["default-resources"]["mem_mb"]).split()[0])
    found = {}
    for file in sorted((ROOT / "rules").glob("*.smk")):
        for name, body in RULE.findall(file.read_text()):
            own = ASKED.search(body)
            found[name] = int(own[1]) if own else default
    return found


def taken(results: Path) -> dict[str, int]:
    """The megabytes of the largest job of each rule, by the folder that its logs are in."""
    found: dict[str, int] = {}
    for file in results.glob("*/logs/**/*.log"):
        parts = file.relative_to(results).parts
        name = parts[2].removesuffix(".log")
        last = file.read_text().strip().rpartition("\n")[2]
        if last.startswith("done; ") and (mega := TOOK.findall(last)):
            found[name] = max(found.get(name, 0), int(mega[-1].replace(",", "")))
    return found


def table(results: Path) -> str:
    """Rows of rules that left logs, the largest first, as Markdown."""
    most = taken(results)
    rows = [(name, most[name], mega) for name, mega in asked().items() if name in most]
    rows.sort(key=lambda row: -row[1])
    lines = [f"| `{name}` | {took:,} | {mega:,} |" for name, took, mega in rows]
    return "\n".join(["| rule | peak, MB | asked for, MB |", "| --- | ---: | ---: |", *lines])


if __name__ == "__main__":
    print(table(Path(sys.argv[1] if len(sys.argv) > 1 else "results")))
