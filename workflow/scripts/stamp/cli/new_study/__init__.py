"""Write a study of your own images: what their table or folders tell, as files that can be edited.

It looks at the data, says what it found, and writes the data set, the study and an empty zoo.
Nothing is overwritten, and nothing is written before the study was planned.
"""

from __future__ import annotations

import argparse

from stamp.cli.terminal.arguments import Place, at_least

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
    from stamp.cli.new_study.project_files import planned, write
    from stamp.cli.new_study.proposal import Wishes, propose
    from stamp.report.card import making

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
    new = planned(proposal)
    print("\nplanned with a stand-in model: " + new.jobs)
    if arguments.dry_run:
        for file, text in new.texts.items():
            held = file.read_text() if file.is_file() else ""
            print(f"\n--- {file}\n{text.removeprefix(held).strip()}")
        print("\nnothing was written")
        return
    write(new)
    print(f"written: {', '.join(map(str, new.texts))}; every guess is a line that can be edited")
    print("next, a model, and then the run:")
    print(f"    python -m stamp add-model --study {arguments.name} --help")
    print(f"    {making(arguments.name)}")
