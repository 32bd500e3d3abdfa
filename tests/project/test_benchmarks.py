"""Benchmarks run at the smallest size that has a meaning; nobody looks at their numbers."""

from __future__ import annotations

import math
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from benchmarks import aggregates
from benchmarks.__main__ import NAMES, main

SMALL: dict[str, dict[str, Any]] = {
    "correlation": {"MODELS": 8, "DRAWS": 60, "FEW_PERMUTATIONS": 20, "FEW_RESAMPLES": 20},
    "score": {"CLASSES": 4, "IMAGES_A_CLASS": 6, "PAIRS": 20, "RESAMPLES": 30, "FEW_RESAMPLES": 5},
    "pixels": {"FILES": 2, "SIDE": 64, "CACHED": 8},
    "memory": {"FEW": 20, "MANY": 60},
    "streaming": {"FEW": 20, "MANY": 60, "FILES": 2},
    "shared_stream": {"MODELS": 2, "IMAGES": 8, "SIZE": 64},
    "half_logits": {"IMAGES": 60, "CLASSES": 20, "LABELED": 10, "MODELS": 4},
    "analyses": {"MODELS": 8, "METRICS": 3, "TARGETS": 2, "DRAWS": 40},
    "noisy_control": {"ZOOS": 2, "RESAMPLES": 19},
}
LONG = {"agreement", "forward", "users_loops", "planning", "runs"}  # half a minute at any size


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:invalid value")
def test_a_benchmark_ends_with_a_table_of_numbers(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = import_module(f"benchmarks.{name}")
    sizes = SMALL[name] | ({"ROUNDS": 1} if hasattr(module, "ROUNDS") else {})
    for constant, value in sizes.items():
        monkeypatch.setattr(module, constant, value)
    main([name])
    assert "\nwhat " in "\n" + capsys.readouterr().out


def test_every_table_of_many_models_has_its_seconds_and_its_peak(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(aggregates, "DRAWS", 60)
    steps = [what for what, _ in aggregates.aggregates(aggregates.Zoo(12, tmp_path))]
    names = [what for what in steps if not what.startswith(("figure", "analysis_figure", "pair_"))]
    found = aggregates.measure(12, names)
    assert {"collect", "analysis baselines", "analysis regret", "page"} <= set(found) == set(names)
    for seconds, peak in found.values():
        assert math.isfinite(seconds)
        assert peak > 10


def test_every_benchmark_is_run_here_or_takes_long() -> None:
    assert set(NAMES) == {*SMALL, "aggregates", *LONG}
