"""Where the score is wrong: models whose ranks by score and by outcome lie furthest apart.

Beside them stands what was known of a model without any target data: health flags, the rules that
exclude models, the parts of its score. Whether those flags explain the disagreement is counted,
not assumed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from stamp.report import analysis
from stamp.report import flags as health
from stamp.report.analysis import AnalysisData
from stamp.report.comparison import paired
from stamp.report.comparison.paired import Paired
from stamp.report.scoreboard import RULES
from stamp.stats.correlations.correlation import FEWEST
from stamp.stats.ranks import mid_ranks

MOST = 5  # models listed for each outcome
FAR = 1 / 3  # of the number of models: 15 of 44, as in the paper
OF_THE_DATA = ("few", "training_unknown")  # flags that say nothing of the model itself
PARTS = ("within", "total", "temperature", "spread")
RANKED: dict[str, Any] = {
    "value_score": pl.Float64,
    "value_outcome": pl.Float64,
    "rank_score": pl.Float64,
    "rank_outcome": pl.Float64,
    "rank_source": pl.Float64,
    "difference": pl.Float64,
    "far": pl.Boolean,
    "flags": pl.String,
}
TABLE = {
    **paired.ABOUT,
    "n": pl.Int64,
    "place": pl.Int64,
    "model": pl.String,
    "label": pl.String,
    **RANKED,
    "models_far": pl.Int64,
    "flagged": pl.Int64,
    "flagged_far": pl.Int64,
    "flagged_mean": pl.Float64,
    "others_mean": pl.Float64,
    "reason": pl.String,
}
MODELS = {
    **paired.OF_MODEL,
    **RANKED,
    **dict.fromkeys(PARTS, pl.Float64),
    "rank_within": pl.Float64,
    "rank_total": pl.Float64,
    "reason": pl.String,
}


def flags(row: Mapping[str, Any]) -> str | None:
    """What was known against a model without target data, in words; None where nothing was.

    A rule that sets the model apart counts even where the study declares another.
    """
    raised = [one.words for one in health.raised(row) if one.flag.name not in OF_THE_DATA]
    found = ["; ".join(raised)]
    reasons = (row.get(f"excluded_{rule}") for rule in RULES)
    found += [f"by the other rule: {why}" for why in reasons if why and why != row["excluded"]]
    return "; ".join(filter(None, found)) or None


def ranked(one: Paired) -> list[dict[str, Any]]:
    """Each model that has a score and a value: both ranks, 1 the best, and how far apart they are.

    ``difference`` is the rank by outcome minus that by score: above 0 the score promised more than
    the model kept.
    """
    known = np.flatnonzero(one.known())
    if len(known) < FEWEST:
        return []
    score, outcome = (mid_ranks(-side[known]) for side in (one.x, one.y))
    source = np.full(len(known), np.nan)
    if not np.isnan(one.source[known]).any():
        source = mid_ranks(-one.source[known])
    return [
        {
            "model": one.keys[at],
            "value_score": one.x[at],
            "value_outcome": one.y[at],
            "rank_score": score[place],
            "rank_outcome": outcome[place],
            "rank_source": source[place],
            "difference": outcome[place] - score[place],
            "far": bool(abs(outcome[place] - score[place]) >= FAR * len(known)),
        }
        for place, at in enumerate(known)
    ]


def models(data: AnalysisData) -> pl.DataFrame:
    """Every model with its ranks for every outcome, its flags and the parts of its score."""
    said = paired.described(data)
    board = {row["model"]: row for row in data.scores.iter_rows(named=True)}
    parts = _part_ranks(data)
    rows = [
        {
            **paired.of_model(said, one, one.keys.index(row["model"])),
            **row,
            "flags": flags(board[row["model"]]),
            **{part: board[row["model"]].get(part) for part in PARTS},
            **parts.get(row["model"], {}),
        }
        for one in paired.pairings(data)
        for row in ranked(one)
    ]
    few = f"no outcome has {FEWEST} models with a score and a value"
    return analysis.frame(rows, MODELS) if rows else analysis.nothing(MODELS, few)


def _part_ranks(data: AnalysisData) -> dict[str, dict[str, float]]:
    """Ranks of the score's parts over all models, 1 the largest."""
    found: dict[str, dict[str, float]] = {}
    for part in ("within", "total"):
        if part in data.scores.columns:
            known = data.scores.with_columns(pl.col(part).fill_nan(None)).drop_nulls(part)
            for key, rank in zip(known["model"], mid_ranks(-known[part].to_numpy()), strict=True):
                found.setdefault(key, {})[f"rank_{part}"] = float(rank)
    return found


def table(data: AnalysisData) -> pl.DataFrame:
    """For each outcome the models whose ranks disagree most, the furthest first.

    A model is ``far`` where its ranks are at least a third of the number of models apart.
    ``flagged_mean`` and ``others_mean`` are the mean distances of the ranks of the models with and
    without flags: flags explain failures only as far as the first is the larger.
    """
    board = {row["model"]: row for row in data.scores.iter_rows(named=True)}
    rows: list[dict[str, Any]] = []
    for one in paired.pairings(data):
        found = ranked(one)
        if not found:
            few = f"{int(one.known().sum())} models are too few: at least {FEWEST} are needed"
            rows.append({**one.about, "n": int(one.known().sum()), "reason": few})
            continue
        for row in found:
            row["flags"] = flags(board[row["model"]])
        common = {**one.about, "n": len(found), **_counted(found)}
        order = sorted(found, key=lambda row: (-abs(row["difference"]), row["model"]))
        rows += [
            {**common, "place": place, "label": data.models[row["model"]]["label"], **row}
            for place, row in enumerate(order[:MOST], start=1)
        ]
    return analysis.frame(rows, TABLE) if rows else analysis.nothing(TABLE, analysis.NO_TARGETS)


def _counted(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """How many are far, how many have flags, and how far both kinds are in the mean."""
    flagged = [row for row in rows if row["flags"]]
    others = [row for row in rows if not row["flags"]]
    return {
        "models_far": sum(row["far"] for row in rows),
        "flagged": len(flagged),
        "flagged_far": sum(row["far"] for row in flagged),
        "flagged_mean": _mean_distance(flagged),
        "others_mean": _mean_distance(others),
    }


def _mean_distance(rows: list[dict[str, Any]]) -> float | None:
    return float(np.mean([abs(row["difference"]) for row in rows])) if rows else None


def sentence(table: pl.DataFrame) -> str:
    """How many models are far off, which the most, and whether flags tell them."""
    if reason := analysis.why(table):
        return f"No analysis of failures: {reason}."
    parts = []
    for (_,), rows in paired.spoken(table).group_by("outcome", maintain_order=True):
        row = rows.row(0, named=True)
        if row["model"] is None:
            parts.append(f"{row['title']}: {row['reason']}.")
            continue
        words = (
            f"{row['title']}: {row['models_far']} of {row['n']} models are at least a third of the "
            f"ranking apart by score and by outcome, the furthest {row['label']} "
            f"(rank {_rank(row['rank_score'])} by score, {_rank(row['rank_outcome'])} by outcome; "
            f"{row['flags'] or 'no flag'})"
        )
        if row["flagged_mean"] is not None and row["others_mean"] is not None:
            words += (
                f". Models with a flag ({row['flagged']}) are {row['flagged_mean']:.1f} ranks off "
                f"in the mean, the others {row['others_mean']:.1f}"
            )
        else:
            words += ". " + ("Every model has a flag" if row["flagged"] else "No model has a flag")
        parts.append(words + ".")
    return " ".join(parts)


def _rank(value: float) -> str:
    return f"{value:g}"
