"""What an index holds: images, groups, splits, domains and classes."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from stamp.cli.data_argument import Named
from stamp.cli.terminal.report_lines import WARNING, Report, plural
from stamp.data.views import COLUMNS


def describe(report: Report, named: Named, classes: Sequence[str]) -> None:
    """Say how many images, groups, splits, domains and classes an index has."""
    rows = named.index
    sizes = rows.group_by("group").len()["len"]
    several = int((sizes >= 2).sum())
    have = "has" if several == 1 else "have"
    report.facts |= {"images": len(rows), "groups": len(sizes), "classes": list(classes)}
    report.say(
        f"{named.name}: {plural(len(rows), 'image')} of {plural(len(sizes), 'group')}, "
        f"{_range(sizes)} per group; {plural(several, 'group')} {have} two or more"
    )
    for column in ("split", "domain"):
        counts = rows.filter(pl.col(column).is_not_null()).group_by(column).len().sort(column)
        texts = [f"{name} {number:,}" for name, number in counts.iter_rows()]
        report.say(f"{column}s: {', '.join(texts) or 'none'}")
        report.facts[f"{column}s"] = dict(counts.iter_rows())
        if empty := int(rows[column].is_null().sum()):
            report.found(WARNING, f"{plural(empty, 'image')} without a {column} are never used")
    if "label" in rows.columns:
        report.say(f"classes: {_classes(rows, classes)}")
    elif shown := [name for name in classes if name in rows.columns]:
        positives = [f"{name} {int((rows[name] == 1).sum()):,}" for name in shown]
        report.say(f"positives: {', '.join(positives)}")
    twice = rows.filter(pl.col("path").is_duplicated())
    if len(twice):
        shared = twice["path"][0]
        report.found(WARNING, f"{len(twice):,} rows share their file with another, first {shared}")


def class_names(rows: pl.DataFrame) -> list[str]:
    """The classes that an index itself knows: names of its labels, or columns of 0 and 1."""
    if "label" in rows.columns:
        if "class" in rows.columns:
            known = rows.select("label", "class").drop_nulls().unique().sort("label")
            if len(known):
                return known["class"].to_list()
        numbers = rows["label"].drop_nulls().to_list()
        return [str(number) for number in range(max(numbers) + 1)] if numbers else []
    others = [name for name in rows.columns if name not in COLUMNS]
    return [name for name in others if rows[name].dtype == pl.Int8]


def _classes(rows: pl.DataFrame, classes: Sequence[str]) -> str:
    counts = dict(rows["label"].drop_nulls().value_counts().iter_rows())
    texts = [f"{name} {counts.get(number, 0):,}" for number, name in enumerate(classes)]
    shown = texts if len(texts) <= 12 else [*texts[:11], f"and {len(texts) - 11} more"]
    return ", ".join(shown) or "none"


def _range(sizes: pl.Series) -> str:
    known = sizes.to_list()
    low, high = min(known), max(known)
    return f"{low}" if low == high else f"{low} to {high}"
