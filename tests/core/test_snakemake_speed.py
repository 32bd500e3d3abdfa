"""Snakemake is made faster without a change of what it plans or runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from snakemake import sourcecache
from snakemake.common import get_function_params, get_input_function_aux_params
from snakemake.resources import Resource

from stamp.core import snakemake_speed


def test_a_function_gets_what_it_asks_for_and_no_more() -> None:
    def memory(wildcards: Any, attempt: int) -> int:
        return 1000 * attempt

    offered = {"attempt": 2, "threads": 1, "input": []}
    before = get_input_function_aux_params(memory, offered)
    known = snakemake_speed.know_arguments(memory)
    assert known is memory and list(get_function_params(known)) == ["wildcards", "attempt"]
    assert get_input_function_aux_params(known, offered) == before == {"attempt": 2}


def test_a_resource_is_evaluated_and_a_path_taken_apart_as_before() -> None:
    path = "/somewhere/workflow/scripts/score.py"
    apart = sourcecache.parse_uri(path)
    snakemake_speed.plan_faster()
    snakemake_speed.plan_faster()  # once per Snakefile: another one may include ours
    assert sourcecache.parse_uri(path) == apart and sourcecache.parse_uri.__wrapped__
    resource = Resource("mem_mb", lambda wildcards, attempt: 1000 * attempt)
    offered = {"attempt": 3, "threads": 1}
    assert get_input_function_aux_params(resource.evaluate, offered) == offered
    assert resource.evaluate(None, **offered).value == 3000


@pytest.mark.parametrize("local", [True, False])
def test_the_rate_of_starts_is_limited_on_a_cluster_only(local: bool) -> None:
    scheduler = SimpleNamespace(job_rate_limiter="100 per second")
    snakemake_speed.start_without_limit(SimpleNamespace(local_exec=local, scheduler=scheduler))
    assert (scheduler.job_rate_limiter is None) == local
