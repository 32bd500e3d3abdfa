"""Snakemake is made faster without a change of what it plans or runs."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
import snakemake.api  # noqa: F401  # what runs every Snakefile: the others import each other
from snakemake import common, sourcecache
from snakemake.resources import Resource

from stamp.core import snakemake_speed


def test_functions_get_what_they_ask_for_and_paths_are_taken_apart_as_before() -> None:
    def memory(wildcards: Any, attempt: int) -> int:
        return 1000 * attempt

    @dataclass  # its instances have no hash
    class Files:
        name: str

        def __call__(self, wildcards: Any, threads: int) -> list[str]:
            return [self.name] * threads

    path, offered = "/somewhere/workflow/scripts/score.py", {"attempt": 3, "threads": 1}
    resource = Resource("mem_mb", memory)

    def found() -> list[Any]:
        return [
            sourcecache.parse_uri(path),
            common.get_input_function_aux_params(memory, offered),
            common.get_input_function_aux_params(Files("a.png"), offered),
            common.get_input_function_aux_params(resource.evaluate, offered),
            resource.evaluate(None, **offered).value,
        ]

    before = found()
    snakemake_speed.plan_faster()
    snakemake_speed.plan_faster()  # once per Snakefile: another one may include ours
    assert found() == found() == before
    assert before[1:] == [{"attempt": 3}, {"threads": 1}, offered, 3000]
    for remembered in (sourcecache.parse_uri, common.get_function_params):
        assert not hasattr(remembered.__wrapped__, "__wrapped__")  # type: ignore[attr-defined]


@pytest.mark.parametrize("local", [True, False])
def test_the_rate_of_starts_is_limited_on_a_cluster_only(local: bool) -> None:
    scheduler = SimpleNamespace(job_rate_limiter="100 per second")
    snakemake_speed.start_without_limit(SimpleNamespace(local_exec=local, scheduler=scheduler))
    assert (scheduler.job_rate_limiter is None) == local
