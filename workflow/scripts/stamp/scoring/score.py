"""All scores of one model: each kind of pair, with and without the fitted temperature."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl

from stamp.core.errors import UserError
from stamp.inference.outputs import Outputs, merged, present
from stamp.scoring.stamp import Score, restrict, score

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
class Design:
    """How a study scores: pairs, head, interval."""

    task: str
    classes: Sequence[str]
    semantic: str
    random: str
    number: int
    resamples: int
    level: float
    seed: int

    def unit(self, kind: str) -> str:
        """What the bootstrap resamples: images for class pairs, groups (patients) otherwise."""
        return "image" if kind == "class" else "group"


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


def score_pool(
    pool: Outputs,
    pairs: pl.DataFrame,
    kind: str,
    design: Design,
    temperature: float,
    columns: Sequence[int] | None = None,
) -> Score:
    """The score of one kind of pairs at one temperature, over all classes or some columns."""
    return score_outputs(outputs_of(pool, design, temperature, columns), pool, pairs, kind, design)


def outputs_of(
    pool: Outputs, design: Design, temperature: float, columns: Sequence[int] | None = None
) -> np.ndarray:
    """The probabilities that a score compares; classes without an output are left out."""
    there = present(pool.logits)
    wanted = list(columns) if columns is not None else list(range(pool.logits.shape[1]))
    chosen = [column for column in wanted if there[column]]
    return restrict(pool.logits, chosen, design.task, temperature)


def score_outputs(
    outputs: np.ndarray, pool: Outputs, pairs: pl.DataFrame, kind: str, design: Design
) -> Score:
    """The score of one kind of pairs, the first ``design.number`` of them, of given outputs."""
    images = pool.rows["image"]
    semantic, random = (
        pair_rows(pairs.filter(pl.col("kind") == name).head(design.number), images)
        for name in (kind, "random")
    )
    groups = pool.rows["group"].rank("dense").to_numpy()
    return score(
        outputs,
        semantic,
        random,
        groups,
        unit=design.unit(kind),
        resamples=design.resamples,
        level=design.level,
        seed=design.seed,
        design=design.random,
    )


def as_row(found: Score) -> dict[str, Any]:
    """A score's numbers for a table; what is not a number becomes null."""
    row = {
        name: getattr(found, name) for name in found.__dataclass_fields__ if name not in NOT_COLUMNS
    }
    return {
        name: None if isinstance(value, float) and not np.isfinite(value) else value
        for name, value in row.items()
    }


def score_kinds(
    pool: Outputs, pairs: pl.DataFrame, design: Design, temperature: float, scale: bool
) -> Iterator[tuple[dict[str, Any], Score]]:
    """The headline score, then the other kinds, then the headline at the other temperature."""
    used = temperature if scale else 1.0
    others = [kind for kind in pairs["kind"].unique(maintain_order=True) if kind != "random"]
    kinds = [design.semantic, *(kind for kind in others if kind != design.semantic)]
    for kind in kinds:
        found = score_pool(pool, pairs, kind, design, used)
        yield {"kind": kind, "scaled": scale, "temperature": used}, found
    other = 1.0 if scale else temperature
    found = score_pool(pool, pairs, design.semantic, design, other)
    yield {"kind": design.semantic, "scaled": not scale, "temperature": other}, found


def score_table(
    source: Outputs,
    pairs: pl.DataFrame,
    design: Design,
    temperature: float,
    scale: bool,
    model: str,
    leaks: bool,
) -> tuple[pl.DataFrame, Score]:
    """One row a score of a model, the headline first, and the headline itself with its draws."""
    found = list(score_kinds(source.only("pool"), pairs, design, temperature, scale))
    there = zip(design.classes, present(source.logits), strict=True)
    missing = ", ".join(name for name, has_output in there if not has_output)
    common = {
        "model": model,
        "parameters": source.parameters,
        "leakage": leaks,
        "missing": missing or None,
    }
    rows = [{**common, **what, **as_row(score)} for what, score in found]
    return pl.DataFrame(rows, infer_schema_length=None), found[0][1]


def score_at_n_pairs(
    pool: Outputs,
    pairs: pl.DataFrame,
    design: Design,
    temperature: float,
    counts: Sequence[int],
    model: str,
) -> pl.DataFrame:
    """The headline score at several numbers of pairs: the first N semantic and N random ones.

    The same outputs serve all numbers, so none of them needs a forward pass.
    """
    if not counts:
        return pl.DataFrame(schema=N_PAIRS)
    outputs, rows = outputs_of(pool, design, temperature), []
    for number in counts:
        here = replace(design, number=number)
        found = as_row(score_outputs(outputs, pool, pairs, design.semantic, here))
        row = {**found, "model": model, "number": number}
        rows.append({name: row[name] for name in N_PAIRS})
    return pl.DataFrame(rows, schema=N_PAIRS)


def matched_rows(
    pool: Outputs,
    pairs: pl.DataFrame,
    design: Design,
    temperature: float,
    matched: Mapping[str, Sequence[str]],
    merge: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> list[dict[str, Any]]:
    """The headline score over the classes that each domain of a target is labeled for.

    A merged class is one output, the largest of its parts'. A model that has an output for none of
    the classes has no matched score.
    """
    names = [*design.classes, *merge]
    whole = Outputs(pool.rows, merged(pool.logits, design.classes, merge), pool.parameters)
    there = present(whole.logits)
    rows = []
    for domain, wanted in matched.items():
        columns = [names.index(name) for name in wanted]
        row: dict[str, Any] = {"domain": domain, "classes": ", ".join(wanted), "stamp": None}
        if there[columns].any():
            found = score_pool(whole, pairs, design.semantic, design, temperature, columns)
            row |= as_row(found)
        rows.append(row)
    return rows
