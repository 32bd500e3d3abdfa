"""Write a study of your own images: what their table or folders tell, as files that can be edited.

It looks at the data, says what it found, and writes the data set, the study and an empty zoo.
Nothing is overwritten, and nothing stays unless the study can be planned. A folder without a
project becomes one.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from stamp.cli.terminal.arguments import Place, at_least
from stamp.cli.terminal.help_text import program

HELP = "write a study of your own images from their table or folder"
EXAMPLE = "new-study clinic --data mine/clinic/table.csv --target mine/other/table.csv"


def arguments(parser: argparse.ArgumentParser) -> None:
    """The study's name, its images, and the little that images do not tell."""
    add = parser.add_argument
    add("name", help="of the study, in files and commands: clinic")
    add("--data", required=True, type=Place, metavar="DATA",
        help="the source: a table, a folder or the key of a data set")  # fmt: skip
    add("--target", nargs="+", action="extend", default=[], type=Place, metavar="DATA",
        help='labeled images of "after deployment", of the same kind; may be several')  # fmt: skip
    how = "an option of the tables or folders, where a guess is wrong: group=subject"
    add("--option", "-o", action="append", default=[], metavar="KEY=VALUE", help=how)
    add("--title", help="what figures call it (default: the name)")
    add("--pixels-size", type=at_least(1), metavar="N",
        help="side of the pixels that models see (default: the images', at most 224)")  # fmt: skip
    add("--channels", type=int, choices=(1, 3), help="default: 1 if all tried images are gray")
    add("--dry-run", action="store_true", help="show the files and write nothing")


def run(arguments: argparse.Namespace) -> None:
    """Say what was found, then what was written and what comes next."""
    from stamp.cli.data_argument import read_options
    from stamp.cli.new_study.new_project import started
    from stamp.cli.new_study.project_files import planned, write
    from stamp.cli.new_study.proposal import Wishes, propose

    wishes = Wishes(
        name=arguments.name,
        data=str(arguments.data),
        targets=[str(target) for target in arguments.target],
        options=read_options(arguments.option),
        title=arguments.title or arguments.name,
        size=arguments.pixels_size,
        channels=arguments.channels,
    )
    proposal = propose(wishes)
    print("\n".join(proposal.told))
    with started(arguments.name, keep=not arguments.dry_run) as project:
        new = planned(proposal)
        print("\nplanned with a stand-in model: " + new.jobs)
        if not arguments.dry_run:
            write(new)
    if arguments.dry_run:
        _show({**{Path(file): text for file, text in project.items()}, **new.texts})
    else:
        _tell(arguments.name, list(project), [str(file) for file in new.texts])


def _show(texts: Mapping[Path, str]) -> None:
    """What would be written; of a file that is there, what would be new."""
    for file, text in texts.items():
        held = file.read_text() if file.is_file() else ""
        print(f"\n--- {file}\n{text.removeprefix(held).strip()}")
    print("\nnothing was written")


def _tell(name: str, project: Sequence[str], files: Sequence[str]) -> None:
    """What was written, and the next command."""
    from stamp.report.card import making

    if project:
        print(f"a new project in {Path.cwd()}: {', '.join(project)}")
    print(f"written: {', '.join(files)}; every guess is a line that can be edited")
    print("next, a model, and then the run:")
    print(f"    {program()} add-model --study {name} --help")
    print(f"    {making(name)}")
