"""The other predictors that STAMP is compared with, a row each."""

from __future__ import annotations

import argparse
import json
from typing import Any

from stamp.cli.terminal.tables import titled

HELP = "list the metrics that STAMP is compared with"
EXAMPLE = "metrics --json"


def arguments(parser: argparse.ArgumentParser) -> None:
    """How they are told."""
    parser.add_argument("--json", action="store_true", help="for a program")


def run(arguments: argparse.Namespace) -> None:
    """Print the registry as a table."""
    print(json.dumps(records(), indent=2) if arguments.json else listing())


def records() -> list[dict[str, Any]]:
    """The registry, one record per metric."""
    from stamp.config.registries.metrics import METRICS

    return [
        {
            "name": one.name,
            "metric": one.title,
            "needs": list(one.needs),
            "better": "higher" if one.direction > 0 else "lower",
            "tasks": list(one.tasks),
            "reference": one.reference,
        }
        for one in METRICS
    ]


def listing() -> str:
    """The registry as text."""
    found = records()
    rows = [[", ".join(x) if isinstance(x, list) else x for x in one.values()] for one in found]
    return titled(list(found[0]), rows)
