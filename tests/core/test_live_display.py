"""The live display has what runs now, and says how long the whole run will still take."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from stamp.core.live_display import TOTAL, show_what_runs


def test_the_bar_of_the_run_has_the_time_left_at_the_pace_of_its_jobs() -> None:
    clock = [0.0]
    console = Console(file=io.StringIO(), width=100)
    columns = (TextColumn("{task.description}"), BarColumn())
    progress = Progress(*columns, console=console, get_time=lambda: clock[0], auto_refresh=False)
    show_what_runs([SimpleNamespace(progress=progress), SimpleNamespace()])
    whole = progress.add_task(TOTAL, total=100, active=1)
    rule = progress.add_task("score", total=50, active=1)
    for _ in range(10):  # a job every three seconds: 90 are left, which are 270 seconds
        clock[0] += 3
        progress.advance(whole)
        progress.advance(rule)
    console.print(progress.get_renderable())
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    shown = next(line for line in lines if TOTAL in line)
    assert shown.rstrip().endswith(("0:04:30 left", "0:04:29 left"))
    assert not any("left" in line for line in lines if "score" in line)


def test_only_rules_with_a_running_job_have_a_bar() -> None:
    from snakemake_logger_plugin_rich.event_handler import ProgressDisplay

    console = Console(file=io.StringIO(), width=100)
    columns = (TextColumn("{task.fields[active]}"), TextColumn("{task.description}"))
    progress = Progress(*columns, console=console, auto_refresh=False)
    display = ProgressDisplay(progress, None, console)
    for rule, total in ((TOTAL, 3), ("score", 2), ("page", 1)):  # as the plan announces them
        display.add_or_update(rule, 0, total, visible=rule == TOTAL)
    show_what_runs([SimpleNamespace(progress=progress)])

    def shown() -> list[list[str]]:
        console.file = io.StringIO()
        console.print(progress.get_renderable())
        return [line.split()[:2] for line in console.file.getvalue().splitlines() if line.strip()]

    for name in ("score", TOTAL, "score", TOTAL):  # two jobs start
        display.set_visible(name)
        display.update_active(name)
    assert shown() == [["2", "Total"], ["2", "score"]]
    for done in (1, 2):
        display.add_or_update("score", done, 2, decrement_active=True)
        display.add_or_update(TOTAL, done, 3, decrement_active=True)
        left = [["1", "score"]] if done == 1 else []
        assert shown() == [[str(2 - done), "Total"], *left]


@pytest.mark.parametrize("handlers", [[], [SimpleNamespace()], [SimpleNamespace(progress=None)]])
def test_a_display_without_bars_stays_as_it_is(handlers: list[SimpleNamespace]) -> None:
    show_what_runs(handlers)
