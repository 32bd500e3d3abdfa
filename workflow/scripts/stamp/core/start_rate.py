"""How fast Snakemake starts jobs on one machine."""

from __future__ import annotations

from typing import Any


def unlimited(workflow: Any) -> None:
    """Lift Snakemake's limit of 100 started jobs per second, where jobs run on this machine.

    It is meant to spare a cluster's queue. Here the cores are the limit, and the timers with which
    Snakemake 9 keeps it are never taken back: each wakes the scheduler once a second for the rest
    of the run, one more of them with every job.
    """
    if workflow.local_exec and hasattr(workflow.scheduler, "job_rate_limiter"):
        workflow.scheduler.job_rate_limiter = None
