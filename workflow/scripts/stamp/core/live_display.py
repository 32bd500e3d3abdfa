"""How long a run will still take, beside how far it is, in Snakemake's live display."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

WINDOW = 600.0  # seconds: the jobs of the last ten minutes say how fast the run is
TOTAL = "Total Progress"  # the bar of the whole run


def show_time_left(handlers: Iterable[Any]) -> None:
    """Add the time left to the bar of the whole run, where a handler has rich's bars."""
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
