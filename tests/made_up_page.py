"""A made-up study as its page gets it: any number of models, with or without targets and images."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from benchmarks.made_up_files import pair_record

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
