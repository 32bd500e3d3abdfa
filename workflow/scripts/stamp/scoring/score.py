"""All scores of one model: each kind of pair, with and without the fitted temperature."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from stamp.core.errors import UserError
from stamp.inference.outputs import Outputs, present
from stamp.scoring import stamp as estimator
from stamp.scoring.about_outputs import about_outputs
from stamp.scoring.bootstrap import BootstrapSettings, PairDistances, StampInterval, stamp_interval
from stamp.scoring.stamp import Array, Pairs

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

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> ScoreSettings:
        """The settings among the ``params`` of a rule."""
        return cls(**{name: params[name] for name in cls.__dataclass_fields__})

    def temperature(self, fitted: float) -> float:
        """The temperature of the headline score: the fitted one if the study scales, else 1."""
        return fitted if self.scale else 1.0

    def bootstrap(self, kind: str) -> BootstrapSettings:
        """Images are resampled for class pairs, groups (patients) for other kinds."""
        unit = "image" if kind == "class" else "group"
        return BootstrapSettings(self.resamples, self.level, self.seed, unit)


@dataclass(frozen=True, slots=True)
class Score:
    """STAMP of one model with its parts, interval and health; NaN where the model is degenerate."""

    n_semantic: int
    n_random: int
    within: float
    total: float
    stamp: float
    raw: float  # the formula's value even where the model is degenerate
    eta2: float
    exact_within: float
    exact_total: float
    exact_stamp: float
    exact_eta2: float
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
    """The headline score at several numbers of pairs: the first N semantic and N random ones.

    The same outputs serve all numbers, so none of them needs a forward pass.
    """
    if not n_pairs_sweep:
        return pl.DataFrame(schema=N_PAIRS)
    outputs, rows = outputs_of(pool, settings, settings.temperature(temperature)), []
    for number in n_pairs_sweep:
        here = replace(settings, number=number)
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
    return estimator.probabilities(pool.logits[:, chosen], settings.task, temperature)


def score_outputs(
    outputs: np.ndarray, pool: Outputs, pairs: pl.DataFrame, kind: str, settings: ScoreSettings
) -> Score:
    """The score of given outputs over the first ``settings.number`` pairs of one kind."""
    images = pool.rows["image"]
    semantic, random = (
        pair_rows(pairs.filter(pl.col("kind") == name).head(settings.number), images)
        for name in (kind, "random")
    )
    groups = pool.rows["group"].rank("dense").to_numpy()
    return score(outputs, semantic, random, groups, settings.random, settings.bootstrap(kind))


def pair_rows(pairs: pl.DataFrame, images: pl.Series) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of image ids as pairs of row numbers."""
    place = pl.DataFrame({"image": images}).with_row_index("row")
    ends = []
    for end in ("a", "b"):
        found = pairs.select(image=end).join(place, on="image", how="left", maintain_order="left")
        if found["row"].null_count():
            missing = found.filter(pl.col("row").is_null())["image"][0]
            raise UserError(f"image '{missing}' is in the pairs, but not in the view 'source'")
        ends.append(found["row"].cast(pl.Int64).to_numpy())
    return ends[0], ends[1]


def as_row(found: Score) -> dict[str, Any]:
    """A score's numbers for a table; what is not a number becomes null."""
    row = {
        name: getattr(found, name) for name in found.__dataclass_fields__ if name not in NOT_COLUMNS
    }
    return {
        name: None if isinstance(value, float) and not np.isfinite(value) else value
        for name, value in row.items()
    }


def score(
    p: Array,
    semantic: Pairs,
    random: Pairs,
    groups: ArrayLike,
    random_design: str,
    bootstrap: BootstrapSettings,
) -> Score:
    """STAMP of the outputs ``p`` with both estimators, eta squared, interval and health flags.

    ``semantic`` and ``random`` are two arrays of rows of ``p`` each; ``groups`` has one integer per
    row. The exact estimator uses every row of ``p``. ``random_design`` says how the random pairs
    were drawn: with ``different_group`` eta squared is corrected for it, with ``iid`` it is not.
    """
    if random_design not in ("different_group", "iid"):
        raise ValueError(f"random_design is 'different_group' or 'iid', not '{random_design}'")
    if not np.isfinite(p).all():
        raise ValueError("outputs are not finite")
    groups = np.asarray(groups)
    near, far = (_distances(p, pairs, groups, bootstrap.unit) for pairs in (semantic, random))
    if not (len(near) and len(far)):
        raise ValueError("a score needs at least one semantic and one random pair")
    within, total = float(near.distances.mean()), float(far.distances.mean())
    raw = float(estimator.stamp(within, total))
    health = estimator.health(p, total)
    if health.degenerate:
        keep, interval = float("nan"), StampInterval.unknown(bootstrap.resamples)
    else:
        keep, interval = 1.0, stamp_interval(near, far, raw, bootstrap)
    exact, effective = estimator.exact_groups(p, groups), estimator.effective_groups(groups)
    eta2, exact_total, exact_stamp = raw, exact.total_iid, exact.stamp_iid
    if random_design == "different_group":
        eta2 = float(estimator.correct_different_groups(raw, effective))
        exact_total, exact_stamp = exact.total_different, exact.stamp_different
    return Score(
        n_semantic=len(near),
        n_random=len(far),
        within=within,
        total=total,
        stamp=raw * keep,
        raw=raw,
        eta2=keep * eta2,
        exact_within=exact.within,
        exact_total=exact_total,
        exact_stamp=keep * exact_stamp,
        exact_eta2=keep * exact.stamp_iid,
        groups_effective=effective,
        **asdict(health),
        **asdict(interval),
    )


def _distances(p: Array, pairs: Pairs, groups: NDArray[Any], unit: str) -> PairDistances:
    """The squared distances of pairs of rows, with the group or the image at each end."""
    a, b = (np.asarray(rows, dtype=np.int64) for rows in pairs)
    distances = estimator.squared_distances(p, a, b)
    if unit == "group":
        return PairDistances(distances, groups[a], groups[b])
    return PairDistances(distances, a, b)
