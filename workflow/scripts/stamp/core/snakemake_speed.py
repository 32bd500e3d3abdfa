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
    less often, and not at all once Python ends. Four things are found out once: which arguments a
    function takes, what the path of a script means, which rules make a file that many jobs read,
    and whether a rule's script can be read. Conda's environments are looked for in runs with conda.
    """
    from snakemake import common, dag, output_index, rules, sourcecache

    gc.set_threshold(100_000, 50, 100)
    atexit.register(gc.freeze)
    for module in (common, rules):
        _remember(module, "get_function_params")
    _remember(sourcecache, "parse_uri")
    _replace(output_index, "OutputIndex", "match_producers", _producers_once)
    _replace(dag, "ScriptProcessor", "process_job", _script_once)
    _replace(dag, "DAG", "update_conda_envs", _where_conda_is_used)


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


def _replace(module: ModuleType, owner: str, name: str, faster: Any) -> None:
    """Put ``faster(method)`` in the place of a method, if this Snakemake has it."""
    method = getattr(getattr(module, owner, None), name, None)
    if method is not None and not hasattr(method, "__wrapped__"):
        setattr(getattr(module, owner), name, wraps(method)(faster(method)))


def _producers_once(method: Any) -> Any:
    """The rules that make a file are looked for once, not for each job that reads it."""

    def match_producers(self: Any, targetfile: str) -> Any:
        known = self.__dict__.setdefault("known_producers", {})
        if (file := str(targetfile)) not in known:
            known[file] = method(self, targetfile)
        return known[file]

    return match_producers


def _script_once(method: Any) -> Any:
    """Whether a script can be read is asked once per rule, unless its path has wildcards."""

    def process_job(self: Any, job: Any) -> None:
        known = self.__dict__.setdefault("known_rules", set())
        if job.rule.name not in known or "{" in str(getattr(job.rule, self.script_type)):
            method(self, job)
            known.add(job.rule.name)

    return process_job


def _where_conda_is_used(method: Any) -> Any:
    """A run without conda needs no environment of any job, for which all its params are made."""

    def update_conda_envs(self: Any) -> None:
        methods = {str(one) for one in self.workflow.deployment_settings.deployment_method}
        if "conda" in methods or self.workflow.executor_plugin is None:
            method(self)

    return update_conda_envs


def start_without_limit(workflow: Any) -> None:
    """Lift Snakemake's limit of 100 started jobs per second, where jobs run on this machine.

    It is meant to spare a cluster's queue. Here the cores are the limit, and the timers with which
    Snakemake 9 keeps it are never taken back: each wakes the scheduler once a second for the rest
    of the run, one more of them with every job.
    """
    if workflow.local_exec and hasattr(workflow.scheduler, "job_rate_limiter"):
        workflow.scheduler.job_rate_limiter = None
