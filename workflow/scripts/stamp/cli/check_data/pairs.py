"""How many pairs of each kind some images yield, and why there are none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from stamp.cli.check_data.labels import labeled_at_all
from stamp.cli.report_lines import ERROR, WARNING, Report, plural
from stamp.config.study_file import PairSettings
from stamp.core.errors import UserError
from stamp.data.pairs import consecutive, semantic_pairs


def pair_counts(
    rows: pl.DataFrame, columns: Sequence[str], order: str = "order", same: Sequence[str] = ()
) -> dict[str, int | str]:
    """How many pairs of each kind some rows yield, or why there are none.

    ``class`` are two images of a group, ``random`` two of different groups; both are all that there
    are, of which a study draws some.
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
        elif no_visit:
            found[name] = f"{plural(no_visit, 'image')} without a visit or date"
        elif kind != "temporal" and no_labels:
            found[name] = "no labels"
        else:
            try:
                found[name] = len(semantic_pairs(rows, kind, mode, order, columns, same))
            except UserError as mistake:
                found[name] = str(mistake)
    sizes = rows.group_by("group").len()["len"].cast(pl.Int64).to_numpy()
    found["class, two of a group"] = int((sizes * (sizes - 1) // 2).sum())
    found["random, different groups"] = int((len(rows) ** 2 - (sizes**2).sum()) // 2)
    return found


def check_dates(report: Report, rows: pl.DataFrame) -> None:
    """Warn of images without a visit among others that have one: no temporal pair can be made."""
    missing = rows.filter(pl.col("order").is_null())
    if 0 < len(missing) < len(rows):
        report.found(
            WARNING,
            f"{len(missing):,} of {len(rows):,} images have no visit or date, first "
            f"'{missing['image'][0]}': there is no temporal pair until they have, or are left out",
        )


def check_groups(report: Report, rows: pl.DataFrame) -> None:
    """Refuse images of a single group: random pairs need two groups."""
    if rows["group"].n_unique() < 2:
        report.found(ERROR, "no random pair: all images are of one group")


def tell_pairs(report: Report, counts: Mapping[str, int | str], where: str) -> None:
    """Say how many pairs of each kind there are."""
    report.say("")
    report.say(f"pairs that {where} yields:")
    wide = max(len(name) for name in counts)
    for name, number in counts.items():
        text = f"{number:>13,}" if isinstance(number, int) else f"{'none':>13}: {number}"
        report.say(f"  {name:<{wide}}{text}")


def eligible(rows: pl.DataFrame, kind: str, pairs: PairSettings, columns: Sequence[str]) -> int:
    """How many pairs of a kind a study could draw."""
    if kind == "class":
        found = pair_counts(rows.with_columns(order=pl.lit(None, dtype=pl.Int32)), columns)
        return int(found["class, two of a group"])
    try:
        return len(semantic_pairs(rows, kind, pairs.mode, pairs.order, columns, pairs.same))
    except UserError:
        return 0


def units_of(rows: pl.DataFrame, kind: str, order: str = "order") -> int:
    """How many units pairs of a kind are drawn from: images, or groups with two or more of them."""
    sizes = rows.group_by("group").len()["len"]
    if kind == "class":
        return int(sizes.filter(sizes >= 2).sum())
    if order == "order":
        if rows["order"].is_null().any():
            return 0
        return consecutive(rows)["group_a"].n_unique()
    return int((sizes >= 2).sum())
