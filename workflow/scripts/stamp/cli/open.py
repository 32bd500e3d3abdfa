"""Open the page of the last run in a browser: the index, or one study's page."""

from __future__ import annotations

import argparse
import webbrowser
from pathlib import Path

from stamp.config.plan import read_project
from stamp.core.errors import UserError, suggest

HELP = "open the page of a run in a browser"
EXAMPLE = "open"


def arguments(parser: argparse.ArgumentParser) -> None:
    """A study, and whether its address is only printed."""
    parser.add_argument("study", nargs="?", help="the study whose page is opened (the index)")
    parser.add_argument(
        "--print", action="store_true", dest="only_print", help="print the address, open nothing"
    )


def run(given: argparse.Namespace) -> None:
    """Print where the page is, and open it."""
    page = find(Path(read_project().results), given.study)
    print(page)
    if not given.only_print and not webbrowser.open(page.resolve().as_uri()):
        print("There is no browser here: copy the file to where one is. It needs nothing else.")


def find(results: Path, study: str | None) -> Path:
    """The index of all studies, or one study's page; what is not there is an error."""
    page = results / "index.html" if study is None else results / study / "page.html"
    if page.is_file():
        return page
    made = sorted(path.parent.name for path in results.glob("*/page.html"))
    if study is not None and made:
        raise UserError(f"{page}: no such page: {suggest(study, made)}")
    raise UserError(f"{page}: no such page; `snakemake --cores 8 --resources gpu=1` makes it")
