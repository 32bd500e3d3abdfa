"""Tell whether this machine is ready for the configured studies: software, GPU, disk, data.

It runs no study and shows no credential. The exit code is 1 if something would stop a run.
"""

from __future__ import annotations

import argparse
import json

from stamp.cli.terminal.tables import table

HELP = "tell whether this machine is ready: software, GPU, disk, data, hub, Slurm"
EXAMPLE = "doctor --study clinic"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Which studies, and how it is told."""
    parser.add_argument(
        "--study", action="append", metavar="NAME", help="this study only; may be given again"
    )
    parser.add_argument("--json", action="store_true", help="for a program")


def run(arguments: argparse.Namespace) -> int:
    """Print one line per finding."""
    from dataclasses import asdict

    from stamp.cli.doctor.examination import ERROR, examine

    found = examine(arguments.study)
    failed = any(one.level == ERROR for one in found)
    if arguments.json:
        print(
            json.dumps({"ready": not failed, "findings": [asdict(one) for one in found]}, indent=2)
        )
        return int(failed)
    print(table([(one.about, one.level, one.text) for one in found]))
    print("\nready" if not failed else "\nnot ready: see the errors above")
    return int(failed)
