"""Labels and splits of an index: what a study of it would lack."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from stamp.cli.terminal.report_lines import ERROR, NOTE, WARNING, Report, plural
from stamp.core.shown_text import why_refused
from stamp.data.views import COLUMNS, label_columns


def check_labels(report: Report, rows: pl.DataFrame, classes: Sequence[str]) -> None:
    """Warn of labels and splits that an index lacks for a study, refuse names that none takes."""
    for name in classes:
        if reason := why_refused(name):
            report.found(ERROR, f"class {name!r} {reason}")
    columns = label_columns("multiclass" if "label" in rows.columns else "multilabel", classes)
    if not labeled_at_all(rows, columns):
        report.found(
            WARNING,
            "no labels: there is no source metric, and no temperature can be fitted; a study needs "
            "labeled calibration images",
        )
    splits = rows["split"].drop_nulls().unique().to_list()
    if "calibration" not in splits:
        report.found(
            WARNING,
            "no split 'calibration': a study's calibration images are of another split than its "
            "pairs",
        )
    if "train" not in splits:
        report.found(NOTE, "no split 'train': models that the workflow trains need one")
    if "label" not in rows.columns:
        check_columns(report, rows)
    check_splits(report, rows)


def check_columns(report: Report, rows: pl.DataFrame) -> None:
    """Warn of columns that are 0 or 1 in most rows but not in all: they are not read as classes."""
    plain = {name: kind for name, kind in rows.schema.items() if not kind.is_nested()}
    others = {name: kind for name, kind in plain.items() if name not in (*COLUMNS, "class")}
    for name in [name for name, kind in others.items() if kind != pl.Int8]:
        known = rows.select("image", pl.col(name).cast(pl.String).alias("value")).drop_nulls()
        number = pl.col("value").cast(pl.Float64, strict=False)
        wrong = known.filter(~number.is_in([0.0, 1.0]).fill_null(False))
        if 0 < 2 * len(wrong) < len(known):
            first = wrong.row(0, named=True)
            report.found(
                WARNING,
                f"the column '{name}' is 0 or 1 in {len(known) - len(wrong):,} rows, but "
                f"'{first['value']}' of image '{first['image']}': it is not read as a class; write "
                "0, 1 or nothing",
            )


def check_splits(report: Report, rows: pl.DataFrame) -> None:
    """Warn of groups with images in several splits, unless groups are classes."""
    if "class" in rows.columns and rows["group"].eq_missing(rows["class"]).all():
        return
    several = (
        rows.drop_nulls("split")
        .group_by("group")
        .agg(pl.col("split").unique().sort())
        .filter(pl.col("split").list.len() > 1)
        .sort("group")
    )
    if len(several):
        report.found(
            WARNING,
            f"{plural(len(several), 'group')} in several splits, first '{several['group'][0]}' in "
            f"{' and '.join(several['split'][0])}: a model may have seen whom it is scored on",
        )


def labeled_at_all(rows: pl.DataFrame, columns: Sequence[str]) -> bool:
    """Whether some image has a label in one of these columns."""
    known = [name for name in columns if name in rows.columns]
    return any(rows[name].is_not_null().any() for name in known)
