"""A model's card for a terminal: the numbers, the doubts, then what the score means."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import wrap
from typing import Any

from stamp.cli.terminal.report_lines import plural
from stamp.cli.terminal.tables import terminal_width
from stamp.report.flags import METRICS, behind, no_skill_name
from stamp.report.scoreboard import OTHER

WIDTH, NARROWEST, MARGIN, MOST_CLASSES = 100, 50, 12, 20


def text(found: Mapping[str, Any]) -> str:
    """The card for a reader: the numbers, then what they mean."""
    level = f"{100 * found['level']:g} %"
    lines = [
        ("Model", [_model(found)]),
        ("Data", [_data(found)]),
        ("Classes", [_classes(found["classes"])]),
        ("STAMP", [_score(found, level)]),
        ("Parts", [_parts(found)]),
        ("Temperature", [_temperature(found)]),
        ("Source", [_metric(found["source_metric"], level)]),
        ("Targets", [_targets(found["targets"])]),
        ("Breaks", found.get("worst_changes", [])),
        ("Trained on", [found["trained_on"] or "not known: nobody said"]),
        ("Standing", [_standing(found["among"], level)]),
        ("Flags", _flags(found["raised"])),
        ("Not tested", found["not_tested"]),
        ("Weights", [", ".join(f"{key} {value}" for key, value in found["weights"].items())]),
        ("Versions", [", ".join(f"{key} {value}" for key, value in found["versions"].items())]),
        ("Repeat by", [found["command"]]),
    ]
    shown = [line for name, parts in lines for line in _block(name, parts)]
    return "\n".join([*shown, "", *wrap(found["meaning"], min(88, _width()))])


def _width() -> int:
    """The columns of a card: those of the terminal, if it is not wider than is good to read."""
    return max(NARROWEST, min(WIDTH, terminal_width() or WIDTH))


def _block(name: str, parts: list[str]) -> list[str]:
    """A name in the margin and its texts beside it, each from a line of its own."""
    found = []
    for part in filter(None, parts):
        # a command is copied: it stays on one line
        room = _width() - MARGIN
        found += [part] if name == "Repeat by" else wrap(part, room, break_on_hyphens=False)
    margins = [name, *[""] * len(found)]
    return [f"{margin:<{MARGIN}}{line}" for margin, line in zip(margins, found, strict=False)]


def _model(found: Mapping[str, Any]) -> str:
    """The model's name, and its size where somebody knows it."""
    size = found["parameters"]
    return found["model"] + ("" if size is None else f", {size:,} parameters")


def _data(found: Mapping[str, Any]) -> str:
    unit, number = behind(found, found["semantic"])
    groups = ""
    if unit == "groups" and number is not None:
        groups = f" of {plural(number, 'group')} (patients or the like)"
    taken, all_there = found["n_semantic"], found.get("eligible")
    some = f" of {all_there:,} eligible" if all_there is not None and taken < all_there else ""
    return (
        f"{found['data']}: {taken:,}{some} {found['semantic']} and "
        f"{found['n_random']:,} random pairs of {found['images']:,} images{groups}, split "
        f"{', '.join(found['split'])}, seed {found['seed']}"
    )


def _classes(names: list[str]) -> str:
    """How many there are and which, or the first of them."""
    more = ", ..." if len(names) > MOST_CLASSES else ""
    return f"{len(names):,}: {', '.join(names[:MOST_CLASSES])}{more}"


def _score(found: Mapping[str, Any], level: str) -> str:
    if found["stamp"] is None:
        return f"none; the formula gives {_n(found['raw'])}"
    how = f", by the {found['estimator']} estimator" if found["estimator"] else ""
    interval = f"{level} interval {_n(found['low'])} to {_n(found['high'])}"
    others = [name for name in OTHER if name != found["estimator"]]
    beside = [f"; {name}: {_n(found[key])}" for name in others if (key := f"{name}_stamp") in found]
    return f"{_n(found['stamp'])}, {interval}{how}{''.join(beside)}"


def _parts(found: Mapping[str, Any]) -> str:
    return f"SV {found['within']:.4g}, AV {found['total']:.4g}, eta squared {_n(found['eta2'])}"


def _temperature(found: Mapping[str, Any]) -> str:
    return f"{found['temperature']:.3f} fitted, {'used' if found['scaled'] else 'not used'}"


def _metric(found: Mapping[str, Any], level: str) -> str:
    name = METRICS[found["metric"]]
    if found["value"] is None:
        return f"{name} not known: {found['reason'] or 'no labels'}"
    left_out = f"; {found['reason']}" if found["reason"] else ""
    interval = ""
    if found["low"] is not None:
        interval = f", {level} interval {found['low']:.3f} to {found['high']:.3f}"
    least = ""
    if found["no_skill"] is not None:
        least = f"; {no_skill_name(found['metric'])} {found['no_skill']:.3f}"
    return f"{name} {found['value']:.3f}{interval}{least} ({found['n']:,} labeled images{left_out})"


def _targets(found: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {_n(value)}" for name, value in found.items())


def _standing(among: Mapping[str, Any] | None, level: str) -> str:
    if among is None:
        return ""
    how = "from joint draws on the same pairs" if among["joint"] else "the others held fixed"
    return (
        f"place {among['place']} beside {plural(among['models'], 'reference model')}, {level} "
        f"interval {among['low']} to {among['high']} ({how}); above {among['below']:.0%} of them"
    )


def _flags(raised: list[dict[str, str]]) -> list[str]:
    """Each flag: how grave, which, why, what it means, what to do."""
    return [
        f"{one['severity']}: {one['words']}. {one['reason']} {one['meaning']} {one['advice']}"
        for one in raised
    ] or ["none"]


def _n(value: float | None) -> str:
    return "none" if value is None else f"{value:.3f}"
