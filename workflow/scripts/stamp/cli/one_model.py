"""One model on one data set, without Snakemake: the same steps, functions and numbers as its rules.

Pairs, pool, pixels, forward passes, temperature, score, source metric. What is written on the way
lies in a temporary folder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl

from stamp.cli.check_data.pairs import eligible
from stamp.cli.data_argument import Named
from stamp.cli.trained_on import TrainedOn, meeting
from stamp.config.documents import read_yaml
from stamp.config.precomputed import file_of, ids_file
from stamp.config.preprocessing import Preprocessing, merged
from stamp.config.registries.model_sources import SOURCES
from stamp.config.study import Study
from stamp.config.study_file import (
    CalibrationSettings,
    PairSettings,
    SourceSettings,
    StatisticsSettings,
)
from stamp.config.zoo import check_load, filled, weight_files
from stamp.core.artifacts import array_metadata
from stamp.core.errors import UserError, suggest
from stamp.core.file_digest import sha256_of
from stamp.data.pairs import study_pairs
from stamp.data.source_view import SourceViewSettings, source_view
from stamp.data.views import keep, label_columns, select
from stamp.inference.outputs import Outputs, combined, read_outputs
from stamp.report.scoreboard import Declared, model_row
from stamp.scoring.calibrate import ExclusionThresholds, calibrate
from stamp.scoring.evaluate import EvaluationSettings, evaluate_view
from stamp.scoring.score import ScoreSettings, score_table

MOST_PAIRS, MOST_CALIBRATION = 2000, 500


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a model is run: seed, weights, device, and whether it may be the user's code."""

    seed: int
    weights: Path | None = None
    device: str = "cpu"
    threads: int = 1
    allow_code: bool = False


@dataclass(frozen=True, slots=True)
class Candidate:
    """The model that is looked at: its name, its ``load`` block, what it was trained on."""

    key: str
    load: dict[str, Any]
    trained_on: TrainedOn = field(default_factory=TrainedOn)


@dataclass(frozen=True, slots=True)
class Audit:
    """What came of it: a row of the scoreboard, the scores, the evaluation, pairs and draws."""

    row: dict[str, Any]
    scores: pl.DataFrame
    evaluation: pl.DataFrame
    pairs: pl.DataFrame
    draws: np.ndarray
    seed: int
    metadata: Mapping[str, str] = field(default_factory=dict)  # of the outputs
    targets: Mapping[str, float] = field(default_factory=dict)  # outcomes, where there are any
    eligible: int | None = None  # semantic pairs that could have been drawn


@dataclass(frozen=True, slots=True)
class Passed:
    """A model's outputs on each view, and the metadata of those on the source."""

    views: dict[str, Outputs]
    metadata: dict[str, str]


def own_study(
    named: Named,
    task: str,
    classes: Sequence[str],
    pairs: Mapping[str, Any],
    calibration: Mapping[str, Any],
    statistics: Mapping[str, Any],
) -> Study:
    """A study of one data set: as many pairs and calibration images as there are, up to a limit.

    ``pairs`` has ``split`` (a list) and ``semantic``, and may have ``max_pairs``; ``calibration``
    has ``split`` and may have ``n_images``.
    """
    drawn = PairSettings(split=pairs["split"], semantic=pairs["semantic"], max_pairs=MOST_PAIRS)
    rows = select(named.index, {"split": drawn.split}, f"{named.name}: pairs")
    number = pairs.get("max_pairs")
    if number is None:
        have = eligible(rows, drawn.semantic, drawn, label_columns(task, classes))
        if not have:
            raise UserError(
                f"{named.name}: no {drawn.semantic} pair in split "
                f"{', '.join(drawn.split)}; check-data says what there is"
            )
        number = min(MOST_PAIRS, have)
    held_out = dict(calibration)
    if "n_images" not in held_out:
        there = select(named.index, {"split": held_out["split"]}, f"{named.name}: calibration")
        held_out["n_images"] = min(MOST_CALIBRATION, len(there))
    return Study(
        name=named.name,
        task=task,
        classes=list(classes),
        source=SourceSettings(dataset=named.name),
        pairs=drawn.model_copy(update={"max_pairs": number, "n_pairs": number}),
        calibration=CalibrationSettings(**held_out),
        statistics=StatisticsSettings(**statistics),
    )


def score_settings(study: Study, seed: int) -> ScoreSettings:
    """How a study scores a model."""
    return ScoreSettings(
        task=study.task,
        classes=study.classes,
        semantic=study.pairs.semantic,
        random=study.pairs.random,
        number=study.pairs.n_pairs,
        scale=study.calibration.scale,
        resamples=study.statistics.resamples,
        level=study.statistics.level,
        seed=seed,
        pool=study.pairs.pool,
        estimator=study.estimator,
    )


def read_candidate(file: Path, key: str | None) -> Candidate:
    """The model of a YAML file: a ``load`` block, a zoo's entry, or one model of a zoo's file."""
    document = read_yaml(file, "model's file")
    if not isinstance(document, dict) or not document:
        raise UserError(f"{file}: expected a load block, or a zoo's file and --model")
    if "source" in document:
        return Candidate(key or file.stem, checked(document, str(file)))
    if "load" not in document:
        if key is None and len(document) > 1:
            raise UserError(f"{file}: has several models: choose one by --model")
        name = key or str(next(iter(document)))
        if name not in document:
            raise UserError(f"{file}: unknown model '{name}': {suggest(name, document)}")
        key, document = name, document[name]
    block = document.get("load") if isinstance(document, dict) else None
    if not isinstance(block, dict):
        raise UserError(f"{file}: no load block")
    name, told = key or file.stem, document.get("trained_on")
    seen = TrainedOn(None if told is None else tuple(told))
    return Candidate(name, checked(block, f"{file}: {name}"), seen)


def checked(block: Mapping[str, Any], where: str) -> dict[str, Any]:
    """A ``load`` block that its source takes."""
    check_load(block, f"{where}: load")
    return dict(block)


def weights_file(candidate: Candidate, given: Path | None) -> Path | None:
    """The weights of a model: those that are given, its block's file, or none (the hub's)."""
    files = weight_files(candidate.load)
    named = files.get("file") or files.get("checkpoint.file")
    found = given or (Path(named) if named else None)
    trained = SOURCES[candidate.load["source"]].trained and "checkpoint" not in candidate.load
    if trained and given is None:
        raise UserError(
            f"model '{candidate.key}' is one that the workflow trains: give its weights by --file, "
            f"such as results/<study>/trained/{candidate.key}.safetensors"
        )
    if found is not None and not found.is_file():
        raise UserError(f"model '{candidate.key}': no such file '{found}'")
    return found


def audit(named: Named, candidate: Candidate, study: Study, run: RunOptions) -> Audit:
    """Score a model: the numbers are those of the workflow for the same study and seed."""
    key, task, classes = candidate.key, study.task, study.classes
    pairs, views = source_views(named, study, run.seed)
    load = filled(candidate.load, task, run.allow_code, f"model '{key}'")
    if SOURCES[load["source"]].precomputed:
        passed = brought(views, load, classes, task, key)
    else:
        pixels = merged(study.preprocessing, load.get("preprocessing", {}))
        model = Candidate(key, {**load, "preprocessing": pixels.settings})
        passed = forwarded(views, model, classes, named, run)
    outputs = passed.views
    minimum, at = study.statistics.minimum, f"'{study.name}': calibration"
    thresholds = ExclusionThresholds(**study.calibration.thresholds)
    record = calibrate(
        outputs["source"].only("calibration"), task, classes, thresholds, minimum, at
    )
    columns = label_columns(task, classes)
    met = meeting(candidate.trained_on, named.index, pairs, study.pairs.semantic, columns)
    settings = score_settings(study, run.seed)
    table, headline = score_table(
        outputs["source"], pairs, settings, record["value"], key, met.leaks
    )
    nothing = pl.DataFrame(schema={"model": pl.String})
    evaluation = source_metric(list(outputs.values()), study)
    declared = Declared(study.calibration.exclude, study.statistics.level, trained_on=met.told)
    return Audit(
        row=model_row(table, record, nothing, evaluation, declared),
        scores=table,
        evaluation=evaluation,
        pairs=pairs,
        draws=headline.draws,
        seed=run.seed,
        metadata=passed.metadata,
        eligible=eligible_pairs(named.index, study),
    )


def eligible_pairs(index: pl.DataFrame, study: Study) -> int:
    """How many pairs of a study's headline kind its source has, drawn or not."""
    chosen = {**study.source_images, "split": study.pairs.split}
    rows = select(index, chosen, f"'{study.name}': pairs")
    columns = label_columns(study.task, study.classes)
    return eligible(rows, study.pairs.semantic, study.pairs, columns)


def source_views(
    named: Named, study: Study, seed: int
) -> tuple[pl.DataFrame, dict[str, pl.DataFrame]]:
    """The pairs of a study, and the views of the source that its rules would make."""
    where, images = f"'{study.name}'", study.source_images
    task, classes = study.task, study.classes
    rows = select(named.index, {**images, "split": study.pairs.split}, f"{where}: pairs")
    pairs = study_pairs(rows, study.pairs.settings, task, classes, seed, f"{where}: pairs")
    held_out = study.calibration
    how = SourceViewSettings(images, held_out.split, held_out.n_images, task, classes, seed)
    source = source_view(named.index, pairs, how, where)
    views = {"source": source}
    if study.id:
        known = keep(named.index, task, classes, f"{where}: view 'id'")
        labeled = select(known, {**images, "split": study.id.split}, f"{where}: view 'id'")
        views["id"] = labeled.filter(~pl.col("image").is_in(source["image"].implode()))
    return pairs, views


def brought(
    views: Mapping[str, pl.DataFrame],
    load: Mapping[str, Any],
    classes: Sequence[str],
    task: str,
    key: str,
) -> Passed:
    """The outputs that a file gives for the images of each view: nothing is run."""
    from stamp.models.loaders.precomputed import logits_of, metadata_of

    found = {}
    for view, rows in views.items():
        if rows.is_empty():
            continue
        try:
            logits = logits_of(load, view, rows["image"].to_list(), classes, task)
        except UserError as mistake:
            raise UserError(f"model '{key}': {mistake}") from None
        found[view] = Outputs(rows, logits, load.get("parameters"))
    path = file_of(load, "source")
    digests = [sha256_of(file) for file in (path, ids_file(path)) if file is not None]
    about = metadata_of(key, "source", load, views["source"]["image"].to_list(), digests)
    return Passed(found, {name: str(value) for name, value in about.items()})


def forwarded(
    views: Mapping[str, pl.DataFrame],
    candidate: Candidate,
    classes: Sequence[str],
    named: Named,
    run: RunOptions,
) -> Passed:
    """The model's logits on each view, through a pixel cache and a file as in the workflow."""
    from stamp.core.artifacts import write_table
    from stamp.images.pixel_cache import PixelCache
    from stamp.images.pixels import ImageFiles, write_cache
    from stamp.inference.logits import Execution, extract_logits, metadata_of
    from stamp.models.loaders.registry import load_named

    key, pixels = candidate.key, Preprocessing(**candidate.load["preprocessing"])
    found: dict[str, Outputs] = {}
    about: dict[str, str] = {}
    loaded = load_named(key, candidate.load, classes, run.weights)
    with TemporaryDirectory(prefix="stamp-") as folder:
        for view, rows in views.items():
            if rows.is_empty():
                continue
            at = Path(folder) / view
            cache, record, logits = (at.with_suffix(end) for end in (".npy", ".json", ".st"))
            ids, table = rows["image"].to_list(), at.with_suffix(".parquet")
            what = f"{named.name}: view '{view}'"
            images = ImageFiles(ids, rows["path"].to_list(), what, named.border)
            write_cache(cache, record, images, pixels, 4)
            metadata = metadata_of(key, view, candidate.load)
            opened = PixelCache(cache, record, ids)
            how = Execution(run.device, run.threads)
            extract_logits(logits, opened, loaded, classes, metadata, how)
            write_table(table, rows, {"view": view})
            found[view] = read_outputs(table, logits, key)
            about = about or array_metadata(logits)
    return Passed(found, about)


def source_metric(outputs: list[Outputs], study: Study) -> pl.DataFrame:
    """How the model does on labeled source images: the pairs' own, or those of the study's id."""
    rows, logits = combined(outputs, study.evaluated_split("source"))
    how = EvaluationSettings(study.task, study.classes, study.statistics.minimum)
    return evaluate_view(rows, logits, how, f"'{study.name}': source")
