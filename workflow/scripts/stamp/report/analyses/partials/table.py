"""What is left of a correlation when other things are held fixed: one control, two, and more.

The question of the paper's partial correlations: is the score more than the source metric, or the
size of a model, under another name? Everything is on ranks, so a parameter count and its logarithm
are the same control. The source metric is measured with error, so the partial given it alone also
comes corrected for that.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl

from stamp.config.view_names import SOURCE
from stamp.report import analysis
from stamp.report.analysis import AnalysisData
from stamp.report.comparison import corrected_partial, paired
from stamp.report.comparison.paired import Paired
from stamp.report.outcomes import values
from stamp.report.wording import RHO, number, p_text
from stamp.stats.correlations.correlation import bonett_wright_interval
from stamp.stats.correlations.noisy_control import SimulationSettings
from stamp.stats.correlations.partial_correlation import partial_spearman
from stamp.stats.ranks import spearman

SOURCE_METRIC, PARAMETERS, TEMPERATURE = "source metric", "parameters", "temperature"
PLAIN = "plain source metric"  # where the other is class-matched
AND = " + "
TABLE = {
    **paired.ABOUT,
    "controls": pl.String,
    "k": pl.Int64,
    "n": pl.Int64,
    "df": pl.Int64,
    "rho": pl.Float64,
    "partial": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "p": pl.Float64,
    "p_method": pl.String,
    "p_asymptotic": pl.Float64,
    **corrected_partial.COLUMNS,
    "reason": pl.String,
}
MODELS = {
    **analysis.DESCRIBED,
    "source_metric": pl.Float64,
    "parameters": pl.Float64,
    "temperature": pl.Float64,
    "reason": pl.String,
}


def controls(one: Paired) -> dict[str, np.ndarray]:
    """What is held fixed, [k, n] by name: the source metric, then whatever else is known.

    The source metric is class-matched; where that is another one, the plain one is held fixed too.
    Each alone, each with the source metric, and all at once where those are more than two.
    """
    others = {PARAMETERS: one.parameters, TEMPERATURE: one.temperature, **one.others}
    usable = {name: row for name, row in others.items() if _varies(row[one.known()])}
    single = {SOURCE_METRIC: one.source, **usable}
    found = {name: row[None] for name, row in single.items()}
    found |= {
        f"{SOURCE_METRIC}{AND}{name}": np.stack([one.source, row]) for name, row in usable.items()
    }
    if one.plain is not None:
        found[PLAIN] = one.plain[None]
    if len(usable) > 1:
        found[AND.join(single)] = np.stack(list(single.values()))
    return found


def _varies(row: np.ndarray) -> bool:
    """Whether a control tells models apart."""
    known = row[~np.isnan(row)]
    return bool(known.size and (known != known[0]).any())


def partial_row(
    x: np.ndarray, y: np.ndarray, given: np.ndarray, settings: dict[str, Any], seed: int
) -> dict[str, Any]:
    """Rho of x and y, and given the controls [k, n], over the models that have all of them.

    ``partial`` is of residuals of ranks. The interval is Bonett and Wright's with n - k in the
    place of n; p is Freedman and Lane's permutation p, ``p_asymptotic`` that of t with n - 2 - k
    degrees of freedom.
    """
    both = ~np.isnan(np.vstack([x, y, given])).any(axis=0)
    x, y, given = x[both], y[both], given[:, both]
    found = partial_spearman(x, y, given, settings["permutations"], seed)
    row: dict[str, Any] = {
        "k": len(given),
        "n": found.n,
        "df": found.df,
        "rho": float(spearman(x, y)) if both.sum() > 1 else math.nan,
        "partial": found.rho,
        "p": found.p_permutation,
        "p_method": found.permutation_method or None,
        "p_asymptotic": found.p_asymptotic,
        "reason": found.reason or None,
    }
    if not found.reason:
        ends = bonett_wright_interval(found.rho, found.n - len(given), settings["level"])
        row |= {"low": float(ends.low), "high": float(ends.high)}
    return row


def corrected_row(one: Paired, data: AnalysisData) -> dict[str, Any]:
    """The partial given the source metric, corrected for that metric's measurement error."""
    settings = SimulationSettings(seed=data.seed, level=data.settings["level"])
    return corrected_partial.corrected_partial(
        one.x, one.y, one.source, one.source_errors, settings
    )


def models(data: AnalysisData) -> pl.DataFrame:
    """What can be held fixed of every model."""
    found = analysis.describe(data)
    keys = found["model"].to_list()
    more = {"source_metric": pl.Series(values(data.outcomes, SOURCE, keys))}
    kept = [name for name in (PARAMETERS, TEMPERATURE) if name in data.scores.columns]
    known = data.scores.select("model", *(pl.col(name).cast(pl.Float64) for name in kept))
    joined = found.with_columns(**more).join(known, on="model", how="left", maintain_order="left")
    return analysis.frame(joined.rows(named=True), MODELS)


def table(data: AnalysisData) -> pl.DataFrame:
    """Partial correlations of each score with each outcome, given each set of controls.

    The last row of a score turns the question round: the source metric with the outcome, given the
    score.
    """
    rows = []
    for one in paired.pairings(data):
        settings = dict(data.settings)
        for name, given in controls(one).items():
            found = partial_row(one.x, one.y, given, settings, data.seed)
            if name == SOURCE_METRIC:
                found |= corrected_row(one, data)
            rows.append({**one.about, "controls": name, **found})
        found = partial_row(one.source, one.y, one.x[None], settings, data.seed)
        about = {**one.about, "score": SOURCE_METRIC, "controls": one.score}
        rows.append({**about, **found})
    return analysis.frame(rows, TABLE) if rows else analysis.nothing(TABLE, analysis.NO_TARGETS)


def sentence(table: pl.DataFrame) -> str:
    """The partial given the source metric, given parameters too, and the other way round.

    The plain partial given the source metric favours the score: the corrected one stands beside it.
    """
    if reason := analysis.why(table):
        return f"No partial correlations: {reason}."
    turned = {
        row["outcome"]: row
        for row in table.filter(
            (pl.col("models") == "declared") & (pl.col("controls") == "STAMP")
        ).iter_rows(named=True)
    }
    parts = []
    for (outcome,), rows in paired.spoken(table).group_by("outcome", maintain_order=True):
        by_name = {row["controls"]: row for row in rows.iter_rows(named=True)}
        one = by_name[SOURCE_METRIC]
        words = f"{one['title']}: {RHO} = {number(one['rho'])} (n = {one['n']})"
        words += f", given the source metric {_partial(one)}, {_corrected(one)}"
        if both := by_name.get(f"{SOURCE_METRIC}{AND}{PARAMETERS}"):
            words += f", given parameters too {_partial(both)}"
        words += f"; the source metric's, given STAMP, {_partial(turned[outcome])}"
        parts.append(words + ".")
    return " ".join(parts)


def _partial(row: dict[str, Any]) -> str:
    if row["partial"] is None:
        return f"undefined: {row['reason']}"
    return f"{number(row['partial'])} ({p_text(row['p'])}, df = {row['df']})"


def _corrected(row: dict[str, Any]) -> str:
    if row["corrected"] is None:
        return f"not corrected for that metric's error ({row['corrected_reason']})"
    value = f"{number(row['corrected'])} ({p_text(row['corrected_p'])})"
    return f"corrected for that metric's error {value}"
