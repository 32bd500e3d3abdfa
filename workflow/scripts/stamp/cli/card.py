"""A model's card: its score with what a reader needs to trust or doubt it, in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np
import polars as pl

from stamp.cli.findings import plural
from stamp.cli.one_model import Audit
from stamp.config.study import Study
from stamp.core.artifacts import read_arrays, read_table
from stamp.core.errors import UserError, suggest
from stamp.data.pairs import pool
from stamp.report.leaderboard import flags
from stamp.stats.rank_intervals import rank_intervals

METRICS = {"auroc": "macro-AUROC", "top1": "top-1 accuracy"}
GROUPS = {"class": "classes"}  # what groups are, by kind of pairs; otherwise patients or the like
NUMBERS = (
    "stamp", "low", "high", "raw", "eta2", "within", "total", "exact_stamp", "exact_eta2",
    "se_bootstrap", "se_units", "temperature", "n_semantic", "n_random", "parameters",
)  # fmt: skip
COLUMNS = ("model", "place", "stamp")


@dataclass(frozen=True, slots=True)
class Standing:
    """A score's place among reference models, 1 the best, and how far it could move."""

    place: int
    low: int
    high: int
    models: int
    below: float
    joint: bool  # from draws of all models on the same pairs, not with the others held fixed


def standing(audit: Audit, key: str, level: float, file: Path) -> Standing | None:
    """Where a score stands among the placed models of a leaderboard; None without a score.

    The model itself, if it is listed, is left out. If the leaderboard's study lies beside it and
    was scored on the same pairs, the interval is that of ranks over joint bootstrap draws.
    Otherwise the others' scores are held fixed, and the ends are the places of the score's own.
    """
    board = reference(file).filter(pl.col("place").is_not_null() & (pl.col("model") != key))
    others, mine = board["stamp"].to_numpy(), audit.row["stamp"]
    if mine is None or not len(others):
        return None
    place, below = 1 + int((others > mine).sum()), float((others < mine).mean())
    draws = _joint(audit, file.parent, board["model"].to_list())
    if draws is not None:
        ranks = rank_intervals(draws, level)
        low, high = int(np.floor(ranks.low[0])), int(np.ceil(ranks.high[0]))
    else:
        low = 1 + int((others > audit.row["high"]).sum())
        high = 1 + int((others > audit.row["low"]).sum())
    return Standing(place, low, high, len(others), below, draws is not None)


def record(audit: Audit, study: Study, key: str, among: Standing | None) -> dict[str, Any]:
    """All that the card says, as plain values."""
    metric = audit.evaluation.row(0, named=True)
    return {
        "model": key,
        "data": study.name,
        "task": study.task,
        "semantic": study.pairs.semantic,
        "split": study.pairs.split,
        "seed": audit.seed,
        "level": study.statistics.level,
        "scaled": study.calibration.scale,
        "images": len(pool(audit.pairs)),
        **{name: audit.row[name] for name in NUMBERS},
        "degenerate": audit.row["degenerate"],
        "excluded": audit.row["excluded"],
        "flags": flags(audit.row),
        "source_metric": {part: metric[part] for part in ("metric", "value", "se", "n", "reason")},
        "among": None if among is None else asdict(among),
    }


def text(found: Mapping[str, Any]) -> str:
    """The card for a reader: the numbers, then what they mean."""
    kind, level = found["semantic"], f"{100 * found['level']:g} %"
    lines = [
        ("Model", _model(found)),
        (
            "Data",
            f"{found['data']}: {found['n_semantic']:,} {kind} and {found['n_random']:,} random "
            f"pairs of {found['images']:,} images, seed {found['seed']}",
        ),
        ("STAMP", _score(found, level)),
        (
            "Parts",
            f"SV {found['within']:.4g}, AV {found['total']:.4g}, eta squared {_n(found['eta2'])}, "
            f"over all pairs {_n(found['exact_eta2'])}",
        ),
        (
            "Temperature",
            f"{found['temperature']:.3f} fitted, {'used' if found['scaled'] else 'not used'}",
        ),
        ("Source", _metric(found["source_metric"])),
        ("Flags", found["flags"] or "none"),
        ("Standing", _standing(found["among"], level)),
    ]
    shown = [f"{name:<12}{line}" for name, line in lines if line]
    return "\n".join([*shown, "", *(wrap(_meaning(found), 88))])


def _model(found: Mapping[str, Any]) -> str:
    """The model's name, and its size where somebody knows it."""
    size = found["parameters"]
    return found["model"] + ("" if size is None else f", {size:,} parameters")


def _score(found: Mapping[str, Any], level: str) -> str:
    if found["stamp"] is None:
        return f"none; the formula gives {_n(found['raw'])}"
    return f"{_n(found['stamp'])}, {level} interval {_n(found['low'])} to {_n(found['high'])}"


def _metric(found: Mapping[str, Any]) -> str:
    name = METRICS[found["metric"]]
    if found["value"] is None:
        return f"{name} not known: {found['reason'] or 'no labels'}"
    left_out = f"; {found['reason']}" if found["reason"] else ""
    error = "" if found["se"] is None else f", standard error {found['se']:.3f}"
    return f"{name} {found['value']:.3f}{error} ({found['n']:,} labeled images{left_out})"


def _standing(among: Mapping[str, Any] | None, level: str) -> str:
    if among is None:
        return ""
    how = "from joint draws on the same pairs" if among["joint"] else "the others held fixed"
    return (
        f"place {among['place']} beside {plural(among['models'], 'reference model')}, {level} "
        f"interval {among['low']} to {among['high']} ({how}); above {among['below']:.0%} of them"
    )


def _meaning(found: Mapping[str, Any]) -> str:
    """What the number says and what it does not, in two sentences."""
    if found["stamp"] is None:
        return (
            "Its outputs hardly vary over the images, so that the formula's value means nothing "
            "and the model has no score. A constant model would get the best value of all."
        )
    groups = GROUPS.get(found["semantic"], "groups, such as patients")
    return (
        f"About {max(found['eta2'], 0):.0%} of the variance of its outputs lies between {groups}, "
        f"the rest between images of one of them. This is how consistent the model is, not how "
        "right: read it beside the source metric, and compare it only with scores on the same "
        "pairs."
    )


def _n(value: float | None) -> str:
    return "none" if value is None else f"{value:.3f}"


def reference(file: Path) -> pl.DataFrame:
    """The leaderboard of the models that a score is set among."""
    if not file.is_file():
        raise UserError(
            f"{file}: no such leaderboard; a study's is results/<study>/leaderboard.csv"
        )
    try:
        if file.suffix == ".parquet":
            board = pl.read_parquet(file)
        else:
            board = pl.read_csv(file, schema_overrides={"model": pl.String})
    except pl.exceptions.PolarsError:
        raise UserError(f"{file}: can't be read as a leaderboard") from None
    for name in COLUMNS:
        if name not in board.columns:
            raise UserError(f"{file}: no column '{name}': {suggest(name, board.columns)}")
    numbers = [pl.col(name).cast(pl.Float64) for name in ("place", "stamp")]
    try:
        return board.with_columns(*numbers, pl.col("model").cast(pl.String))
    except pl.exceptions.PolarsError:
        raise UserError(f"{file}: a place or stamp is no number") from None


def _joint(audit: Audit, folder: Path, models: list[str]) -> np.ndarray | None:
    """Draws of the model and of the others, if those were scored on the very same pairs."""
    pairs = folder / "pairs.parquet"
    files = [folder / "scores" / f"{model}.draws.safetensors" for model in models]
    if not pairs.is_file() or not all(file.is_file() for file in files):
        return None
    if not read_table(pairs).equals(audit.pairs):
        return None
    draws = [audit.draws, *(read_arrays(file)["stamp"] for file in files)]
    return np.stack(draws) if len({len(one) for one in draws}) == 1 else None
