"""How well each score predicted each outcome: the table of correlations, and the tables of ranks.

Every predictor is set beside the source metric, which needs labels but no target data either, and
every correlation is given with its partial given the source metric: the honest question is what a
score adds to it. That partial is biased towards the score, so its corrected value stands beside it.
The source metric that is held fixed is class-matched where a target has another mix of classes; the
partial given the plain one stands beside it too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import polars as pl

from stamp.config.view_names import SOURCE
from stamp.report.comparison import corrected_partial
from stamp.report.main_table import SCORES
from stamp.report.outcomes import outcome_names, source_covariance, source_outcome, values
from stamp.report.scoreboard import keeps, predictors, uncontaminated
from stamp.stats.correlations.correlation import known_spearman
from stamp.stats.correlations.correlation_summary import Correlation, CorrelationSettings, correlate
from stamp.stats.correlations.noisy_control import SimulationSettings
from stamp.stats.rank_intervals import outranks, rank_intervals

SOURCE_METRIC, SOURCE_MATCHED = "source_metric", "source_matched"
OF_SOURCE = (SOURCE_METRIC, SOURCE_MATCHED)
PARTIALS = ("source", "plain_source", "parameters", "source_and_parameters")
CORRECTED = {f"partial_source_{name}": kind for name, kind in corrected_partial.COLUMNS.items()}


def predictor_values(
    board: pl.DataFrame, tidy: pl.DataFrame, unfiltered: bool, outcome: str
) -> dict[str, np.ndarray]:
    """Every predictor of the models, NaN where a model has none.

    Unfiltered, the headline is the raw formula: a degenerate model shows where it would rank. The
    class-matched source metric is there where it is another than the plain one.
    """
    models = board["model"].to_list()
    found = {name: board[name].cast(pl.Float64).to_numpy() for name in predictors(board.columns)}
    if unfiltered:
        found["stamp"] = board["raw"].to_numpy()
    found[SOURCE_METRIC] = values(tidy, SOURCE, models)
    if (matched := source_outcome(tidy, outcome)) != SOURCE:
        found[SOURCE_MATCHED] = values(tidy, matched, models)
    return found


def correlation_row(found: Correlation, models: list[str]) -> dict[str, Any]:
    """A correlation as a flat row."""
    row = {
        name: getattr(found, name)
        for name in found.__dataclass_fields__
        if name not in ("partials", "loo_most_influential")
    }
    which = found.loo_most_influential
    row["loo_most_influential"] = None if which is None else models[which]
    for name, partial in found.partials.items():
        row[f"partial_{name}"] = partial.rho
        row[f"partial_{name}_n"] = partial.n
        row[f"partial_{name}_p"] = partial.p_permutation
        row[f"partial_{name}_reason"] = partial.reason or None
    return row


def correlations(
    board: pl.DataFrame, tidy: pl.DataFrame, settings: Mapping[str, Any], seed: int
) -> pl.DataFrame:
    """One row per filter, outcome and predictor, with tests, intervals, partials and robustness.

    ``source_metric_rho`` is that of the source metric over the models of the row, class-matched
    where that is another (then ``plain_source_rho`` is the plain one's); a partial has its own n,
    since a model may lack what is controlled for. ``partial_source_corrected`` takes the
    error of the source metric into account; STAMP's has an interval.
    Where a model was trained or selected on a target, the filter ``uncontaminated`` is there too.
    """
    how = CorrelationSettings(seed=seed, **settings)
    rows, filters = [], list(keeps(board))
    known: dict[Any, list[dict[str, Any]]] = {}  # filters that keep the same models share rows
    if board["contaminated"].is_not_null().any():
        filters.append("uncontaminated")
    for name in filters:
        for outcome in outcome_names(tidy):
            keep = (
                uncontaminated(board, outcome) if name == "uncontaminated" else keeps(board)[name]
            )
            kept = board.filter(keep)
            headline = kept["raw" if name == "all" else "stamp"].cast(pl.Float64)
            same = (outcome, *kept["model"], headline.to_numpy().tobytes())
            if same not in known:
                known[same] = list(_of_outcome(kept, tidy, name == "all", outcome, how))
            rows += [{"filter": name, "outcome": outcome, **row} for row in known[same]]
    return _table(rows)


def _of_outcome(
    board: pl.DataFrame,
    tidy: pl.DataFrame,
    unfiltered: bool,
    outcome: str,
    settings: CorrelationSettings,
) -> Iterator[dict[str, Any]]:
    """A row for each predictor of an outcome of the board's models."""
    models = board["model"].to_list()
    scores = predictor_values(board, tidy, unfiltered, outcome)
    plain, truth = scores[SOURCE_METRIC], values(tidy, outcome, models)
    source = scores.get(SOURCE_MATCHED, plain)
    errors = source_covariance(tidy, outcome, models)
    parameters = board["parameters"].cast(pl.Float64).to_numpy()
    if f"matched:{outcome}" in board.columns:
        scores["stamp_matched"] = board[f"matched:{outcome}"].cast(pl.Float64).to_numpy()
    for predictor, score in scores.items():
        controls = _controls(predictor, source, parameters)
        if SOURCE_MATCHED in scores and predictor != SOURCE_METRIC:
            controls["plain_source"] = plain
        found = correlate(score, truth, controls, settings)
        row = {"predictor": predictor, **correlation_row(found, models)}
        if predictor not in OF_SOURCE:
            wanted = SimulationSettings(
                seed=settings.seed, level=settings.level, interval=predictor in SCORES
            )
            more = corrected_partial.corrected_partial(score, truth, source, errors, wanted)
            row |= {f"partial_source_{name}": value for name, value in more.items()}
        known = np.where(np.isnan(score), np.nan, 1.0)
        row["source_metric_rho"] = known_spearman(known * source, truth)
        if SOURCE_MATCHED in scores:
            row["plain_source_rho"] = known_spearman(known * plain, truth)
        yield row


def _controls(predictor: str, source: np.ndarray, parameters: np.ndarray) -> dict[str, np.ndarray]:
    if predictor in OF_SOURCE:
        return {"parameters": parameters}
    both = np.stack([source, parameters])
    return {"source": source, "parameters": parameters, "source_and_parameters": both}


def _table(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """The rows with all columns even where a study has no target, NaN as null."""
    empty = correlation_row(Correlation(n=0), [])
    names = ["filter", "outcome", "predictor", *empty, "source_metric_rho", "plain_source_rho"]
    names += [f"partial_{name}{end}" for name in PARTIALS for end in ("", "_n", "_p", "_reason")]
    names += list(CORRECTED)
    texts = {
        "filter",
        "outcome",
        "predictor",
        "permutation_method",
        "reason",
        "loo_most_influential",
    }
    texts |= {f"partial_{name}_reason" for name in (*PARTIALS, "source_corrected")}
    whole = {"n", "bootstrap_valid", *(f"partial_{name}_n" for name in PARTIALS)}
    schema: dict[str, Any] = {
        name: pl.String if name in texts else pl.Int64 if name in whole else pl.Float64
        for name in names
    }
    table = pl.DataFrame(
        [{name: row.get(name) for name in names} for row in rows], schema=schema, orient="row"
    )
    return table.with_columns(pl.col(pl.Float64).fill_nan(None))


def ranks(models: list[str], draws: np.ndarray, level: float) -> pl.DataFrame:
    """Each model's median rank and its interval over the bootstrap draws of all scores."""
    found = rank_intervals(draws, level)
    low, high = np.floor(found.low), np.ceil(found.high)  # a place is a whole number
    table = {"model": models, "rank": found.median, "low": low, "high": high}
    return pl.DataFrame(table).with_columns(pl.col(pl.Float64).fill_nan(None))


def outranking(models: list[str], draws: np.ndarray) -> pl.DataFrame:
    """How often each model (row) scores above each other (column) over the draws."""
    share = outranks(draws)
    table = pl.DataFrame({"model": models, **{key: share[:, j] for j, key in enumerate(models)}})
    return table.with_columns(pl.col(pl.Float64).fill_nan(None))
