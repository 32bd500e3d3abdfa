"""What a study asks of its source and targets that the data sets do not have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl

from stamp.cli.check_data.labels import check_splits
from stamp.cli.check_data.pairs import eligible
from stamp.cli.data_argument import of_dataset
from stamp.cli.terminal.report_lines import ERROR, NOTE, WARNING, Report, plural
from stamp.config.plan import Plan
from stamp.config.study import Study
from stamp.core.errors import UserError
from stamp.data.views import check_order, label_columns, labels, select

SHOWN = 5  # classes that a line names one by one


def study_rows(study: Study, index: pl.DataFrame) -> pl.DataFrame:
    """The source's rows that a study's pairs are drawn from."""
    where = f"study '{study.name}': pairs"
    return select(index, {**study.source_images, "split": study.pairs.split}, where)


def check_source(report: Report, study: Study, index: pl.DataFrame) -> None:
    """One error for each thing that a study asks of its source and the index does not have."""
    source = select(index, {**study.source_images, "split": None}, f"study '{study.name}': source")
    rows, pairs = study_rows(study, index), study.pairs
    columns = label_columns(study.task, study.classes)
    wanted = {pairs.semantic: pairs.max_pairs, **pairs.also}
    for kind, number in wanted.items():
        have = eligible(rows, kind, pairs, columns)
        if have < number:
            report.found(
                ERROR, f"{have:,} {kind} pairs are eligible, the study asks for {number:,}"
            )
    where = f"study '{study.name}': source"
    try:
        truth = labels(source, study.task, study.classes, where)
        if study.task == "multiclass" and "class" in source.columns:
            check_order(source, study.classes, where)
    except UserError as mistake:
        report.found(ERROR, str(mistake))
        return
    _check_calibration(report, study, source)
    _check_metric(report, study, rows if study.id is None else _split(source, study.id.split))
    trainers = {model.trainer for model in study.models.values() if model.trainer}
    for part in ("train", "val"):
        split = getattr(study.source, part)
        if split and trainers and not len(_split(source, split)):
            report.found(
                ERROR,
                f"no image of split '{split}', which source.{part} names and trained models need",
            )
    if np.isnan(truth).all():
        report.found(ERROR, "no source image has a label")
    check_splits(report, source)


def check_targets(report: Report, study: Study, settings: Plan, seed: int) -> None:
    """Whether each target is there and labeled; a study without targets is allowed."""
    if not study.targets:
        report.found(NOTE, "no targets: the study ends in a ranked leaderboard")
    for key, target in study.targets.items():
        where = f"study '{study.name}': target '{key}'"
        for name in target.dataset:
            try:
                index = of_dataset(settings.datasets[name], settings, seed).index
                rows = select(index, study.view(key), where)
                truth = labels(rows, study.task, study.classes_of(key), where)
            except UserError as mistake:
                report.found(ERROR, str(mistake))
                continue
            if np.isnan(truth).all():
                report.found(ERROR, f"{where}: no image of data set '{name}' has a label")


def _check_calibration(report: Report, study: Study, source: pl.DataFrame) -> None:
    split, count = study.calibration.split, study.calibration.n_images
    rows = _split(source, split)
    if len(rows) < count:
        report.found(
            ERROR,
            f"{plural(len(rows), 'calibration image')} of split '{split}', the study asks for "
            f"{count:,}",
        )
        return
    truth = labels(rows, study.task, study.classes, "calibration")
    if np.isnan(truth).all():
        report.found(ERROR, f"no image of the calibration split '{split}' has a label")
    elif study.task == "multilabel" and study.calibration.exclude == "chance":
        minimum = study.statistics.minimum
        if len(_short(study.classes, truth, minimum)) == len(study.classes):
            report.found(
                WARNING,
                f"no class has {minimum} positives and negatives in the calibration split "
                f"'{split}': the rule 'chance' will exclude every model",
            )


def _check_metric(report: Report, study: Study, rows: pl.DataFrame) -> None:
    """Classes that can't be part of the source metric."""
    minimum = study.statistics.minimum
    truth = labels(rows, study.task, study.classes, "source metric")
    if not len(truth) or np.isnan(truth).all():
        report.found(WARNING, "no labeled image for the source metric: the leaderboard has none")
        return
    if study.task == "multiclass":
        counts = np.bincount(truth[~np.isnan(truth)].astype(int), minlength=len(study.classes))
        if empty := [name for name, n in zip(study.classes, counts, strict=True) if not n]:
            report.found(WARNING, f"no image of {_names(empty)} among the pairs' images")
        return
    if short := _short(study.classes, truth, minimum):
        report.found(
            WARNING,
            f"{_names(short)} have fewer than {minimum} positives or negatives and are left out of "
            "the source metric",
        )


def _short(classes: Sequence[str], truth: np.ndarray, minimum: int) -> list[str]:
    """The classes with too few positives or negatives for an AUROC."""
    return [
        name
        for name, column in zip(classes, truth.T, strict=True)
        if min((column == 1).sum(), (column == 0).sum()) < minimum
    ]


def _split(rows: pl.DataFrame, split: str) -> pl.DataFrame:
    return rows.filter(pl.col("split") == split)


def _names(names: Iterable[str]) -> str:
    known = list(names)
    return ", ".join(known[:SHOWN]) + (f" and {len(known) - SHOWN} more" if known[SHOWN:] else "")
