"""Whether the pairs suffice for an interval of the score as narrow as wanted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from stamp.cli.terminal.report_lines import ERROR, NOTE, WARNING, Report, plural
from stamp.scoring.bootstrap import FEW_UNITS
from stamp.stats.sample_size import SCORES, VARIATION, outlook, pairs_needed, scaled


@dataclass(frozen=True, slots=True)
class Wanted:
    """The interval of the score that is wanted."""

    half_width: float
    level: float


@dataclass(frozen=True, slots=True)
class Available:
    """The pairs that a score would be of, and by how many units they are independent."""

    kind: str
    pairs: int
    units: int
    unit: str  # what units are: "group" (patients or the like) or "image"
    estimator: str = "exact"

    @property
    def independent(self) -> int:
        """The pairs that remain if all pairs of one unit say the same."""
        return self.units // 2 if self.kind == "class" else self.units


def check_interval(
    report: Report,
    available: Available,
    wanted: Wanted,
    measured: Sequence[tuple[int, float]] = (),
) -> None:
    """Whether the pairs suffice for an interval, by measured scores where there are any.

    ``measured`` are the number of pairs and the half-width of scores that were computed already;
    for the exact estimator, whose pairs are all that there are, the number of units.
    """
    kind = available.kind
    report.say("")
    report.say(
        f"interval: {100 * wanted.level:g} %, half-width {wanted.half_width:g} wanted, from {kind} "
        "pairs"
    )
    if not available.pairs or not available.units:
        why = "there is nothing to score"
        if kind == "class":
            why = "no class has labeled images of two groups"
            if available.unit == "image":
                why = "no class has two labeled images"
        report.found(ERROR, f"no {kind} pair: {why}")
    elif measured:
        _by_measurement(report, available, wanted.half_width, measured)
    else:
        _by_assumption(report, available, wanted)


def _by_measurement(
    report: Report, available: Available, wanted: float, measured: Sequence[tuple[int, float]]
) -> None:
    number, widest = max(measured, key=lambda one: scaled(one[0], one[1], wanted))
    widths = [width for _, width in measured]
    need = scaled(number, widest, wanted)
    have, what = available.pairs, f"{available.kind} pairs"
    if available.estimator == "exact":
        have, what = number, f"{available.unit}s"
    report.say(
        f"  measured: {plural(len(measured), 'model')} with half-widths {min(widths):.3f} to "
        f"{max(widths):.3f} at {number:,} {what}; the widest needs about {need:,}"
    )
    if have < need:
        report.found(
            WARNING,
            f"{have:,} {what} are there, about {need:,} are needed for a half-width of {wanted:g} "
            "of every model scored so far",
        )


def _by_assumption(report: Report, available: Available, wanted: Wanted) -> None:
    kind, pairs, units, unit = available.kind, available.pairs, available.units, available.unit
    width, level = wanted.half_width, wanted.level
    report.say(
        f"  nothing is scored yet, so it is assumed: as many random pairs, and squared distances "
        f"with a squared coefficient of variation of {VARIATION:g} (one normal output)"
    )
    for stamp in SCORES:
        need = pairs_needed(width, stamp, level)
        have = outlook(pairs, available.independent, stamp, level)
        report.say(
            f"  score {stamp:g}: {need:,} independent pairs needed; {pairs:,} pairs of {units:,} "
            f"{unit}s give {have.best:.3f} if all are independent, {have.worst:.3f} if those of "
            f"one {unit} say the same"
        )
    middle = SCORES[len(SCORES) // 2]
    need = pairs_needed(width, middle, level)
    have = outlook(pairs, available.independent, middle, level)
    if have.best > width:
        report.found(
            WARNING,
            f"{pairs:,} {kind} pairs are too few for a half-width of {width:g} at a score of "
            f"{middle:g}: {need:,} are needed, if they are independent",
        )
    elif have.worst > width:
        report.found(
            NOTE,
            f"{pairs:,} {kind} pairs suffice for a half-width of {width:g} at a score of "
            f"{middle:g} only as far as pairs of one {unit} are independent: {units:,} {unit}s",
        )
    if units < FEW_UNITS:
        what = "the interval is then the plain bootstrap's, up to 1.7 times as wide"
        if available.estimator == "exact":
            what = "an interval from so few is somewhat too narrow"
        few = f"{plural(units, unit)} {'is' if units == 1 else 'are'} fewer than {FEW_UNITS}"
        report.found(NOTE, f"{few}: {what}")


def measured_widths(folder: Path, models: Sequence[str], estimator: str) -> list[tuple[int, float]]:
    """How many pairs (exact: units) the score of each model was of, and its half-width.

    Scores by another estimator than the study's are passed over.
    """
    found = []
    for file in (folder / f"{model}.parquet" for model in models):
        if not file.is_file():
            continue
        row = pl.read_parquet(file).row(0, named=True)
        if row.get("estimator") == estimator and row["low"] is not None:
            number = row["n_units" if estimator == "exact" else "n_semantic"]
            found.append((int(number), (row["high"] - row["low"]) / 2))
    return found
