"""What makes Snakemake itself faster for large studies, without a change of what it does."""

from __future__ import annotations

import atexit
import gc
from functools import lru_cache, wraps
from types import ModuleType
from typing import Any

MOST = 1 << 14  # answers that are remembered: the functions of all rules, the paths of all scripts


def plan_faster() -> None:
    """Spare work that Snakemake does anew for every job while it plans.

    A plan makes millions of objects and drops hardly any, so the garbage collector looks for waste
    less often, and not at all once Python ends. Which arguments a function takes, and how the path
    of a script is taken apart, is found out once.
    """
    from snakemake import common, rules, sourcecache

    gc.set_threshold(100_000, 50, 100)
    atexit.register(gc.freeze)
    for module in (common, rules):
        _remember(module, "get_function_params")
    _remember(sourcecache, "parse_uri")


def _remember(module: ModuleType, name: str) -> None:
    """Let a function of Snakemake's be called once for each argument that can be told apart."""
    function = getattr(module, name, None)
    if function is None or hasattr(function, "__wrapped__"):
        return
    known = lru_cache(maxsize=MOST)(function)

    @wraps(function)
    def remembered(argument: Any) -> Any:
        try:
            return known(argument)
        except TypeError:  # it has no hash
            return function(argument)

    setattr(module, name, remembered)


def start_without_limit(workflow: Any) -> None:
    """Lift Snakemake's limit of 100 started jobs per second, where jobs run on this machine.

    It is meant to spare a cluster's queue. Here the cores are the limit, and the timers with which
    Snakemake 9 keeps it are never taken back: each wakes the scheduler once a second for the rest
    of the run, one more of them with every job.
    """
    if workflow.local_exec and hasattr(workflow.scheduler, "job_rate_limiter"):
        workflow.scheduler.job_rate_limiter = None
