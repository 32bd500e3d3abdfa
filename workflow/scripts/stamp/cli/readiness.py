"""Whether images are ready for a study: what they yield, and what is missing, a line each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from stamp.cli.data_argument import Named, of_argument, of_dataset
from stamp.cli.findings import ERROR, NOTE, WARNING, Report, plural
from stamp.cli.inspection import look_at
from stamp.config.plan import Plan
from stamp.config.study import Study
from stamp.config.study_file import PairSettings
from stamp.core.errors import UserError
from stamp.data.pairs import consecutive, semantic_pairs
from stamp.data.views import COLUMNS, check_order, label_columns, labels, select
from stamp.scoring.stamp import FEW_UNITS
from stamp.stats.sample_size import SCORES, VARIATION, outlook, pairs_needed, scaled

SHOWN = 5  # classes that a line names one by one
PAIRS_SPLIT = "test"


def report_on(
    argument: str,
    settings: Plan,
    options: Mapping[str, Any],
    split: str | None,
    interval: tuple[float, float],
    every: bool,
    seed: int,
) -> Report:
    """All that can be said of a study, a data set, a table or a folder before a model is run.

    ``interval`` is the half-width wanted and its level; ``every`` image is opened, or a sample.
    """
    report = Report()
    try:
        if settings.has_study(argument):
            study = settings.read_study(argument)
            named = of_argument(study.source.dataset, settings, options, seed)
            _of_study(report, study, named, settings, interval, every, seed)
        else:
            named = of_argument(argument, settings, options, seed)
            _of_data(report, named, split, interval, every, seed)
    except UserError as mistake:
        report.found(ERROR, str(mistake))
    return report


def _of_study(
    report: Report,
    study: Study,
    named: Named,
    settings: Plan,
    interval: tuple[float, float],
    every: bool,
    seed: int,
) -> None:
    describe(report, named, named.index, study.classes)
    look_at(report, named.index, named, every, seed)
    rows, how, kind = study_rows(study, named.index), study.pairs, study.pairs.semantic
    columns = label_columns(study.task, study.classes)
    where = f"study '{study.name}' (split {', '.join(how.split)})"
    tell_pairs(report, pair_counts(rows, columns, how.order, how.same), where)
    if how.order == "order" and {kind, *how.also} != {"class"}:
        undated(report, rows)
    if how.random == "different_group":
        one_group(report, rows)
    pairs = min(how.n_pairs, eligible(rows, kind, how, columns))
    scores = Path(settings.results) / study.name / "scores"
    measured = measured_widths(scores, list(study.models))
    tell_interval(report, kind, pairs, units_of(rows, kind, how.order), *interval, measured)
    check_study(report, study, named.index)
    check_targets(report, study, settings, seed)


def _of_data(
    report: Report,
    named: Named,
    split: str | None,
    interval: tuple[float, float],
    every: bool,
    seed: int,
) -> None:
    classes = class_names(named.index)
    describe(report, named, named.index, classes)
    look_at(report, named.index, named, every, seed)
    splits = named.index["split"].drop_nulls().unique().to_list()
    chosen = split or (PAIRS_SPLIT if PAIRS_SPLIT in splits else None)
    rows = select(named.index, {"split": chosen}, named.name)
    columns = label_columns("multiclass" if "label" in rows.columns else "multilabel", classes)
    counts = pair_counts(rows, columns)
    tell_pairs(report, counts, f"split '{chosen}'" if chosen else "all of it")
    undated(report, rows)
    one_group(report, rows)
    temporal = counts["temporal, all consecutive"]
    kind = "temporal" if isinstance(temporal, int) and temporal else "class"
    pairs = temporal if kind == "temporal" else counts["class, two of a group"]
    tell_interval(report, kind, int(pairs), units_of(rows, kind), *interval)
    check_dataset(report, named.index, classes)


def describe(report: Report, named: Named, rows: pl.DataFrame, classes: Sequence[str]) -> None:
    """Images, groups, visits, splits, domains and classes of an index."""
    sizes = rows.group_by("group").len()["len"]
    several = int((sizes >= 2).sum())
    report.say(
        f"{named.name}: {plural(len(rows), 'image')} of {plural(len(sizes), 'group')}, "
        f"{_range(sizes)} a group; {plural(several, 'group')} {_have(several)} two or more"
    )
    for column in ("split", "domain"):
        counts = rows.filter(pl.col(column).is_not_null()).group_by(column).len().sort(column)
        texts = [f"{name} {number:,}" for name, number in counts.iter_rows()]
        report.say(f"{column}s: {', '.join(texts) or 'none'}")
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


def pair_counts(
    rows: pl.DataFrame, columns: Sequence[str], order: str = "order", same: Sequence[str] = ()
) -> dict[str, int | str]:
    """How many pairs of each kind some rows yield, or why none of it can be had.

    ``class`` are two images of a group, ``random`` two of different groups; both are all that there
    are, of which a study draws some.
    """
    found: dict[str, int | str] = {}
    kinds = {
        "temporal, all consecutive": ("temporal", "all_consecutive"),
        "temporal, one a group": ("temporal", "one_per_group"),
        "labeled, all consecutive": ("labeled", "all_consecutive"),
        "labeled, one a group": ("labeled", "one_per_group"),
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


def labeled_at_all(rows: pl.DataFrame, columns: Sequence[str]) -> bool:
    """Whether some image has a label in one of these columns."""
    known = [name for name in columns if name in rows.columns]
    return any(rows[name].is_not_null().any() for name in known)


def undated(report: Report, rows: pl.DataFrame) -> None:
    """Images without a visit among others that have one: they cost all temporal pairs."""
    missing = rows.filter(pl.col("order").is_null())
    if 0 < len(missing) < len(rows):
        report.found(
            WARNING,
            f"{len(missing):,} of {len(rows):,} images have no visit or date, first "
            f"'{missing['image'][0]}': there is no temporal pair until they have, or are left out",
        )


def one_group(report: Report, rows: pl.DataFrame) -> None:
    """Images of one group alone: there is nothing that random pairs could be drawn from."""
    if rows["group"].n_unique() < 2:
        report.found(ERROR, "no random pair: all images are of one group")


def tell_pairs(report: Report, counts: Mapping[str, int | str], where: str) -> None:
    """The table of pairs."""
    report.say("")
    report.say(f"pairs that {where} yields:")
    wide = max(len(name) for name in counts)
    for name, number in counts.items():
        text = f"{number:>13,}" if isinstance(number, int) else f"{'none':>13}: {number}"
        report.say(f"  {name:<{wide}}{text}")


def tell_interval(
    report: Report,
    kind: str,
    pairs: int,
    units: int,
    wanted: float,
    level: float,
    measured: Sequence[tuple[int, float]] = (),
) -> None:
    """Whether the pairs suffice for an interval, by measured scores where there are any.

    ``measured`` are the number of pairs and the half-width of scores that were computed already.
    """
    unit, alone = ("images", units // 2) if kind == "class" else ("groups", units)
    report.say("")
    report.say(f"interval: {100 * level:g} %, half-width {wanted:g} wanted, from {kind} pairs")
    if not pairs or not units:
        why = "no group has two images" if kind == "class" else "there is nothing to score"
        report.found(ERROR, f"no {kind} pair: {why}")
        return
    if measured:
        number, widest = max(measured, key=lambda one: scaled(one[0], one[1], wanted))
        narrow = min(width for _, width in measured)
        need = scaled(number, widest, wanted)
        report.say(
            f"  measured: {plural(len(measured), 'model')} with half-widths {narrow:.3f} to "
            f"{max(width for _, width in measured):.3f} at {number:,} pairs; the widest needs "
            f"about {need:,} pairs"
        )
        if pairs < need:
            report.found(
                WARNING,
                f"{pairs:,} {kind} pairs are there, about {need:,} are needed for a half-width of "
                f"{wanted:g} of every model scored so far",
            )
        return
    report.say(
        f"  nothing is scored yet, so it is assumed: as many random pairs, and squared distances "
        f"with a squared coefficient of variation of {VARIATION:g} (one normal output)"
    )
    for stamp in SCORES:
        need, have = pairs_needed(wanted, stamp, level), outlook(pairs, alone, stamp, level)
        report.say(
            f"  score {stamp:g}: {need:,} independent pairs needed; {pairs:,} pairs of {units:,} "
            f"{unit} give {have.best:.3f} if all are independent, {have.worst:.3f} if those of one "
            f"{unit[:-1]} say the same"
        )
    middle = SCORES[len(SCORES) // 2]
    need, have = pairs_needed(wanted, middle, level), outlook(pairs, alone, middle, level)
    if have.best > wanted:
        report.found(
            WARNING,
            f"{pairs:,} {kind} pairs are too few for a half-width of {wanted:g} at a score of "
            f"{middle:g}: {need:,} are needed, if they are independent",
        )
    elif have.worst > wanted:
        report.found(
            NOTE,
            f"{pairs:,} {kind} pairs suffice for a half-width of {wanted:g} at a score of "
            f"{middle:g} only as far as pairs of one {unit[:-1]} are independent: {units:,} {unit}",
        )
    if units < FEW_UNITS:
        report.found(
            NOTE,
            f"{plural(units, unit[:-1])} {_are(units)} fewer than {FEW_UNITS}: the interval is "
            "then the bootstrap's as it comes, up to 1.7 times as wide",
        )


def check_dataset(report: Report, rows: pl.DataFrame, classes: Sequence[str]) -> None:
    """What an index lacks for the studies that could be made of it."""
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
        nearly_labels(report, rows)
    crossing(report, rows)


def nearly_labels(report: Report, rows: pl.DataFrame) -> None:
    """Columns that are 0 or 1 in most rows but not in all, so that they are no classes."""
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
                f"'{first['value']}' of image '{first['image']}': as it is, it is no class; write "
                "0, 1 or nothing",
            )


def crossing(report: Report, rows: pl.DataFrame) -> None:
    """Groups with images in several splits, unless groups are classes."""
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


def study_rows(study: Study, index: pl.DataFrame) -> pl.DataFrame:
    """The source's rows that a study's pairs are drawn from."""
    where = f"study '{study.name}': pairs"
    return select(index, {**study.source_images, "split": study.pairs.split}, where)


def check_study(report: Report, study: Study, index: pl.DataFrame) -> None:
    """What a study asks of its source that the index does not have, an error each."""
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
    crossing(report, source)


def eligible(rows: pl.DataFrame, kind: str, pairs: PairSettings, columns: Sequence[str]) -> int:
    """How many pairs of a kind a study could draw."""
    if kind == "class":
        found = pair_counts(rows.with_columns(order=pl.lit(None, dtype=pl.Int32)), columns)
        return int(found["class, two of a group"])
    try:
        how = (pairs.mode, pairs.order, columns, pairs.same)
        return len(semantic_pairs(rows, kind, *how))
    except UserError:
        return 0


def units_of(rows: pl.DataFrame, kind: str, order: str = "order") -> int:
    """What the pairs of a kind are independent by: images, or groups with two or more of them."""
    sizes = rows.group_by("group").len()["len"]
    if kind == "class":
        return int(sizes.filter(sizes >= 2).sum())
    if order == "order":
        if rows["order"].is_null().any():
            return 0
        return consecutive(rows)["group_a"].n_unique()
    return int((sizes >= 2).sum())


def check_targets(report: Report, study: Study, settings: Plan, seed: int) -> None:
    """Whether each target is there and labeled; none at all is no mistake."""
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


def measured_widths(folder: Path, models: Sequence[str]) -> list[tuple[int, float]]:
    """The number of pairs and the half-width of the score of each model that has one."""
    found = []
    for file in (folder / f"{model}.parquet" for model in models):
        if not file.is_file():
            continue
        row = pl.read_parquet(file, columns=["n_semantic", "low", "high"]).row(0, named=True)
        if row["low"] is not None and row["high"] is not None:
            found.append((int(row["n_semantic"]), (row["high"] - row["low"]) / 2))
    return found


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
                f"'{split}': the rule 'chance' will set every model apart",
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


def _classes(rows: pl.DataFrame, classes: Sequence[str]) -> str:
    counts = dict(rows["label"].drop_nulls().value_counts().iter_rows())
    texts = [f"{name} {counts.get(number, 0):,}" for number, name in enumerate(classes)]
    shown = texts if len(texts) <= 12 else [*texts[:11], f"and {len(texts) - 11} more"]
    return ", ".join(shown) or "none"


def _names(names: Iterable[str]) -> str:
    known = list(names)
    return ", ".join(known[:SHOWN]) + (f" and {len(known) - SHOWN} more" if known[SHOWN:] else "")


def _have(number: int) -> str:
    return "has" if number == 1 else "have"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _range(sizes: pl.Series) -> str:
    known = sizes.to_list()
    low, high = min(known), max(known)
    return f"{low}" if low == high else f"{low} to {high}"
