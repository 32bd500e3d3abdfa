"""How a run ends that somebody stopped: its last line says so."""

from __future__ import annotations

import atexit
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

LINE = "stamp: interrupted; the same command goes on from here"


class Interruption:
    """Whether this process was told to stop, by Ctrl-C or by a signal that ends it politely."""

    def __init__(self) -> None:
        self.came = False
        self.said = False

    def watch(self) -> None:
        """Note SIGINT from now on, and do then what would have been done without this.

        While Snakemake plans, that is to end with a traceback: the one line takes its place.
        """
        if threading.current_thread() is not threading.main_thread():
            return  # signals are the main thread's, where somebody else runs Snakemake
        sys.excepthook = self._without_traceback(sys.excepthook)
        before = signal.getsignal(signal.SIGINT)
        if callable(before):
            signal.signal(signal.SIGINT, self._noting(before))

    def _noting(self, before: Callable[[int, FrameType | None], Any]) -> Any:
        def noted(number: int, frame: FrameType | None) -> Any:
            self.came = True
            return before(number, frame)

        return noted

    def stopped(self, scheduler: Any) -> bool:
        """Whether a run ended by SIGINT, or by the SIGTERM that Snakemake's scheduler takes."""
        return self.came or getattr(scheduler, "_user_kill", None) is not None

    def _without_traceback(self, before: Callable[..., Any]) -> Callable[..., Any]:
        def ended(kind: type[BaseException], *more: Any) -> Any:
            return self.say() if issubclass(kind, KeyboardInterrupt) else before(kind, *more)

        return ended

    def say(self) -> None:
        """Say it once, in the very last line: Snakemake has more to say after its ``onerror``."""
        if not self.said:
            atexit.register(print, LINE, file=sys.stderr, flush=True)
        self.said = True
