"""How many pairs of each kind some images yield, and why there are none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from stamp.cli.check_data.labels import labeled_at_all
from stamp.cli.terminal.report_lines import ERROR, NOTE, WARNING, Report
from stamp.config.study_file import PairSettings
from stamp.core.errors import UserError
from stamp.data.pairs import (
    by_class,
    class_pair_count,
    consecutive,
    groups_are_classes,
    semantic_pairs,
)

CLASS = "class, same label"
# Usual names of a column that says how a picture was taken.
VIEWS = ("view", "position", "view_position", "viewposition", "projection", "laterality")


def pair_counts(
    rows: pl.DataFrame, columns: Sequence[str], order: str = "order", same: Sequence[str] = ()
) -> dict[str, int | str]:
    """How many pairs of each kind some rows yield, or why there are none.

    ``class`` are two images of one class and of different groups (see ``stamp.data.pairs``),
    ``random`` two of different groups; both are all that there are, of which a study draws some.
    """
    found: dict[str, int | str] = {}
    kinds = {
        "temporal, all consecutive": ("temporal", "all_consecutive"),
        "temporal, one per group": ("temporal", "one_per_group"),
        "labeled, all consecutive": ("labeled", "all_consecutive"),
        "labeled, one per group": ("labeled", "one_per_group"),
        "changed, all consecutive": ("changed", "all_consecutive"),
    }
    no_labels = not set(columns) <= set(rows.columns) or not labeled_at_all(rows, columns)
    no_visit = int(rows["order"].is_null().sum()) if order == "order" else 0
    for name, (kind, mode) in kinds.items():
        if no_visit == len(rows):
            found[name] = "no visit or date"
        elif kind != "temporal" and no_labels:
            found[name] = "no labels"
        else:
            try:
                found[name] = len(semantic_pairs(rows, kind, mode, order, columns, same))
            except UserError as mistake:
                found[name] = str(mistake)
    sizes = rows.group_by("group").len()["len"].cast(pl.Int64).to_numpy()
    found[CLASS] = "no labels" if no_labels else class_pair_count(rows, columns)
    found["random, different groups"] = int((len(rows) ** 2 - (sizes**2).sum()) // 2)
    return found


def check_dates(report: Report, rows: pl.DataFrame) -> None:
    """Tell of images without a visit, of pairs within one visit, and of pairs of two views."""
    missing = rows.filter(pl.col("order").is_null())
    if len(missing) == len(rows):
        return
    if len(missing):
        report.found(
            WARNING,
            f"{len(missing):,} of {len(rows):,} images have no visit or date, first "
            f"'{missing['image'][0]}': they are in no temporal pair",
        )
    pairs = consecutive(rows)
    if same := _agreeing(rows, "order"):
        report.found(
            NOTE,
            f"{same:,} of {len(pairs):,} consecutive pairs are of one visit or day: an order with "
            "a time, or one image per visit, keeps them apart",
        )
    for name in (name for name in rows.columns if name.lower() in VIEWS):
        if other := len(pairs) - _agreeing(rows, name):
            report.found(
                NOTE,
                f"{other:,} of {len(pairs):,} consecutive pairs change the view (column '{name}'): "
                f"`same: [{name}]` of a study's pairs leaves them out",
            )


def _agreeing(rows: pl.DataFrame, column: str) -> int:
    """How many consecutive pairs have one value in a column at both ends."""
    return len(semantic_pairs(rows, "temporal", "all_consecutive", "order", [], [column]))


def check_groups(report: Report, rows: pl.DataFrame) -> None:
    """Refuse images of a single group: random pairs need two groups."""
    if rows["group"].n_unique() < 2:
        report.found(ERROR, "no random pair: all images are of one group")


def tell_pairs(report: Report, counts: Mapping[str, int | str], where: str) -> None:
    """Say how many pairs of each kind there are."""
    report.say("")
    report.say(f"pairs that {where} yields:")
    wide = max(len(name) for name in counts)
    report.facts["pairs"] = {name: n if isinstance(n, int) else 0 for name, n in counts.items()}
    for name, number in counts.items():
        text = f"{number:>13,}" if isinstance(number, int) else f"{'none':>13}: {number}"
        report.say(f"  {name:<{wide}}{text}")


def tell_kind(report: Report, kind: str, unit: str, why: str) -> None:
    """Say which pairs are used and why, and what an interval resamples."""
    what = {
        "temporal": "consecutive images of one group",
        "labeled": "consecutive images of one group with identical labels",
        "changed": "consecutive images of one group with different labels",
        "class": "two images of one class" + (" and of different groups" * (unit == "group")),
    }
    report.say(f"used: {kind} pairs ({what[kind]}), {why}; intervals resample {unit}s")


def eligible(rows: pl.DataFrame, kind: str, pairs: PairSettings, columns: Sequence[str]) -> int:
    """How many pairs of a kind a study could draw."""
    if kind == "class":
        known = labeled_at_all(rows, columns) and set(columns) <= set(rows.columns)
        return class_pair_count(rows, columns) if known else 0
    try:
        return len(semantic_pairs(rows, kind, pairs.mode, pairs.order, columns, pairs.same))
    except UserError:
        return 0


def unit_of(rows: pl.DataFrame, kind: str, columns: Sequence[str]) -> str:
    """What the bootstrap of a score of these pairs resamples: groups, or images."""
    return "image" if kind == "class" and groups_are_classes(rows, columns) else "group"


def units_of(rows: pl.DataFrame, kind: str, columns: Sequence[str], order: str = "order") -> int:
    """How many units pairs of a kind are drawn from: groups that have one, or images."""
    if kind == "class":
        if not columns or not set(columns) <= set(rows.columns):
            return 0
        several = pl.col("unit").n_unique().over("group") >= 2
        return by_class(rows, columns).filter(several)["unit"].n_unique()
    if order == "order":
        if rows["order"].is_null().all():
            return 0
        return consecutive(rows)["group_a"].n_unique()
    sizes = rows.group_by("group").len()["len"]
    return int((sizes >= 2).sum())
