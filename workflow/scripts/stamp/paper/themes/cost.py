"""The cost table: its ratios, its counts of images, and what each method needs."""

from __future__ import annotations

from stamp.paper.claims import Claim, Text, measured, stated
from stamp.paper.printed_numbers import corners, number
from stamp.paper.printed_tables import OURS, Paper

MODELS = 44
ATC, LABELED, AOTL = "ATC", "NIH AUROC (labeled)", "AoTL (M=44)"
PAIRS = 2000


def claims(paper: Paper) -> list[Claim]:
    """Every claim on cost that the printed times and counts can check."""
    return [*ratios(paper), *images(paper), *needs(paper)]


def ratios(paper: Paper) -> list[Claim]:
    """How many times faster: as printed, and a model at a time."""
    seconds = {row["method"]: number(row["seconds"]) for row in _rows(paper)}
    counts = {row["method"]: number(row["images"]) for row in _rows(paper)}
    each = [1000 * seconds[name].value / counts[name].value for name in seconds]
    both = {name: corners(lambda a, b: a / b, seconds[name], seconds[OURS]) for name in seconds}
    fair = seconds[AOTL].value / MODELS / seconds[OURS].value
    like = Text("Times faster than AoTL, a model at a time", "6.1, D.3, Table 10", "282")
    rate = Text(
        "Seconds as measured on one GPU",
        paper.where("cost"),
        ", ".join(row["seconds"] for row in _rows(paper)),
    )
    return [
        measured(paper.text("ratio_atc"), both[ATC]),
        measured(
            paper.text("ratio_aotl"),
            seconds[AOTL].value / seconds[OURS].value,
            "the time of all 44 models over that of one",
        ),
        measured(like, fair, f"3,379 s are for {MODELS} models, 12 s for one"),
        measured(
            paper.text("ratio_images"),
            corners(lambda a, b: a / b, counts[ATC], counts[OURS]),
        ),
        measured(paper.text("minutes_aotl"), seconds[AOTL].value / 60),
        stated(
            rate,
            ", ".join(f"{value:.2f} ms an image" for value in each),
            None,
            "all four are 3 ms times the number of images; measurements are not printed",
        ),
    ]


def images(paper: Paper) -> list[Claim]:
    """How many images each method looks at."""
    target = number(paper.cell("cost", ATC, "images")).value
    source = number(paper.cell("cost", LABELED, "images")).value
    printed = number(paper.text("images_aotl").printed).value
    return [
        measured(
            paper.text("images_stamp"),
            (2.0 * PAIRS, 4.0 * PAIRS),
            "two images a pair: 8,000 at most, 4,000 where the random pairs reuse the images of "
            "the semantic pairs, which the text does not say",
        ),
        measured(
            paper.text("images_aotl"),
            MODELS * target,
            f"44 x 32,010 target images, those of ATC; {printed:,.0f} is 44 x {source:,.0f}, the "
            "images of the NIH test split, which is the source",
        ),
    ]


def needs(paper: Paper) -> list[Claim]:
    """What each method needs, by our reading in needs.csv, beside what is printed."""
    table = {row["method"]: row for row in paper.table("needs").iter_rows(named=True)}
    free = [
        name
        for name, row in table.items()
        if "yes" not in (row["target_images"], row["target_labels"])
    ]
    others = [name for name in free if not name.startswith("STAMP")]
    target = table["NIH AUROC"]
    labels = [name for name, row in table.items() if row["source_labels"] == "yes"]
    designs = [name for name in table if name.startswith("STAMP, ")]
    alarm = table["STAMP alarm"]
    return [
        stated(
            paper.text("target_nih"),
            "source images and labels",
            "yes" in (target["target_images"], target["target_labels"]),
            target["why"],
        ),
        stated(paper.text("only_method"), f"also {', '.join(others)}", not others, target["why"]),
        stated(
            paper.text("label_free"),
            f"not for {', '.join(name for name in designs if name in labels)}",
            not any(name in labels for name in designs),
            "class pairs and label-matched pairs are drawn by source labels",
        ),
        stated(
            paper.text("alarm_labels"),
            f"target labels: {alarm['target_labels']}",
            alarm["target_labels"] == "no",
            alarm["why"],
        ),
    ]


def _rows(paper: Paper) -> list[dict[str, str]]:
    return list(paper.table("cost").iter_rows(named=True))
