"""What runs now, and how long the run will still take, in Snakemake's live display."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

WINDOW = 600.0  # seconds: the jobs of the last ten minutes say how fast the run is
TOTAL = "Total Progress"  # the bar of the whole run


def show_what_runs(handlers: Iterable[Any]) -> None:
    """Where a handler has rich's bars: bars of what runs now only, and the time left.

    Call it before the first job starts. A bar of every rule does not fit a terminal, and the
    display's own count of running jobs starts at one.
    """
    bars = [handler.progress for handler in handlers if hasattr(handler, "progress")]
    if not bars:
        return
    from rich.progress import Progress, Task, TimeRemainingColumn
    from rich.text import Text

    class TimeLeft(TimeRemainingColumn):
        """The time left of the whole run, at the pace of its last jobs."""

        def render(self, task: Task) -> Text:
            if TOTAL not in task.description or task.finished:
                return Text("")
            left = super().render(task)
            return left if "-" in left.plain else Text(f"{left.plain} left", style=left.style)

    for progress in bars:
        if isinstance(progress, Progress):
            progress.speed_estimate_period = WINDOW
            progress.columns = (*progress.columns, TimeLeft())
            _show_running(progress)


def _show_running(progress: Any) -> None:
    """Leave out the bars of rules of which no job runs."""
    for task in progress.tasks:
        progress.update(task.id, active=0)
    table = progress.make_tasks_table

    def of_running(tasks: Iterable[Any]) -> Any:
        return table([task for task in tasks if TOTAL in task.description or _runs(task)])

    progress.make_tasks_table = of_running


def _runs(task: Any) -> bool:
    """Whether jobs of a bar run now; a finished bar has a dash for their number."""
    active = task.fields.get("active")
    return isinstance(active, int) and active > 0
