"""All that is looked at, in the order in which it is told."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stamp.cli.doctor import access, devices, disk, software
from stamp.cli.doctor.finding import ERROR, NOTE, OK, Finding
from stamp.cli.terminal.report_lines import plural
from stamp.config.plan import CONFIG, Plan, read_plan
from stamp.core.errors import UserError

__all__ = ["ERROR", "examine"]


def examine(studies: Sequence[str] | None) -> list[Finding]:
    """What is found on this machine; without a plan, what does not need one."""
    found = [*software.findings()]
    plan, finding = _plan(studies)
    found.append(finding)
    found += devices.findings(plan.device if plan else "auto")
    if plan:
        found += disk.findings(plan)
        found += access.data_roots(plan)
        found += access.credentials(plan)
    found.append(access.hub(plan))
    found.append(access.slurm())
    return found


def _plan(studies: Sequence[str] | None) -> tuple[Plan | None, Finding]:
    if not studies and not Path(CONFIG).is_file():
        text = f"no project in {Path.cwd()}, so only the machine was looked at"
        return None, Finding(NOTE, "configuration", text)
    try:
        plan = read_plan(studies)
    except UserError as mistake:
        return None, Finding(ERROR, "configuration", str(mistake))
    counts = [
        f"{name} ({plural(len(study.models), 'model')})" for name, study in plan.studies.items()
    ]
    return plan, Finding(OK, "configuration", ", ".join(counts))
