"""Whether images are ready for a study: what they yield and what is missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stamp.cli.check_data import description, images, interval, labels, pairs, studies
from stamp.cli.data_argument import Named, of_argument
from stamp.cli.terminal.report_lines import ERROR, Report
from stamp.config.plan import Plan
from stamp.config.study import Study
from stamp.core.errors import UserError
from stamp.data.pairs import default_kind
from stamp.data.views import label_columns, select

PAIRS_SPLIT = "test"


@dataclass(frozen=True, slots=True)
class Request:
    """How closely images are checked, as the command line asks."""

    options: Mapping[str, Any]
    split: str | None
    interval: interval.Wanted
    every_image: bool  # open all of them, or a sample
    seed: int


def report_on(argument: str, settings: Plan, request: Request) -> Report:
    """All that can be said of a study, a data set, a table or a folder before a model is run."""
    report = Report()
    try:
        if settings.has_study(argument):
            study = settings.read_study(argument, may_lack_models=True)
            _check_study(report, study, settings, request)
        else:
            named = of_argument(argument, settings, request.options, request.seed)
            _check_data(report, named, request)
    except UserError as mistake:
        report.found(ERROR, str(mistake))
    return report


def _check_study(report: Report, study: Study, settings: Plan, request: Request) -> None:
    named = of_argument(study.source.dataset, settings, request.options, request.seed)
    description.describe(report, named, study.classes)
    if study.models and all(model.precomputed for model in study.models.values()):
        report.say("images: none is needed, every model is a file of outputs")
    else:
        images.check_images(report, named, request.every_image, request.seed)
    rows, design = studies.study_rows(study, named.index), study.pairs
    kind, columns = design.semantic, label_columns(study.task, study.classes)
    where = f"study '{study.name}' (split {', '.join(design.split)})"
    counts = pairs.pair_counts(rows, columns, design.order, design.same)
    pairs.tell_pairs(report, counts, where)
    if design.order == "order" and {kind, *design.also} != {"class"}:
        pairs.check_dates(report, rows)
    if design.random == "different_group":
        pairs.check_groups(report, rows)
    drawn = design.max_pairs if study.estimator == "exact" else design.n_pairs
    available = interval.Available(
        kind=kind,
        pairs=min(drawn, pairs.eligible(rows, kind, design, columns)),
        units=pairs.units_of(rows, kind, columns, design.order),
        unit=pairs.unit_of(rows, kind, columns),
        estimator=study.estimator,
    )
    why = f"as the study says, by the {study.estimator} estimator"
    pairs.tell_kind(report, kind, available.unit, why)
    scores = Path(settings.results) / study.name / "scores"
    measured = interval.measured_widths(scores, list(study.models), study.estimator)
    interval.check_interval(report, available, request.interval, measured)
    studies.check_source(report, study, named.index)
    studies.check_targets(report, study, settings, request.seed)


def _check_data(report: Report, named: Named, request: Request) -> None:
    classes = description.class_names(named.index)
    description.describe(report, named, classes)
    images.check_images(report, named, request.every_image, request.seed)
    splits = named.index["split"].drop_nulls().unique().to_list()
    split = request.split or (PAIRS_SPLIT if PAIRS_SPLIT in splits else None)
    rows = select(named.index, {"split": split}, named.name)
    task = "multiclass" if "label" in rows.columns else "multilabel"
    columns = label_columns(task, classes)
    counts = pairs.pair_counts(rows, columns)
    pairs.tell_pairs(report, counts, f"split '{split}'" if split else "all of it")
    pairs.check_dates(report, rows)
    pairs.check_groups(report, rows)
    kind = default_kind(rows, task, classes)
    number = counts["temporal, all consecutive" if kind == "temporal" else pairs.CLASS]
    available = interval.Available(
        kind=kind,
        pairs=number if isinstance(number, int) else 0,
        units=pairs.units_of(rows, kind, columns),
        unit=pairs.unit_of(rows, kind, columns),
    )
    why = "since groups have visits" if kind == "temporal" else "since no group has visits"
    pairs.tell_kind(report, kind, available.unit, f"{why}, unless a study says another kind")
    interval.check_interval(report, available, request.interval)
    labels.check_labels(report, named.index, classes)
