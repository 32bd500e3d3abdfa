"""Check whether images are ready for a study: what they yield and what is missing.

It takes a table (csv, tsv, Parquet), a folder with one folder per class, a data set of the
configuration, or a study. The exit code is 1 if there is an error, 0 with warnings.
"""

from __future__ import annotations

import argparse
import json

from stamp.cli.terminal.arguments import Place, at_least, between

HELP = "say whether your images are ready for a study, and what is missing"
EXAMPLE = "check-data mine/clinic/table.csv --half-width 0.1"


def arguments(parser: argparse.ArgumentParser) -> None:
    """What is checked, and how closely."""
    add = parser.add_argument
    add("data", nargs="+", type=Place, help="a table, a folder, a data set's key or a study's name")
    how = "an option of the table or folder, as in config/datasets.yaml"
    add("--option", "-o", action="append", default=[], metavar="KEY=VALUE", help=how)
    add("--split", help="the split that pairs are drawn from (default: test, if there is one)")
    add("--half-width", type=between(0), default=0.02, help="of the interval (default: 0.02)")
    add("--level", type=between(0, 1), default=0.95, help="of the interval (default: 0.95)")
    add("--json", action="store_true", help="for a program")
    add("--all", action="store_true", help="open every image, not a sample of 200")
    add("--seed", type=at_least(0), help="for drawing splits (default: that of config.yaml)")


def run(arguments: argparse.Namespace) -> int:
    """Print a report for each argument."""
    from stamp.cli.check_data.interval import Wanted
    from stamp.cli.check_data.readiness import Request, report_on
    from stamp.cli.data_argument import read_options
    from stamp.cli.terminal.report_lines import ERROR
    from stamp.config.plan import read_project

    settings = read_project()
    request = Request(
        options=read_options(arguments.option),
        split=arguments.split,
        interval=Wanted(arguments.half_width, arguments.level),
        every_image=arguments.all,
        seed=settings.seed if arguments.seed is None else arguments.seed,
    )
    reports = {argument: report_on(argument, settings, request) for argument in arguments.data}
    if arguments.json:
        print(json.dumps({name: one.record() for name, one in reports.items()}, indent=2))
    else:
        print("\n\n".join(report.text() for report in reports.values()))
    return int(any(report.count(ERROR) for report in reports.values()))
