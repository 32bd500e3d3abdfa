"""A made-up study as its page gets it: any number of models, with or without targets and images."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from benchmarks.made_up_files import pair_record

from stamp.report.analyses.baselines import table as baselines
from stamp.report.analyses.regret import table as regrets
from stamp.report.analyses.robustness import table as robustness
from stamp.report.analysis import frame
from stamp.report.card import Scoring
from stamp.report.correlate import correlations, outranking, ranks
from stamp.report.leaderboard import leaderboard
from stamp.report.outcomes import outcomes
from stamp.report.page.study_page import StudyFacts, StudyPage, StudyTables, study_page
from stamp.stats.correlations.correlation import FEWEST

LEVEL = 0.95
SETTINGS = {"permutations": 50, "resamples": 50, "level": LEVEL}
HOSTILE = "</script><img src=x onerror=\"window.hacked=1\"> & 'Ωµ' {{ 7*7 }}"
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c4944415408d763f8cfc000000301010018dd8db00000000049454e44ae426082"
)
TEXTS = {
    "title": "A study",
    "notice": "Made up.",
    "task": "multiclass",
    "level": LEVEL,
    "targets": {"clinic": "Clinic", "coast": "Coast"},
    "matched": [],
    "relabelled": [],
}


def evaluations(keys: list[str], quality: np.ndarray, targets: bool) -> pl.DataFrame:
    """What each model reaches on the source and on two targets."""
    rng = np.random.default_rng(1)
    rows = [
        {
            "model": key, "view": view, "domain": "all", "class": "top1", "metric": "top1",
            "value": float(np.clip(q + 0.05 * rng.normal(), 0, 1)), "se": 0.01, "n": 400,
        }
        for view in ("source", *(("clinic", "coast") if targets else ()))
        for key, q in zip(keys, quality, strict=True)
    ]  # fmt: skip
    return pl.DataFrame(rows)


def scores(keys: list[str], values: np.ndarray, excluded: dict[int, str]) -> pl.DataFrame:
    """The scoreboard of models whose draws have a standard deviation of 0.02."""
    told = pl.Series([excluded.get(i) for i in range(len(keys))], dtype=pl.String)
    nothing = pl.Series([None] * len(keys), dtype=pl.String)
    return pl.DataFrame(
        {
            "model": keys, "stamp": values, "raw": values, "low": values - 0.04,
            "high": values + 0.04, "se_bootstrap": 0.02, "eta2": values, "within": 0.1,
            "total": 0.4, "estimator": "exact", "sampled_stamp": values, "sampled_eta2": values,
            "n_semantic": 500, "n_random": 500, "n_units": 100,
            "parameters": 1000, "degenerate": False, "saturated": False,
            "leakage": False, "missing": nothing, "kind": "class", "temperature": 1.1,
            "temperature_bound": nothing, "excluded_temperature": nothing,
            "excluded_chance": told, "excluded": told, "contaminated": nothing,
        }
    )  # fmt: skip


def tables(
    count: int = 6,
    targets: bool = True,
    names: dict[int, str] | None = None,
    images: bool = False,
    excluded: dict[int, str] | None = None,
) -> StudyTables:
    """The tables of a study of ``count`` models; number 0 has the best score."""
    keys = [f"m{i:04d}" for i in range(count)]
    values = np.linspace(0.9, 0.2, count)
    draws = values[:, None] + 0.02 * np.random.default_rng(0).normal(size=(count, 400))
    board = scores(keys, values, excluded or {})
    tidy = outcomes(evaluations(keys, values, targets), {})
    said = {
        key: {
            "label": (names or {}).get(i, f"Model {i}"),
            "family": f"family {i % 3}",
            "objective": ("supervised", "self-supervised")[i % 2],
            "regime": "plain",
        }
        for i, key in enumerate(keys)
    }
    few = targets and FEWEST <= count <= 50
    found = correlations(
        board if few else board.head(0), tidy if few else tidy.head(0), SETTINGS, 0
    )
    records = {key: pair_record(key) for key in keys}
    shown = sorted({one for each in records["m0000"]["largest"] for one in each["images"]})
    thumbnails = pl.DataFrame({"image": shown, "media": "image/png", "data": [PIXEL] * len(shown)})
    return StudyTables(
        leaderboard=leaderboard(board, tidy, ranks(keys, draws, LEVEL), said),
        scores=board,
        outcomes=tidy,
        correlations=found,
        outranks=outranking(keys, draws),
        training={key: {"losses": [1.0, 0.5, 0.3], "images": 50} for key in keys},
        pairs=records,
        thumbnails=thumbnails if images else None,
        sentences={"partials": "A sentence of an analysis."},
        metadata={key: {"torch": "2.0", "device": "cpu", "model": key} for key in keys},
    )


OUTCOMES = ("mean", "clinic", "coast")
CHANGES = ("blur", "salt_and_pepper", "noise", "jpeg")


def stressed(count: int = 3) -> pl.DataFrame:
    """What stress tests say of made-up models; the last of them could not be run."""
    rows: list[dict[str, Any]] = []
    for at in range(count):
        for place, change in enumerate((robustness.CLEAN, *CHANGES, robustness.MEAN)):
            fall = None if change == robustness.CLEAN else 0.01 * place * (at + 1)
            one = {"model": f"m{at:04d}", "classes": "all", "change": change, "metric": "accuracy"}
            if at < count - 1:
                one |= {"clean": 0.9, "value": 0.9 - (fall or 0), "fall": fall, "images": 80}
                one |= {} if fall is None else {"fall_low": fall - 0.01, "fall_high": fall + 0.01}
            rows.append(one)
    return pl.DataFrame(rows, schema=robustness.MODELS)


def predicted() -> pl.DataFrame:
    """Three predictors, each the best for one of the outcomes."""
    found = {"stamp": "STAMP", "source_metric": "source top-1", "atc": HOSTILE}
    rows = [
        {"models": "declared", "outcome": outcome, "predictor": key, "name": name, "n": 6,
         "common": True, "oriented": 0.3 * ((place + at) % 3), "low": -0.2, "high": 0.9}
        for place, outcome in enumerate(OUTCOMES)
        for at, (key, name) in enumerate(found.items())
    ]  # fmt: skip
    return frame(rows, baselines.TABLE)


def picked_by(sizes: tuple[int, ...] = (5, 12, 20)) -> pl.DataFrame:
    """What the first of so many models loses, by two predictors and at random."""
    found = {"stamp": "STAMP", "source_metric": "source top-1", "random": "random choice"}
    rows = [
        {"outcome": outcome, "predictor": key, "name": name, "k": k, "n": 20,
         "regret": 0.01 * k + 0.02 * ((place + at) % 3), "low": 0.0, "high": 0.4}
        for place, outcome in enumerate(OUTCOMES)
        for at, (key, name) in enumerate(found.items())
        for k in sizes
    ]  # fmt: skip
    return frame(rows, regrets.TABLE)


def full(tables: StudyTables) -> StudyTables:
    """The tables with those of every section of a page: predictors, stress tests and regret."""
    count = len(tables.leaderboard)
    found = {"baselines": predicted(), "robustness": stressed(count), "regret": picked_by()}
    return replace(tables, **found)


def pretrained(count: int) -> dict[str, Any]:
    """Texts of a study whose models were pretrained on two data sets."""
    kinds = {f"m{i:04d}": ("in1k", "in21k")[2 * i // count] for i in range(count)}
    return {**TEXTS, "pretraining": kinds}


def facts(**changes: Any) -> StudyFacts:
    """What is said around the tables."""
    scoring = Scoring("made-up", "multiclass", ["cat", "dog"], "class", ["test"], 0, LEVEL, True)
    told: dict[str, Any] = {
        "study": "made-up", "texts": TEXTS, "configuration": "title: A study\n", "seed": 0,
        "command": "snakemake --cores 8", "index": "../index.html",
        "versions": {"stamp": "1"}, "scoring": scoring,
    }  # fmt: skip
    return StudyFacts(**{**told, **changes})


def page(**how: Any) -> StudyPage:
    """A page of a made-up study."""
    return study_page(tables(**how), facts())
