"""Run all benchmarks, or those named on the command line, and print one table."""

from __future__ import annotations

import importlib
import sys

from threadpoolctl import threadpool_limits

from benchmarks.row import Row, table
from stamp.core.errors import suggest

NAMES = (
    "correlation",
    "agreement",
    "score",
    "pixels",
    "forward",
    "memory",
    "streaming",
    "shared_stream",
    "users_loops",
    "planning",
    "aggregates",
    "half_logits",
    "runs",
    "analyses",
    "noisy_control",
)


def main(names: list[str]) -> None:
    """Measure one after the other, then print the table."""
    for name in names:
        if name not in NAMES:
            sys.exit(f"unknown benchmark '{name}': {suggest(name, NAMES)}")
    rows: list[Row] = []
    for name in names or NAMES:
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        module = importlib.import_module(f"benchmarks.{name}")
        with threadpool_limits(1):
            rows += module.main()
    print(table(rows))


if __name__ == "__main__":
    main(sys.argv[1:])
