"""STAMP of one model from its outputs on source images, with interval and flags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from stamp.api import arrays
from stamp.api.images import Images, index_of
from stamp.config.precomputed import PROBABILITIES
from stamp.core.artifacts import ids_digest
from stamp.core.errors import UserError
from stamp.data import pairs as pairing
from stamp.data.views import label_columns
from stamp.inference.outputs import Outputs, present
from stamp.models import probabilities
from stamp.report import flags
from stamp.scoring.about_outputs import about_outputs
from stamp.scoring.score import Score, ScoreSettings, as_row, score_pool

MOST_PAIRS = 2000


@dataclass(frozen=True, slots=True)
class Settings:
    """How a model is scored; the defaults are those of a study (``config/README.md``)."""

    task: str = "multiclass"  # a softmax; or "multilabel", sigmoids
    kind: str | None = None  # of semantic pairs: temporal where groups have visits, else class
    probabilities: bool = False  # the outputs are probabilities, not logits
    temperature: float = 1.0  # that logits are divided by
    classes: Sequence[str] | None = None  # their names, for flags
    max_pairs: int | None = None  # how many are drawn: all there are, up to 2,000
    n_pairs: int | None = None  # how many of them the sampled estimator uses: all of them
    mode: str = "all_consecutive"  # or "one_per_group"
    order: str = "order"  # consecutive by visit; or "image", by id
    random: str = "different_group"  # or "iid"
    pool: str = "reuse"  # or "fresh"
    estimator: str = "exact"  # or "sampled"
    resamples: int = 10_000
    level: float = 0.95
    seed: int = 0


DEFAULT = Settings()


@dataclass(frozen=True, slots=True)
class ScoredModel:
    """STAMP of a model with its interval, its flags (the gravest first) and all of its parts.

    ``stamp``, ``low`` and ``high`` are NaN for a degenerate model, which has no score.
    """

    stamp: float
    low: float
    high: float
    flags: tuple[flags.Raised, ...]
    kind: str  # of the semantic pairs
    images: int  # that the pairs are of
    groups: int  # that the semantic pairs are of
    temperature: float
    level: float
    score: Score  # both estimators, SV, AV, eta squared, standard errors, bootstrap draws
    sample: str  # equal for models that were scored on the same pairs and resamples


def score(outputs: Any, images: Images, settings: Settings = DEFAULT) -> ScoredModel:
    """STAMP of one model from its logits or probabilities [images, classes].

    ``STAMP = 1 - SV / AV``: SV is the mean squared distance of the outputs over semantic pairs, AV
    that over random ones. Pairs, estimator, bootstrap and flags are those of the workflow, and so
    are the numbers for the same images, ids and seed. Outputs of images that no pair is of may be
    NaN; a class that the model has no output for is a column of NaN.
    """
    raw = arrays.outputs(outputs)
    classes = settings.classes or [str(number) for number in range(raw.shape[1])]
    if len(classes) != raw.shape[1]:
        raise UserError(f"settings.classes has {len(classes)} names for {raw.shape[1]} outputs")
    rows = index_of(images, len(raw), settings.task, classes)
    kind = _kind(rows, settings, classes)
    pairs = _drawn(rows, kind, settings, classes)
    pool = _pool(rows, raw, pairs, settings)
    how = _score_settings(kind, settings, classes, len(pairs) // 2)
    found = score_pool(pool, pairs, kind, how, settings.temperature)
    about = about_outputs(pool, pairs, kind, how.number, settings.task)
    there = zip(classes, present(pool.logits), strict=True)
    row = {
        **as_row(found),
        "saturated": found.saturated or about.hard,
        "hard": about.hard,
        "kind": kind,
        "groups": about.groups,
        "images": about.images,
        "missing": ", ".join(name for name, has_output in there if not has_output),
    }
    return ScoredModel(
        stamp=found.stamp,
        low=found.low,
        high=found.high,
        flags=tuple(flags.raised(row)),
        kind=kind,
        images=about.images,
        groups=about.groups,
        temperature=settings.temperature,
        level=settings.level,
        score=found,
        sample=ids_digest([*pairs["a"], *pairs["b"], f"{settings.seed} {settings.resamples}"]),
    )


def _kind(rows: pl.DataFrame, settings: Settings, classes: Sequence[str]) -> str:
    """The kind of semantic pairs: the one that is asked for, or what the images allow."""
    kind = settings.kind or pairing.default_kind(rows, settings.task, classes)
    if kind != "temporal" and not set(label_columns(settings.task, classes)) <= set(rows.columns):
        raise UserError(f"{kind} pairs need images.labels, temporal ones groups and visits")
    return kind


def _drawn(
    rows: pl.DataFrame, kind: str, settings: Settings, classes: Sequence[str]
) -> pl.DataFrame:
    """Semantic and random pairs, as a study draws them."""
    how: dict[str, Any] = {"semantic": kind, "also": {}, "same": []}
    how |= {name: getattr(settings, name) for name in ("mode", "order", "random", "pool")}
    how["max_pairs"] = settings.max_pairs or _eligible(rows, kind, settings, classes)
    return pairing.study_pairs(rows, how, settings.task, classes, settings.seed, "images")


def _eligible(rows: pl.DataFrame, kind: str, settings: Settings, classes: Sequence[str]) -> int:
    """How many semantic pairs there are, up to the most that are drawn unasked."""
    columns = label_columns(settings.task, classes)
    if kind == "class":
        found = pairing.class_pair_count(rows, columns)
    else:
        found = len(pairing.semantic_pairs(rows, kind, settings.mode, settings.order, columns))
    if not found:
        raise UserError(f"images: there is no {kind} pair among them")
    return min(MOST_PAIRS, found)


def _pool(rows: pl.DataFrame, raw: np.ndarray, pairs: pl.DataFrame, settings: Settings) -> Outputs:
    """The images of the pairs, in the workflow's order, with their logits."""
    used = pl.DataFrame({"image": pairing.pool(pairs)})
    place = rows.with_row_index("row")
    chosen = used.join(place, on="image", how="left", maintain_order="left")
    logits = raw[chosen["row"].to_numpy()]
    if settings.probabilities:
        kind, there = PROBABILITIES[settings.task], present(logits)
        probabilities.check(logits[:, there], kind, "outputs", bool(there.all()))
        logits[:, there] = probabilities.to_logits(logits[:, there], kind)
    wrong = ~np.isfinite(logits[:, present(logits)]).all(axis=1)
    if wrong.any():
        raise UserError(f"outputs of image '{chosen['image'][int(wrong.argmax())]}' are not finite")
    return Outputs(chosen.drop("row"), logits, None)


def _score_settings(
    kind: str, settings: Settings, classes: Sequence[str], drawn: int
) -> ScoreSettings:
    """The settings as the workflow's functions take them."""
    shared = ("task", "random", "pool", "estimator", "resamples", "level", "seed")
    return ScoreSettings(
        classes=classes,
        semantic=kind,
        number=settings.n_pairs or drawn,
        scale=settings.temperature != 1,
        **{name: getattr(settings, name) for name in shared},
    )
