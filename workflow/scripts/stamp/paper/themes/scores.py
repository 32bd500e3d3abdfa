"""The 44 printed scores: 1 - SV/AV row by row, interval widths, the constant predictor."""

from __future__ import annotations

import numpy as np

from stamp.paper.claims import Claim, Text, measured, unchecked
from stamp.paper.printed_numbers import corners, number, numbers
from stamp.paper.printed_tables import Paper, values
from stamp.scoring.stamp import stamp
from stamp.stats.correlations.correlation import NAN
from stamp.stats.ranks import Array

Z = 1.959963984540054
PAIRS, POOL = 2000, 13_302


def claims(paper: Paper) -> list[Claim]:
    """Every claim on Table 8 that its own columns can check."""
    table = paper.table("stamp_main")
    widths = interval_widths(paper)
    return [
        *rows(paper),
        measured(paper.text("models"), float(len(table))),
        measured(
            paper.text("widths"),
            float(np.nanmax(widths)),
            f"the widest is that of {table['architecture'][int(np.nanargmax(widths))]}; "
            f"{int((widths > 0.0275).sum())} of {int((~np.isnan(widths)).sum())} are wider",
        ),
        seeds(paper, widths),
        constant(paper),
        measured(paper.text("rad_dino"), _of(paper, "RAD-DINO")),
        densenets(paper),
    ]


def rows(paper: Paper) -> list[Claim]:
    """1 - SV/AV of each row, within the rounding of SV and AV."""
    found = []
    for row in paper.table("stamp_main").iter_rows(named=True):
        text = Text(
            f"STAMP of {row['architecture']} is 1 - SV/AV", paper.where("stamp_main"), row["stamp"]
        )
        series = "STAMP as 1 - SV/AV"
        if row["sv"] is None:
            found.append(unchecked(text, "SV and AV are not printed", series=series))
        else:
            bounds = corners(stamp, number(row["sv"]), number(row["av"]))
            found.append(measured(text, bounds, series=series))
    return found


def interval_widths(paper: Paper) -> Array:
    """The width of each printed interval, NaN where there is none."""
    found = []
    for text in paper.table("stamp_main")["interval"]:
        low, high = (each.value for each in numbers(text)) if text else (NAN, NAN)
        found.append(high - low)
    return np.array(found)


def seeds(paper: Paper, widths: Array) -> Claim:
    """The deviation over pair samples beside the one that the bootstrap intervals imply.

    A 95 % interval of width w implies a standard error of w / (2 * 1.96). Samples without
    replacement from a pool of 13,302 vary less, by sqrt(1 - 2,000 / 13,302).
    """
    custom = (paper.table("stamp_main")["group"] == "CE-Supervised fine-tuned").to_numpy()
    error = widths[custom].mean() / (2 * Z)
    least = error * np.sqrt(1 - PAIRS / POOL)
    return measured(
        paper.text("seeds_sd"),
        (float(least), float(error)),
        "mean over the 31 custom models, implied by the widths of the intervals in Table 8; where "
        "the random pairs stayed the same in all samples, less would be expected",
    )


def constant(paper: Paper) -> Claim:
    """A constant predictor has SV = AV = 0, and the definition gives exactly one value."""
    only = float(stamp(0.0, 0.0))
    text = paper.text("constant")
    return measured(
        text,
        only,
        "constant outputs have SV = AV = 0, for which the definition gives 1 and nothing else",
        possible=number(text.printed).agrees(only),
    )


def densenets(paper: Paper) -> Claim:
    """How many of the TorchXRayVision models are DenseNets by their names."""
    names = [name for name in paper.table("stamp_main")["architecture"] if name.startswith("TXV-")]
    others = [name for name in names if "DN121" not in name]
    return measured(
        paper.text("txv_densenets"),
        float(len(names) - len(others)),
        f"the fourth is {', '.join(others)}, an autoencoder without a classifier",
    )


def _of(paper: Paper, name: str) -> float:
    table = paper.table("stamp_main")
    return float(values(table["stamp"])[table["architecture"].to_list().index(name)])
