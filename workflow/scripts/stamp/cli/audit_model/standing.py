"""Where a score stands among the models of a leaderboard."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from stamp.cli.one_model import Audit
from stamp.core.artifacts import read_arrays, read_table
from stamp.core.errors import UserError, suggest
from stamp.report.scoreboard import identical
from stamp.stats.rank_intervals import rank_intervals

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
    if board.is_empty() or audit.row["stamp"] is None:
        return None
    _same_estimator(board, audit.row.get("estimator"), file)
    others, mine = board["stamp"].to_numpy(), audit.row["stamp"]
    place, below = 1 + int((others > mine).sum()), float((others < mine).mean())
    draws = _joint(audit, file.parent, board["model"].to_list())
    if draws is not None:
        ranks = rank_intervals(draws, level)
        low, high = int(np.floor(ranks.low[0])), int(np.ceil(ranks.high[0]))
    else:
        low = 1 + int((others > audit.row["high"]).sum())
        high = 1 + int((others > audit.row["low"]).sum())
    return Standing(place, low, high, len(others), below, draws is not None)


def same_outputs(audit: Audit, key: str, folder: Path) -> list[str]:
    """The other models of a study with the same outputs, if they were scored on the same pairs."""
    file = folder / "statistics" / "scores.parquet"
    if not file.is_file() or not _same_pairs(audit, folder):
        return []
    board = read_table(file).filter(pl.col("model") != key)
    if "fingerprint" not in board.columns:
        return []
    models = [key, *board["model"].to_list()]
    prints = [audit.row["fingerprint"], *board["fingerprint"].to_list()]
    return identical(models, prints).get(key, [])


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


def _same_estimator(board: pl.DataFrame, mine: str | None, file: Path) -> None:
    """Refuse a leaderboard whose scores are by another estimator."""
    theirs = board["estimator"].unique().to_list() if "estimator" in board.columns else [mine]
    if theirs != [mine]:
        raise UserError(
            f"{file}: its scores are by the {theirs[0]} estimator, this one by the {mine}: leave "
            "it out, or score by the settings of its study (--study)"
        )


def _joint(audit: Audit, folder: Path, models: list[str]) -> np.ndarray | None:
    """Draws of the model and of the others, if those were scored on the very same pairs."""
    files = [folder / "scores" / f"{model}.draws.safetensors" for model in models]
    if not all(file.is_file() for file in files) or not _same_pairs(audit, folder):
        return None
    draws = [audit.draws, *(read_arrays(file)["stamp"] for file in files)]
    return np.stack(draws) if len({len(one) for one in draws}) == 1 else None


def _same_pairs(audit: Audit, folder: Path) -> bool:
    """Whether the models of a study were scored on the very same pairs."""
    pairs = folder / "pairs.parquet"
    return pairs.is_file() and read_table(pairs).equals(audit.pairs)
