"""All scores of one model: each kind of pair, with and without the fitted temperature."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from stamp.data.views import label_columns
from stamp.inference.outputs import Outputs, present
from stamp.scoring import stamp as formula
from stamp.scoring.about_outputs import about_outputs
from stamp.scoring.bootstrap import (
    BootstrapSettings,
    PairDistances,
    StampInterval,
    exact_interval,
    stamp_interval,
)
from stamp.scoring.exact import ExactPairs
from stamp.scoring.pool_pairs import PairDesign, PoolPairs
from stamp.scoring.stamp import Array

NOT_COLUMNS = ("draws",)
N_PAIRS = {
    "model": pl.String,
    "number": pl.Int64,
    "stamp": pl.Float64,
    "raw": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "within": pl.Float64,
    "total": pl.Float64,
}


@dataclass(frozen=True, slots=True)
class ScoreSettings:
    """How a study scores its models: classes, pairs, temperature scaling and interval."""

    task: str
    classes: Sequence[str]
    semantic: str  # kind of pairs of the headline score
    random: str  # how random pairs were drawn
    number: int  # pairs of each kind
    scale: bool  # whether the headline score uses the fitted temperature
    resamples: int
    level: float
    seed: int
    pool: str = "reuse"  # which images random pairs are of
    estimator: str = "exact"  # that of the headline score, or "sampled"

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> ScoreSettings:
        """The settings among the ``params`` of a rule."""
        return cls(**{name: params[name] for name in cls.__dataclass_fields__})

    def temperature(self, fitted: float) -> float:
        """The temperature of the headline score: the fitted one if the study scales, else 1."""
        return fitted if self.scale else 1.0

    @property
    def bootstrap(self) -> BootstrapSettings:
        """How the interval is made."""
        return BootstrapSettings(self.resamples, self.level, self.seed)

    def pool_pairs(self, rows: pl.DataFrame, pairs: pl.DataFrame) -> PoolPairs:
        """The study's pairs as rows of its pool."""
        design = PairDesign(self.semantic, self.random, self.pool)
        return PoolPairs.of(rows, pairs, design, label_columns(self.task, self.classes))


@dataclass(frozen=True, slots=True)
class Values:
    """SV, AV, STAMP and eta squared by one estimator."""

    within: float
    total: float
    stamp: float
    eta2: float

    def without_score(self) -> Values:
        """The same of a degenerate model, which has no score."""
        return replace(self, stamp=float("nan"), eta2=float("nan"))


@dataclass(frozen=True, slots=True)
class Score:
    """STAMP of one model with its parts, interval and health; NaN where the model is degenerate.

    Numbers without a prefix are by the study's ``estimator``; the others name theirs.
    """

    estimator: str
    n_semantic: int
    n_random: int
    n_units: int  # patients or the like, or images: what is resampled
    within: float
    total: float
    stamp: float
    raw: float  # the formula's value even where the model is degenerate
    eta2: float
    exact_within: float
    exact_total: float
    exact_stamp: float
    exact_eta2: float
    sampled_within: float
    sampled_total: float
    sampled_stamp: float
    sampled_eta2: float
    low: float
    high: float
    se_bootstrap: float  # the standard errors are those of ``StampInterval``
    se_units: float
    se_analytic: float
    contraction: float
    degenerate: bool
    saturated: bool
    spread: float
    saturated_share: float
    groups_effective: float
    draws: Array


def score_table(
    source: Outputs,
    pairs: pl.DataFrame,
    settings: ScoreSettings,
    temperature: float,
    model: str,
    leaks: bool,
) -> tuple[pl.DataFrame, Score]:
    """One row per score of a model, the headline first, and the headline itself with its draws.

    Outputs that are zeros and ones are saturated at any temperature.
    """
    pool = source.only("pool")
    found = list(score_kinds(pool, pairs, settings, temperature))
    about = about_outputs(pool, pairs, settings.semantic, settings.number, settings.task)
    there = zip(settings.classes, present(source.logits), strict=True)
    missing = ", ".join(name for name, has_output in there if not has_output)
    common = {
        "model": model,
        "parameters": source.parameters,
        "leakage": leaks,
        "missing": missing or None,
        **asdict(about),
    }
    rows = [{**common, **what, **as_row(score)} for what, score in found]
    rows = [{**row, "saturated": row["saturated"] or about.hard} for row in rows]
    return pl.DataFrame(rows, infer_schema_length=None), found[0][1]


def score_kinds(
    pool: Outputs, pairs: pl.DataFrame, settings: ScoreSettings, temperature: float
) -> Iterator[tuple[dict[str, Any], Score]]:
    """The headline score, then the other kinds, then the headline at the other temperature."""
    used = settings.temperature(temperature)
    others = [kind for kind in pairs["kind"].unique(maintain_order=True) if kind != "random"]
    kinds = [settings.semantic, *(kind for kind in others if kind != settings.semantic)]
    for kind in kinds:
        found = score_pool(pool, pairs, kind, settings, used)
        yield {"kind": kind, "scaled": settings.scale, "temperature": used}, found
    other = 1.0 if settings.scale else temperature
    found = score_pool(pool, pairs, settings.semantic, settings, other)
    yield {"kind": settings.semantic, "scaled": not settings.scale, "temperature": other}, found


def score_at_n_pairs(
    pool: Outputs,
    pairs: pl.DataFrame,
    settings: ScoreSettings,
    temperature: float,
    n_pairs_sweep: Sequence[int],
    model: str,
) -> pl.DataFrame:
    """The sampled score at several numbers of pairs: the first N semantic and N random ones.

    The same outputs serve all numbers, so none of them needs a forward pass. The exact score is
    over all pairs at once and has no N.
    """
    if not n_pairs_sweep:
        return pl.DataFrame(schema=N_PAIRS)
    outputs, rows = outputs_of(pool, settings, settings.temperature(temperature)), []
    for number in n_pairs_sweep:
        here = replace(settings, number=number, estimator="sampled")
        found = as_row(score_outputs(outputs, pool, pairs, settings.semantic, here))
        row = {**found, "model": model, "number": number}
        rows.append({name: row[name] for name in N_PAIRS})
    return pl.DataFrame(rows, schema=N_PAIRS)


def score_pool(
    pool: Outputs,
    pairs: pl.DataFrame,
    kind: str,
    settings: ScoreSettings,
    temperature: float,
    columns: Sequence[int] | None = None,
) -> Score:
    """The score of one kind of pairs at one temperature, over all classes or some columns."""
    outputs = outputs_of(pool, settings, temperature, columns)
    return score_outputs(outputs, pool, pairs, kind, settings)


def outputs_of(
    pool: Outputs, settings: ScoreSettings, temperature: float, columns: Sequence[int] | None = None
) -> np.ndarray:
    """The probabilities that a score compares; classes without an output are left out.

    Over some columns only, sigmoids keep their values; a softmax is renormalised over the classes
    that remain.
    """
    there = present(pool.logits)
    wanted = list(columns) if columns is not None else list(range(pool.logits.shape[1]))
    chosen = [column for column in wanted if there[column]]
    return formula.probabilities(pool.logits[:, chosen], settings.task, temperature)


def score_outputs(
    outputs: np.ndarray, pool: Outputs, pairs: pl.DataFrame, kind: str, settings: ScoreSettings
) -> Score:
    """The score of given outputs over the pairs of one kind."""
    return score(outputs, settings.pool_pairs(pool.rows, pairs), kind, settings)


def as_row(found: Score) -> dict[str, Any]:
    """A score's numbers for a table; what is not a number becomes null."""
    row = {
        name: getattr(found, name) for name in found.__dataclass_fields__ if name not in NOT_COLUMNS
    }
    return {
        name: None if isinstance(value, float) and not np.isfinite(value) else value
        for name, value in row.items()
    }


def score(p: Array, pairs: PoolPairs, kind: str, settings: ScoreSettings) -> Score:
    """STAMP of the outputs ``p`` by both estimators, eta squared, interval and health flags.

    The headline, its parts and its interval are by the estimator that the study chose. With
    ``different_group`` random pairs eta squared is corrected for it, with ``iid`` it is the score.
    """
    if not np.isfinite(p).all():
        raise ValueError("outputs are not finite")
    near, far = (pairs.sampled(p, name, settings.number) for name in (kind, "random"))
    if not (len(near) and len(far)):
        raise ValueError("a score needs at least one semantic and one random pair")
    exact, effective = pairs.exact(p, kind), formula.effective_groups(pairs.known_groups)
    sampled = _sampled(near, far, settings.random, effective)
    values = {"sampled": sampled, "exact": _exact(exact)}
    chosen = values[settings.estimator]
    health = formula.health(p, chosen.total)
    if health.degenerate:
        interval = StampInterval.unknown(settings.resamples)
        values = {name: value.without_score() for name, value in values.items()}
    elif settings.estimator == "exact":
        interval = exact_interval(exact, chosen.stamp, settings.bootstrap)
    else:
        interval = stamp_interval(near, far, chosen.stamp, settings.bootstrap)
    parts = {f"{name}_{part}": n for name in values for part, n in asdict(values[name]).items()}
    of_pairs = [len(near), len(far)]
    if settings.estimator == "exact":
        of_pairs = [exact.semantic.number(), exact.random.number()]
    return Score(
        estimator=settings.estimator,
        n_semantic=of_pairs[0],
        n_random=of_pairs[1],
        n_units=exact.units,
        raw=chosen.stamp,
        groups_effective=effective,
        **asdict(values[settings.estimator]),
        **parts,
        **asdict(health),
        **asdict(interval),
    )


def _sampled(near: PairDistances, far: PairDistances, design: str, effective: float) -> Values:
    within, total = float(near.distances.mean()), float(far.distances.mean())
    raw = float(formula.stamp(within, total))
    corrected = formula.correct_different_groups(raw, effective) if design != "iid" else raw
    return Values(within, total, raw, float(corrected))


def _exact(pairs: ExactPairs) -> Values:
    within, total = pairs.value()
    independent = pairs.with_independent_pairs().value()[1]
    stamp, eta2 = (float(formula.stamp(within, each)) for each in (total, independent))
    return Values(within, total, stamp, eta2)
