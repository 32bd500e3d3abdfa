"""Write example data: a small made-up clinic with a table, and shapes with one folder per class.

Every image is generated; none shows a person, and no result on them is evidence of anything.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from stamp.cli.terminal.arguments import at_least

HELP = "write made-up images with a table, and one folder per class, to try things on"
EXAMPLE = "example-data mine"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Where they are written, and how many."""
    parser.add_argument("folder", type=Path, help="a new or empty folder")
    parser.add_argument("--patients", type=int, default=500, help="of the clinic (default: 500)")
    parser.add_argument("--size", type=int, default=48, help="side in pixels (default: 48)")
    parser.add_argument("--seed", type=at_least(0), default=0, help="default: 0")


def run(arguments: argparse.Namespace) -> None:
    """Write them, and say what was written."""
    from stamp.core.errors import UserError

    if not 10 <= arguments.patients <= 20_000 or not 32 <= arguments.size <= 1024:
        raise UserError("--patients is 10 to 20,000 and --size 32 to 1,024")
    found = write_example(arguments.folder, arguments.patients, arguments.size, arguments.seed)
    print(f"{arguments.folder}/clinic/table.csv: {found['clinic']:,} images")
    print(f"{arguments.folder}/shapes/: {found['shapes']:,} images, one folder per class")


def write_example(folder: Path, patients: int, size: int, seed: int) -> dict[str, int]:
    """Write ``clinic`` and ``shapes`` into a new or empty folder; how many images each has."""
    from stamp.cli.example_data.clinic import write_clinic
    from stamp.cli.example_data.shapes import write_shapes
    from stamp.core.errors import UserError

    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder}: exists already and is not empty: name a new folder")
    return {
        "clinic": write_clinic(folder / "clinic", patients, size, seed),
        "shapes": write_shapes(folder / "shapes", 40, size, seed),
    }
