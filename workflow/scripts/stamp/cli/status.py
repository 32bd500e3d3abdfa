"""Each model of a study: done, missing, stale or failed, and why."""

from __future__ import annotations

import argparse

HELP = "list which models are done, missing, stale or failed, and why"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Which studies."""
    parser.add_argument(
        "--study", action="append", metavar="NAME", help="this study only; may be given again"
    )


def run(arguments: argparse.Namespace) -> None:
    """Print a table a study."""
    from stamp.cli.study_status import status
    from stamp.config.plan import read_plan

    plan = read_plan(arguments.study)
    print(status(plan, list(plan.studies)))
