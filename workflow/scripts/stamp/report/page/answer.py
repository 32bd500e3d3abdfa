"""The answer in words: which models lead, which are clearly below, which must not be used.

Two models are *told apart* when one is above the other in at least ``(1 + level) / 2`` of the joint
bootstrap draws of all scores; where there are no draws, when their intervals do not overlap. Models
at the top are those that can't be told apart from the first, and those whose rank interval
reaches the first place. A model is *clearly below* when it is told apart from every one of them.
Nothing is said that these intervals do not carry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stamp.report.wording import RHO, short_number

NAMED = 4  # models that a sentence names before it counts
Row = Mapping[str, Any]
Above = Callable[[Row, Row], bool | None]


@dataclass(frozen=True, slots=True)
class Standing:
    """The models of a study by what the intervals allow to say; each is a list of keys."""

    top: list[str]
    between: list[str]
    below: list[str]
    unusable: list[str]
    known: bool  # whether anything says how sure the order is
    first_in_all: bool = False  # whether the interval of the first model's rank is the first place


@dataclass(frozen=True, slots=True)
class Track:
    """How far such a ranking has been right: rho with what happened, and the source metric's."""

    title: str
    n: int
    rho: float | None
    low: float | None = None
    high: float | None = None
    source: float | None = None
    source_low: float | None = None
    source_high: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """One headline and the sentences that follow it."""

    headline: str
    sentences: list[str]
    standing: Standing

    @property
    def text(self) -> str:
        """All of it as one paragraph."""
        return " ".join([self.headline, *self.sentences])


def standing(
    models: Sequence[Row], outranks: Mapping[str, Mapping[str, float | None]], level: float
) -> Standing:
    """Sort models into top, between, below and unusable.

    ``models`` are rows by score, best first: ``model``, ``stamp``, ``low``, ``high``,
    ``rank_low``, ``rank_high``, and ``stop``, whether a flag forbids its use. ``outranks[i][j]`` is
    the share of draws in which i is above j.
    """
    unusable = [row["model"] for row in models if row["stop"]]
    usable = [row for row in models if not row["stop"] and row["stamp"] is not None]
    if not usable:
        return Standing([], [], [], unusable, known=False)
    above = _above(outranks, level)
    first, others = usable[0], usable[1:]
    if any(above(first, row) is None for row in others):
        top = [row for row in usable if row["stamp"] == first["stamp"]]
        return Standing(_keys(top), [], [], unusable, known=False)
    reaches = {row["model"]: row.get("rank_low") == 1 for row in usable}
    top = [first, *(row for row in others if reaches[row["model"]] or not above(first, row))]
    rest = [row for row in others if row not in top]
    below = [row for row in rest if all(above(one, row) for one in top)]
    between = [row for row in rest if row not in below]
    alone = first.get("rank_high") in (None, 1)
    return Standing(_keys(top), _keys(between), _keys(below), unusable, True, alone)


def _above(outranks: Mapping[str, Mapping[str, float | None]], level: float) -> Above:
    """Whether one model is told apart from another, below it; None where nothing can say."""
    enough = (1 + level) / 2

    def above(one: Row, other: Row) -> bool | None:
        share = outranks.get(one["model"], {}).get(other["model"])
        if share is not None:
            return share >= enough
        if one.get("low") is None or other.get("high") is None:
            return None
        return bool(one["low"] > other["high"])

    return above


def _keys(rows: Sequence[Row]) -> list[str]:
    return [row["model"] for row in rows]


def answer(found: Standing, labels: Mapping[str, str], track: Track | None, level: float) -> Answer:
    """The words for a standing; ``labels`` are the models' names, ``track`` what targets say."""
    names, sentences = _told_apart(labels), []
    if found.unusable:
        sentences.append(f"{listed(found.unusable, names)} must not be used: see the flags.")
    if found.known and found.below and len(found.top) > 1:
        sentences.append(_below(found, names))
    if found.known and found.between:
        sentences.append(_between(found, names))
    sentences.append(_record(track, level))
    return Answer(_headline(found, names), sentences, found)


def _headline(found: Standing, names: Mapping[str, str]) -> str:
    top = found.top
    if not top:
        return "No model can be recommended: none has a score without a flag that forbids its use."
    if len(top) == 1 and not (found.between or found.below) and found.known:
        return f"{names[top[0]]} is the only model that can be ranked, so there is nothing to rank."
    if not found.known:
        verb = "has" if len(top) == 1 else "share"
        return (
            f"{listed(top, names)} {verb} the highest score, but no interval says how sure "
            "that order is."
        )
    if len(top) == 1 and found.first_in_all:
        return f"{names[top[0]]} ranks first, clearly above every other model."
    if len(top) == 1:
        return f"{names[top[0]]} ranks first: each other model, taken alone, is below it."
    if not (found.between or found.below):
        return f"None of the {len(top)} models can be told apart from the first by these images."
    return f"{listed(top, names)} can't be told apart at the top."


def _below(found: Standing, names: Mapping[str, str]) -> str:
    return f"{listed(found.below, names)} {_is(found.below)} clearly below all models at the top."


def _between(found: Standing, names: Mapping[str, str]) -> str:
    return (
        f"{listed(found.between, names)} {_is(found.between)} below {names[found.top[0]]}, but "
        "not clearly below all models at the top."
    )


def _record(track: Track | None, level: float) -> str:
    """How far such a ranking has been right, and that of the source metric beside it."""
    if track is None:
        return "There are no targets in this study, so nothing here tests how right the ranking is."
    if track.rho is None:
        why = f": {track.reason}" if track.reason else ""
        return f"How right such a ranking is can't be said for {track.title}{why}."
    own = f"{RHO} = {short_number(track.rho)}{_interval(track.low, track.high, level)}"
    said = f"On {track.title}, measured on {track.n} models, STAMP ranked them with {own}"
    if track.source is not None:
        beside = _interval(track.source_low, track.source_high, None)
        said += f"; the source metric with {RHO} = {short_number(track.source)}{beside}"
    return f"{said}.{_which_was_better(track)}{_no_relation(track)}"


def _which_was_better(track: Track) -> str:
    """Which of the two rankings was better, where their intervals are apart."""
    low, high = track.low, track.high
    source_low, source_high = track.source_low, track.source_high
    if low is None or high is None or source_low is None or source_high is None:
        return ""
    if high < source_low:
        return " There the source metric ranked clearly better than STAMP: choose by it first."
    if low > source_high:
        return " There STAMP ranked clearly better than the source metric."
    return ""


def _no_relation(track: Track) -> str:
    """That an interval includes zero, where it does."""
    lows = {"STAMP's": track.low, "the source metric's": track.source_low}
    found = [name for name, low in lows.items() if low is not None and low <= 0]
    if not found:
        return ""
    which = "Both intervals include" if len(found) == 2 else f"{found[0]} interval includes"
    return f" {which[0].upper()}{which[1:]} zero: there may be no relation at all."


def listed(keys: Sequence[str], names: Mapping[str, str]) -> str:
    """``A, B and C``; beyond a few the rest is counted."""
    shown = [names[key] for key in keys]
    if len(shown) > NAMED:
        rest = len(shown) - (NAMED - 1)
        shown = [*shown[: NAMED - 1], f"{rest} more"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _told_apart(labels: Mapping[str, str]) -> dict[str, str]:
    """Names for a list: in quotation marks where one of them has a comma or ``and`` itself."""
    unclear = any("," in label or " and " in label for label in labels.values())
    return {key: f"\u201c{label}\u201d" if unclear else label for key, label in labels.items()}


def _is(keys: Sequence[str]) -> str:
    return "is" if len(keys) == 1 else "are"


def _interval(low: float | None, high: float | None, level: float | None) -> str:
    if low is None or high is None:
        return ""
    name = "" if level is None else f"{100 * level:g} % interval "
    return f" ({name}{short_number(low)} to {short_number(high)})"
