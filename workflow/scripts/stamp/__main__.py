"""`python -m stamp metrics`: the other predictors that STAMP is compared with, a row each."""

from __future__ import annotations

import argparse

from stamp.metrics.registry import METRICS


def metrics() -> str:
    """The registry as a table."""
    rows = [("name", "metric", "needs", "better", "tasks", "reference")]
    for one in METRICS:
        better = "higher" if one.direction > 0 else "lower"
        needs = ", ".join(("source outputs", *one.needs))
        rows.append((one.name, one.title, needs, better, ", ".join(one.tasks), one.reference))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def main() -> None:
    """Run a command."""
    parser = argparse.ArgumentParser(prog="python -m stamp", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("metrics", help="list the metrics")
    parser.parse_args()
    print(metrics())


if __name__ == "__main__":
    main()
