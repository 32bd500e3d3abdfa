"""`python -m stamp <command>`: what can be done without running the workflow."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from stamp.cli import COMMANDS
from stamp.core.errors import UserError


def parser() -> argparse.ArgumentParser:
    """The arguments of every command."""
    top = argparse.ArgumentParser(prog="python -m stamp", description=__doc__)
    under = top.add_subparsers(dest="command", required=True, metavar="command")
    for name in COMMANDS:
        module = import_module(f"stamp.cli.{name}")
        own = under.add_parser(name.replace("_", "-"), help=module.HELP, description=module.__doc__)
        module.arguments(own)
        own.set_defaults(run=module.run)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; a user's mistake is one line and exit code 1."""
    given = parser().parse_args(arguments)
    given.line = list(sys.argv[1:] if arguments is None else arguments)  # as the user wrote it
    try:
        code = given.run(given) or 0
        sys.stdout.flush()  # here, where a reader that has gone is told apart from a failure
        return code
    except UserError as mistake:
        print(f"stamp: {mistake}", file=sys.stderr)
        return 1
    except (PermissionError, NotADirectoryError, IsADirectoryError, FileExistsError) as error:
        # of a file or folder that the user named: no mistake of the program's
        where = "" if error.filename is None else f"{error.filename}: "
        print(f"stamp: {where}{error.strerror or error}", file=sys.stderr)
        return 1
    except SystemExit as left:  # of a user's model: commands return their exit code
        print(f"stamp: code that was run called sys.exit({left.code!r})", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("stamp: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
