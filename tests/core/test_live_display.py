"""The live display says how long the whole run will still take, and rules' bars do not."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from stamp.core.live_display import TOTAL, show_time_left


def test_the_bar_of_the_run_has_the_time_left_at_the_pace_of_its_jobs() -> None:
    clock = [0.0]
    console = Console(file=io.StringIO(), width=100)
    columns = (TextColumn("{task.description}"), BarColumn())
    progress = Progress(*columns, console=console, get_time=lambda: clock[0], auto_refresh=False)
    show_time_left([SimpleNamespace(progress=progress), SimpleNamespace()])
    whole, rule = progress.add_task(TOTAL, total=100), progress.add_task("score", total=50)
    for _ in range(10):  # a job every three seconds: 90 are left, which are 270 seconds
        clock[0] += 3
        progress.advance(whole)
        progress.advance(rule)
    console.print(progress.get_renderable())
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    shown = next(line for line in lines if TOTAL in line)
    assert shown.rstrip().endswith(("0:04:30 left", "0:04:29 left"))
    assert not any("left" in line for line in lines if "score" in line)


@pytest.mark.parametrize("handlers", [[], [SimpleNamespace()], [SimpleNamespace(progress=None)]])
def test_a_display_without_bars_stays_as_it_is(handlers: list[SimpleNamespace]) -> None:
    show_time_left(handlers)
