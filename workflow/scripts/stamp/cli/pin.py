"""Write into zoo files which commit of the hub each model's weights are, or check that it is there.

The hub is asked through its own client, so HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE count.
"""

from __future__ import annotations

import argparse
from pathlib import Path

HELP = "pin weights of the hub to commits in the zoo files"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Which zoos, and what to do."""
    parser.add_argument("zoo", nargs="*", help="name of a zoo file; all where none is given")
    parser.add_argument(
        "--revision",
        metavar="BRANCH",
        help="the branch, tag or commit to pin, also where an entry is pinned already; "
        "without it, main of those that are not",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="write nothing; exit code 1 if something is not pinned or its commit is gone",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print a line for each place; 1 where one is left without a commit."""
    from stamp.cli.pins import checked, pin, places
    from stamp.config.plan import read_project
    from stamp.config.zoo import read_zoo
    from stamp.core.errors import UserError

    folder = Path(read_project().folders.zoo)
    names = arguments.zoo or sorted(file.stem for file in folder.glob("*.yaml"))
    if arguments.check and arguments.revision:
        raise UserError("--check looks at the revisions in the zoo: it takes no --revision")
    bad = 0
    for name in names:
        file = folder / f"{name}.yaml"
        if arguments.check:
            found = [checked(place) for place in places(read_zoo(file))]
        else:
            found = pin(file, arguments.revision or "main", again=arguments.revision is not None)
        for one in found:
            where = ".".join(one.place.path[:1] + one.place.path[2:])
            print(f"{file}: {where}: {one.commit or one.reason}")
        bad += sum(one.commit is None for one in found)
    total = "not pinned" if bad else "all pinned"
    print(f"{bad} {total}" if bad else total)
    return 1 if bad else 0
