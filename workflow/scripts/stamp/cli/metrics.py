"""The other predictors that STAMP is compared with, a row each."""

from __future__ import annotations

import argparse

HELP = "list the metrics that STAMP is compared with"


def arguments(parser: argparse.ArgumentParser) -> None:
    """It takes none."""


def run(arguments: argparse.Namespace) -> None:
    """Print the registry as a table."""
    print(table())


def table() -> str:
    """The registry as text."""
    from stamp.config.registries.metrics import METRICS

    rows = [("name", "metric", "needs", "better", "tasks", "reference")]
    for one in METRICS:
        better = "higher" if one.direction > 0 else "lower"
        rows.append(
            (one.name, one.title, ", ".join(one.needs), better, ", ".join(one.tasks), one.reference)
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])
