"""A claim of the paper beside its recomputation; the verdict follows from both by rule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import polars as pl

from stamp.paper.printed_numbers import number, numbers

REPRODUCED = "reproduced"
DIFFERS = "differs"
IMPOSSIBLE = "impossible"
NOT_CHECKABLE = "not checkable"
VERDICTS = (REPRODUCED, DIFFERS, IMPOSSIBLE, NOT_CHECKABLE)
NOTHING = "-"

Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Claim:
    """One row of the audit. ``series`` joins the rows of one table, which the page sums up."""

    claim: str
    where: str
    printed: str
    recomputed: str
    verdict: str
    note: str = ""
    series: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """A statement of the paper: what it is about, where it stands, what is printed, of how many."""

    claim: str
    where: str
    printed: str
    n: int | None = None


def verdict(agrees: bool | None, possible: bool = True) -> str:
    """The rule: impossible where no data give it; not checkable without a recomputation."""
    if not possible:
        return IMPOSSIBLE
    if agrees is None:
        return NOT_CHECKABLE
    return REPRODUCED if agrees else DIFFERS


def measured(
    text: Text,
    value: float | Range,
    note: str = "",
    tolerance: float = 0.0,
    possible: bool = True,
    series: str = "",
) -> Claim:
    """A printed number beside a recomputed one, or the range that rounded inputs leave for it.

    ``tolerance`` is what a random number, printed or recomputed, may be off; the note says so where
    it decides the verdict.
    """
    printed = number(text.printed)
    low, high = value if isinstance(value, tuple) else (value, value)
    agrees = printed.agrees(low - tolerance, high + tolerance)
    found = printed.shown(low, high)
    if agrees and not printed.agrees(low, high):
        note = _allowed(note, tolerance)
    return Claim(
        text.claim, text.where, text.printed, found, verdict(agrees, possible), note, series
    )


def several(
    text: Text,
    values: Sequence[float | Range],
    note: str = "",
    tolerance: float = 0.0,
    series: str = "",
) -> Claim:
    """A printed interval or list beside a recomputed one: reproduced if every part is."""
    printed = numbers(text.printed)
    ranges = [value if isinstance(value, tuple) else (value, value) for value in values]
    agree = [
        each.agrees(low - tolerance, high + tolerance)
        for each, (low, high) in zip(printed, ranges, strict=True)
    ]
    found = ", ".join(
        each.shown(low, high) for each, (low, high) in zip(printed, ranges, strict=True)
    )
    if text.printed.startswith("["):
        found = f"[{found}]"
    alone = (each.agrees(*span) for each, span in zip(printed, ranges, strict=True))
    if all(agree) and not all(alone):
        note = _allowed(note, tolerance)
    return Claim(text.claim, text.where, text.printed, found, verdict(all(agree)), note, series)


def _allowed(note: str, tolerance: float) -> str:
    """A note with the allowance that a verdict rests on."""
    allowed = f"agrees by the allowance of {tolerance:.2g} for Monte Carlo error"
    return "; ".join(filter(None, [note, allowed]))


def stated(
    text: Text, recomputed: str, holds: bool | None, note: str = "", possible: bool = True
) -> Claim:
    """A statement in words beside what follows from the numbers: whether it holds is computed."""
    return Claim(text.claim, text.where, text.printed, recomputed, verdict(holds, possible), note)


def unchecked(text: Text, reason: str, recomputed: str = NOTHING, series: str = "") -> Claim:
    """A claim for which what is printed or shipped does not suffice, and what is missing."""
    return Claim(text.claim, text.where, text.printed, recomputed, verdict(None), reason, series)


def table(claims: Iterable[tuple[str, Claim]]) -> pl.DataFrame:
    """The claims, each with its theme, as the table that the audit writes."""
    rows = [
        (
            each.claim, each.where, each.printed, each.recomputed, each.verdict, each.note,
            theme, each.series,
        )
        for theme, each in claims
    ]  # fmt: skip
    names = ("claim", "where", "printed", "recomputed", "verdict", "note", "theme", "series")
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")
