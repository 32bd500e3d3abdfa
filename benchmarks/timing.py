"""Several things timed in turn, so that all of them meet the same machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from time import perf_counter, process_time


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of every round: on the clock, and of this process's CPU over all its threads."""

    walls: list[float]
    cpus: list[float]

    @property
    def wall(self) -> float:
        """The median of the seconds on the clock."""
        return median(self.walls)

    @property
    def cpu(self) -> float:
        """The median of the CPU seconds."""
        return median(self.cpus)


def alternate(runs: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Timing]:
    """Every run timed once a round, in turned order every other round, after one warm-up."""
    times: dict[str, Timing] = {name: Timing([], []) for name in runs}
    for run in runs.values():
        run()
    for number in range(rounds):
        names = list(runs) if number % 2 == 0 else list(runs)[::-1]
        for name in names:
            wall, cpu = perf_counter(), process_time()
            runs[name]()
            times[name].walls.append(perf_counter() - wall)
            times[name].cpus.append(process_time() - cpu)
    return times
