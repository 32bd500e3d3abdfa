"""What studies will take, before anything runs: downloads, disk, forward passes, training, hours.

Images are counted by views and indexes that are there, else as ``config/datasets.yaml`` says they
were published. Operations per image are those of ``resources/gflops.csv``.
"""

from __future__ import annotations

import argparse
from typing import Any

from stamp.cli.terminal.report_lines import plural

HELP = "tell what studies will download, write and compute, before they run"
EXAMPLE = "cost medical natural"
TFLOPS = 10.0  # reached by one GPU, in trillions of operations per second
COLUMNS = (
    *("study", "models", "downloads", "pixel caches", "logits", "extra outputs at most"),
    *("forward passes", "training passes", "GPU hours"),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Which studies, how fast the GPU is, and for whom."""
    parser.add_argument("studies", nargs="*", metavar="STUDY", help="(those of config.yaml)")
    parser.add_argument(
        "--tflops",
        type=float,
        default=TFLOPS,
        help=f"trillions of operations per second that the GPU reaches ({TFLOPS:g})",
    )
    parser.add_argument("--json", action="store_true", help="for a program")
    parser.add_argument("--markdown", action="store_true", help="as the table of a page")


def run(arguments: argparse.Namespace) -> None:
    """Print one row per study, what is not known, and whether the free disk suffices."""
    import json
    from dataclasses import asdict

    from stamp.cli.cost.estimate import study_cost
    from stamp.cli.terminal.tables import titled
    from stamp.config.plan import read_plan
    from stamp.core.errors import UserError
    from stamp.data.planned_caches import free_space

    if not arguments.tflops > 0:
        raise UserError(f"--tflops {arguments.tflops:g}: must be above 0")
    plan = read_plan(arguments.studies or None)
    costs = [study_cost(study, plan, arguments.tflops) for study in plan.studies.values()]
    free, place = free_space(plan.results)
    needed = sum(one.to_write for one in costs)
    if arguments.json:
        found: dict[str, Any] = {one.study: asdict(one) for one in costs}
        print(json.dumps({"studies": found, "free": free, "needed": needed}, indent=2))
        return
    rows = [one.cells for one in costs]
    print(_markdown(rows) if arguments.markdown else titled(COLUMNS, rows))
    print("\n" + "\n".join(_notes(costs, arguments.tflops)))
    if not arguments.markdown:
        print(_disk(needed, free, str(place)))


def _markdown(rows: list[list[str]]) -> str:
    """The table for a page of the docs."""
    lines = [list(COLUMNS), ["---", *["---:"] * (len(COLUMNS) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _notes(costs: list[Any], tflops: float) -> list[str]:
    """What the numbers mean, and what they leave out."""
    lines = [
        f"GPU hours: operations at {tflops:g} TFLOP/s on one GPU, a training pass as three forward "
        "passes; decoding, loading and waiting are not in them."
    ]
    for one in costs:
        if one.not_counted:
            named = ", ".join(one.not_counted)
            lines.append(f"{one.study}: not counted, since nobody said how many: {named}.")
        if one.assumed:
            lines.append(
                f"{one.study}: {plural(one.assumed, 'model')} counted as 8 GFLOPs at 224 pixels: "
                "resources/gflops.csv does not have their backbone."
            )
        if one.left_out:
            lines.append(f"{one.study}: not run: {', '.join(one.left_out)}.")
    return lines


def _disk(needed: int, free: int, place: str) -> str:
    from stamp.data.transfer.disk import readable_bytes

    enough = "enough" if needed <= free else "NOT enough"
    return (
        f"Disk: at most {readable_bytes(needed)} still to write, {readable_bytes(free)} free "
        f"on {place}: {enough} (rough; without weights)."
    )
