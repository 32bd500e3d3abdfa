"""One model on one data set, without Snakemake: the same steps, functions and numbers as its rules.

Pairs, pool, pixels, forward passes, temperature, score, source metric. What is written on the way
lies in a temporary folder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl

from stamp.cli.check_data.pairs import eligible
from stamp.cli.data_argument import Named
from stamp.config.model_sources import SOURCES
from stamp.config.plan import (
    CALIBRATION_DEFAULTS,
    PAIR_DEFAULTS,
    STATISTICS_DEFAULTS,
    Study,
    check,
    filled,
    read_yaml,
    weight_files,
)
from stamp.config.preprocessing import Preprocessing, merged
from stamp.core.errors import UserError, suggest
from stamp.data.pairs import study_pairs
from stamp.data.source_view import SourceViewSettings, source_view
from stamp.data.views import keep, label_columns, select
from stamp.inference.outputs import Outputs, combined, read_outputs
from stamp.report.scoreboard import model_row
from stamp.scoring.calibrate import ExclusionThresholds, calibrate
from stamp.scoring.evaluate import EvaluationSettings, evaluate_view
from stamp.scoring.score import ScoreSettings, score_table

MOST_PAIRS, MOST_CALIBRATION = 2000, 500
RULES = ("temperature_above", "chance_factor", "chance_auroc")


@dataclass(frozen=True, slots=True)
class Settings:
    """How a model is scored: what a study's file says, with every default filled in."""

    name: str
    task: str
    classes: list[str]
    images: dict[str, Any]
    preprocessing: dict[str, Any]
    pairs: dict[str, Any]
    calibration: dict[str, Any]
    id: dict[str, Any] | None
    statistics: dict[str, Any]
    seed: int

    @property
    def design(self) -> ScoreSettings:
        return ScoreSettings(
            task=self.task,
            classes=self.classes,
            semantic=self.pairs["semantic"],
            random=self.pairs["random"],
            number=self.pairs["n_pairs"],
            scale=self.calibration["scale"],
            resamples=self.statistics["resamples"],
            level=self.statistics["level"],
            seed=self.seed,
        )


@dataclass(frozen=True, slots=True)
class Candidate:
    """The model that is looked at: its name, its ``load`` block, the splits it learned from."""

    key: str
    load: dict[str, Any]
    trained_on: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Audit:
    """What came of it: a row of the scoreboard, the scores, the evaluation, pairs and draws."""

    row: dict[str, Any]
    scores: pl.DataFrame
    evaluation: pl.DataFrame
    pairs: pl.DataFrame
    draws: np.ndarray


def study_settings(study: Study, seed: int) -> Settings:
    """The settings of a study."""
    parts = ("name", "task", "classes", "pairs", "calibration", "id", "statistics", "preprocessing")
    taken = {part: getattr(study, part) for part in parts}
    return Settings(**taken, images=study.source_images, seed=seed)


def own_settings(
    named: Named,
    task: str,
    classes: Sequence[str],
    pairs: Mapping[str, Any],
    calibration: Mapping[str, Any],
    statistics: Mapping[str, Any],
    seed: int,
) -> Settings:
    """Settings without a study: as many pairs and calibration images as there are, up to a limit.

    ``pairs`` has ``split`` (a list) and ``semantic``, may have ``max_pairs``; ``calibration`` has
    ``split`` and may have ``count``.
    """
    rows = select(named.index, {"split": pairs["split"]}, f"{named.name}: pairs")
    filled = {**PAIR_DEFAULTS, **pairs}
    if "max_pairs" not in filled:
        columns = label_columns(task, classes)
        have = eligible(rows, filled["semantic"], filled, columns)
        if not have:
            raise UserError(
                f"{named.name}: no {filled['semantic']} pair in split "
                f"{', '.join(pairs['split'])}; check-data says what there is"
            )
        filled["max_pairs"] = min(MOST_PAIRS, have)
    filled["n_pairs"] = filled["max_pairs"]
    held_out = {**CALIBRATION_DEFAULTS, **calibration}
    if "n_images" not in held_out:
        there = select(named.index, {"split": held_out["split"]}, f"{named.name}: calibration")
        held_out["n_images"] = min(MOST_CALIBRATION, len(there))
    return Settings(
        name=named.name,
        task=task,
        classes=list(classes),
        images={"domains": None},
        preprocessing={},
        pairs=filled,
        calibration=held_out,
        id=None,
        statistics={**STATISTICS_DEFAULTS, **statistics},
        seed=seed,
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
    name = key or file.stem
    return Candidate(
        name, checked(block, f"{file}: {name}"), tuple(document.get("trained_on") or ())
    )


def checked(block: Mapping[str, Any], where: str) -> dict[str, Any]:
    """A ``load`` block that its schema allows."""
    source = block.get("source")
    if source not in SOURCES:
        raise UserError(f"{where}: unknown source '{source}': {suggest(str(source), SOURCES)}")
    check(f"load/{source}", dict(block), f"{where}: load")
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


def audit(
    named: Named,
    candidate: Candidate,
    settings: Settings,
    weights: Path | None = None,
    device: str = "cpu",
    threads: int = 1,
    allow_code: bool = False,
) -> Audit:
    """Score a model: the numbers are those of the workflow for the same settings and seed."""
    where, key = f"'{settings.name}'", candidate.key
    rows = select(
        named.index, {**settings.images, "split": settings.pairs["split"]}, f"{where}: pairs"
    )
    task, classes, seed = settings.task, settings.classes, settings.seed
    pairs = study_pairs(rows, settings.pairs, task, classes, seed, f"{where}: pairs")
    split, number = settings.calibration["split"], settings.calibration["n_images"]
    how = SourceViewSettings(settings.images, split, number, task, classes, seed)
    source = source_view(named.index, pairs, how, where)
    views = {"source": source}
    if settings.id:
        known = keep(named.index, task, classes, f"{where}: view 'id'")
        labeled = select(known, {**settings.images, **settings.id}, f"{where}: view 'id'")
        views["id"] = labeled.filter(~pl.col("image").is_in(source["image"].implode()))
    load = filled(candidate.load, task, allow_code, f"model '{key}'")
    if SOURCES[load["source"]].precomputed:
        outputs = brought(views, load, classes, task, key)
    else:
        pixels = merged(settings.preprocessing, load.get("preprocessing", {}))
        model = Candidate(key, {**load, "preprocessing": pixels.settings})
        outputs = forwarded(views, model, classes, named, weights, device, threads)
    minimum = settings.statistics["minimum"]
    thresholds = ExclusionThresholds(**{rule: settings.calibration[rule] for rule in RULES})
    at = f"{where}: calibration"
    held = outputs["source"].only("calibration")
    record = calibrate(held, task, classes, thresholds, minimum, at)
    leaks = not set(settings.pairs["split"]).isdisjoint(candidate.trained_on)
    table, headline = score_table(
        outputs["source"], pairs, settings.design, record["value"], key, leaks
    )
    nothing = pl.DataFrame(schema={"model": pl.String})
    return Audit(
        row=model_row(table, record, nothing, settings.calibration["exclude"]),
        scores=table,
        evaluation=source_metric(list(outputs.values()), settings, minimum),
        pairs=pairs,
        draws=headline.draws,
    )


def brought(
    views: Mapping[str, pl.DataFrame],
    load: Mapping[str, Any],
    classes: Sequence[str],
    task: str,
    key: str,
) -> dict[str, Outputs]:
    """The outputs that a file gives for the images of each view: nothing is run."""
    from stamp.models.loaders.precomputed import logits_of

    found = {}
    for view, rows in views.items():
        if rows.is_empty():
            continue
        try:
            logits = logits_of(load, view, rows["image"].to_list(), classes, task)
        except UserError as mistake:
            raise UserError(f"model '{key}': {mistake}") from None
        found[view] = Outputs(rows, logits, load.get("parameters"))
    return found


def forwarded(
    views: Mapping[str, pl.DataFrame],
    candidate: Candidate,
    classes: Sequence[str],
    named: Named,
    weights: Path | None,
    device: str,
    threads: int,
) -> dict[str, Outputs]:
    """The model's logits on each view, through a pixel cache and a file as in the workflow."""
    from stamp.core.artifacts import write_table
    from stamp.images.pixel_cache import PixelCache
    from stamp.images.pixels import ImageFiles, write_cache
    from stamp.inference.logits import Execution, extract_logits, metadata_of
    from stamp.models.loaders.registry import load_named

    key, pixels, found = candidate.key, Preprocessing(**candidate.load["preprocessing"]), {}
    loaded = load_named(key, candidate.load, classes, weights)
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
            metadata = metadata_of(key, view, candidate.load["source"])
            opened = PixelCache(cache, record, ids)
            extract_logits(logits, opened, loaded, classes, metadata, Execution(device, threads))
            write_table(table, rows, {"view": view})
            found[view] = read_outputs(table, logits, key)
    return found


def source_metric(outputs: list[Outputs], settings: Settings, minimum: int) -> pl.DataFrame:
    """How the model does on labeled source images: the pairs' own, or those of the study's id."""
    split = settings.id["split"] if settings.id else None
    rows, logits = combined(outputs, split)
    how = EvaluationSettings(settings.task, settings.classes, minimum)
    return evaluate_view(rows, logits, how, f"'{settings.name}': source")
