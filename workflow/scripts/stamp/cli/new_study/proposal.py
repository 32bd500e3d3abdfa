"""A study proposed for a user's images: what the index allows, each choice with its reason."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from stamp.cli.check_data import pairs as counted
from stamp.cli.check_data.description import class_names, describe
from stamp.cli.data_argument import of_path
from stamp.cli.new_study.data_found import Found, look
from stamp.cli.new_study.pixels_found import Pixels, pixels_of
from stamp.cli.new_study.splits_found import Splits, splits_of
from stamp.cli.terminal.report_lines import Report, plural
from stamp.config import view_names
from stamp.config.plan import Plan, check_study_name, read_project
from stamp.core.errors import UserError
from stamp.data.adapters import folder
from stamp.data.pairs import default_kind
from stamp.data.views import label_columns, select

MOST_PAIRS = 5000
MOST_CALIBRATION = 2000
CONSECUTIVE = "{}, all consecutive"


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the command line says."""

    name: str
    data: str
    targets: Sequence[str]
    options: Mapping[str, Any]
    title: str
    size: int | None = None
    channels: int | None = None


@dataclass(frozen=True, slots=True)
class Pairs:
    """The kind of pairs that is scored, how many, why, and what other kinds there are."""

    kind: str
    number: int
    why: str
    also: dict[str, int]


@dataclass(frozen=True, slots=True)
class Proposal:
    """All that the files of a new study say, and what is told beside them."""

    name: str
    title: str
    plan: Plan
    source: Found
    targets: dict[str, Found]
    splits: Splits
    pairs: Pairs
    calibration: int
    pixels: Pixels
    told: list[str]


def propose(wishes: Wishes) -> Proposal:
    """A study of the images that the user names; a mistake is raised before anything is written."""
    plan = read_project()
    check_study_name(wishes.name, "new-study")
    for place, what in ((plan.folders.studies, "study"), (plan.folders.zoo, "zoo")):
        if (Path(place) / f"{wishes.name}.yaml").exists():
            raise UserError(f"{place}/{wishes.name}.yaml: this {what} is there already")
    source = look(wishes.name, wishes.data, wishes.options, plan)
    splits = splits_of(source.index, source.named.name)
    report = Report()
    describe(report, source.named, source.classes)
    report.say(f"task: {source.task}, {len(source.classes)} classes")
    pairs = _pairs(report, source, splits)
    report.say(f"calibration: split '{splits.calibration}', {splits.why_calibration}")
    pixels = pixels_of(source.index["path"].to_list(), wishes.size, wishes.channels)
    channels = plural(pixels.channels, "channel")
    report.say(f"pixels: {pixels.size} x {pixels.size}, {channels}, {pixels.why}")
    targets: dict[str, Found] = {}
    for argument in wishes.targets:
        key = target_key(argument, [wishes.name, *targets])
        targets[key] = _target(key, argument, wishes.options, source, plan)
        describe(report, targets[key].named, source.classes)
    held = int((source.index["split"] == splits.calibration).sum())
    told = [*report.lines, *(f"{level}: {line}" for level, line in report.findings)]
    return Proposal(
        name=wishes.name,
        title=wishes.title,
        plan=plan,
        source=source,
        targets=targets,
        splits=splits,
        pairs=pairs,
        calibration=min(MOST_CALIBRATION, held),
        pixels=pixels,
        told=told,
    )


def target_key(argument: str, taken: Sequence[str]) -> str:
    """A target's name, from its folder or table: `mine/north/table.csv` is `north`."""
    path = Path(argument)
    plain = path.parent.name if path.is_file() and path.stem == "table" else path.stem
    key = re.sub("[^a-z0-9_-]+", "-", plain.lower()).strip("-_") or "target"
    if key in (*view_names.RESERVED, *taken):
        key = f"{key}-target"
    number = 2
    while key in taken:
        key, number = f"{key.rstrip('0123456789')}{number}", number + 1
    return key


def _pairs(report: Report, source: Found, splits: Splits) -> Pairs:
    """The kind of pairs that the index allows, as `check-data` counts them."""
    rows = select(source.index, {"split": splits.pairs}, source.named.name)
    columns = label_columns(source.task, source.classes)
    counts = counted.pair_counts(rows, columns)
    counted.tell_pairs(report, counts, f"split '{splits.pairs}'")
    counted.check_dates(report, rows)
    numbers = {name: count if isinstance(count, int) else 0 for name, count in counts.items()}
    kind, why = default_kind(rows, source.task, source.classes), "since groups have visits"
    number = numbers[CONSECUTIVE.format("temporal")]
    if kind == "class" or number < 2:
        kind, why = "class", "since no group has two visits"
        # the last pairs of a class are drawn slowly: half of them leave the small classes some
        number = min(numbers[counted.CLASS], max(2, numbers[counted.CLASS] // 2))
    if number < 2:
        raise UserError(
            f"{source.named.name}: split '{splits.pairs}' has no two pairs: give visits (--option "
            "order=COLUMN and group=COLUMN), or two labeled images of a class"
        )
    counted.tell_kind(report, kind, counted.unit_of(rows, kind, columns), why)
    also = {one: numbers[CONSECUTIVE.format(one)] for one in ("labeled", "changed")}
    also = {one: n for one, n in also.items() if kind == "temporal" and n >= 2}
    return Pairs(kind, min(MOST_PAIRS, number), why, also)


def _target(
    key: str, argument: str, options: Mapping[str, Any], source: Found, plan: Plan
) -> Found:
    """A target's images, labeled for classes of the source."""
    own, path = dict(options), Path(argument)
    if argument in plan.datasets:
        found = look(key, argument, {}, plan)
    elif path.is_dir():
        own["classes"] = source.classes
        known = {name: value for name, value in own.items() if name in folder.OPTIONS}
        found = look(key, argument, known, plan)
    elif source.task == "multiclass":
        if source.entry and "label" in source.entry["options"]:
            own.setdefault("label", source.entry["options"]["label"])
        found = look(key, argument, {**own, "classes": source.classes}, plan)
    else:
        there = class_names(of_path(path, own, plan.seed).index) if path.is_file() else []
        if path.is_file() and not set(there) & set(source.classes):
            raise UserError(f"{argument}: labels of none of {', '.join(source.classes)} in it")
        if isinstance(own.get("labels"), list) or set(there) != set(source.classes):
            own["labels"] = {name: name if name in there else None for name in source.classes}
        found = look(key, argument, own, plan)
    if found.task != source.task:
        raise UserError(f"{argument}: is {found.task}, but the source is {source.task}")
    return found


def labeled_classes(target: Found, source: Found) -> list[str]:
    """The source's classes that a multilabel target is labeled for."""
    known = [name for name in source.classes if name in target.index.columns]
    return [name for name in known if target.index[name].is_not_null().any()]


def named_split(target: Found) -> str | None:
    """The split `test` of a target that has splits of its own; drawn ones are no splits of it."""
    drawn = target.entry is not None and "splits" in target.entry["options"]
    values = target.index["split"].drop_nulls().unique().to_list()
    return "test" if not drawn and "test" in values and len(values) > 1 else None


def domains(target: Found) -> list[str]:
    """The domains of some images."""
    return target.index.select(pl.col("domain").drop_nulls().unique().sort())["domain"].to_list()
