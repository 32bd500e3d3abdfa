"""What can be done without running the workflow: `<command> --help` has an example of each."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import chdir
from importlib import import_module
from pathlib import Path

from stamp import __version__
from stamp.cli import COMMANDS
from stamp.cli.project_folder import project_folder, seen_from
from stamp.cli.terminal.help_text import Paragraphs, example, program
from stamp.core.errors import UserError, suggest


def parser() -> argparse.ArgumentParser:
    """The arguments of every command."""
    top = argparse.ArgumentParser(prog=program(), description=__doc__, formatter_class=Paragraphs)
    top.add_argument("--version", action="version", version=f"stamp {__version__}")
    top.add_argument(
        "--project",
        type=Path,
        metavar="DIR",
        help="the project's folder (default: this one, or the nearest above with config/)",
    )
    under = top.add_subparsers(dest="command", required=True, metavar="command")
    options = {"": ["--help", "--project", "--version"]}
    for name in COMMANDS:
        module = import_module(f"stamp.cli.{name}")
        own = under.add_parser(
            name.replace("_", "-"),
            help=module.HELP,
            description=module.__doc__,
            epilog=example(module.EXAMPLE),
            formatter_class=Paragraphs,
        )
        module.arguments(own)
        own.set_defaults(run=module.run, options=options)
        words = [word for action in own._actions for word in action.option_strings]
        options[name.replace("_", "-")] = sorted(word for word in words if word.startswith("--"))
    return top


def check_command(line: Sequence[str]) -> None:
    """Refuse a command that there is none of, with the one that may be meant."""
    words = iter(line)
    for word in words:
        if word == "--project":
            next(words, None)
        elif not word.startswith("-"):
            known = [name.replace("_", "-") for name in COMMANDS]
            if word not in known:
                raise UserError(f"no command '{word}': {suggest(word, known)}")
            return


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; a user's mistake is one line and exit code 1."""
    line = list(sys.argv[1:] if arguments is None else arguments)
    try:
        check_command(line)
    except UserError as mistake:
        print(f"stamp: {mistake}", file=sys.stderr)
        return 2
    if not line:
        parser().print_help()
        return 0
    given = parser().parse_args(line)
    given.line = line  # as the user wrote it
    try:
        root = project_folder(given.project)
        seen_from(root, given)
        with chdir(root):
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
