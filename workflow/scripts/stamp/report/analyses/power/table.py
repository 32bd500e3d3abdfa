"""How likely a study of this many models finds a rank correlation that is there.

The paper simulates under the null, which gives the size of a test, not its power; both stand side
by side here. Power says nothing on what was found: it depends on the number of models alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import polars as pl

from stamp.report import analysis
from stamp.report.analysis import AnalysisData
from stamp.report.comparison import paired
from stamp.report.wording import RHO, number
from stamp.stats.correlations.correlation import FEWEST
from stamp.stats.power import critical_value, spearman_power

RHOS = (0.3, 0.5, 0.7, 0.8, 0.9)
GRID = tuple(step / 20 for step in range(20))  # true rhos of the curve that 80 % is sought on
WANTED, ALPHA, DRAWS = 0.8, 0.05, 10_000
TABLE = {
    "models": pl.String,
    "outcome": pl.String,
    "title": pl.String,
    "n": pl.Int64,
    "alpha": pl.Float64,
    "critical": pl.Float64,
    "size": pl.Float64,
    "true_rho": pl.Float64,
    "power": pl.Float64,
    "standard_error": pl.Float64,
    "power_t": pl.Float64,
    "detectable": pl.Float64,
    "draws": pl.Int64,
    "rho": pl.Float64,
    "reason": pl.String,
}
MODELS = {**analysis.DESCRIBED, "models": pl.String, "outcome": pl.String, "reason": pl.String}


@dataclass(frozen=True, slots=True)
class Design:
    """What n models can find: size, the curve of power over ``GRID``, and power by the t test."""

    critical: float
    size: float
    power: dict[float, float]
    standard_error: dict[float, float]
    by_t: dict[float, float]
    detectable: float | None


@cache
def design(n: int, seed: int) -> Design:
    """Gaussian-copula simulation, rejecting by the permutation critical value."""
    found = spearman_power(n, GRID, DRAWS, ALPHA, seed, "permutation")
    by_t = spearman_power(n, RHOS, DRAWS, ALPHA, seed, "t")
    return Design(
        critical=critical_value(n, ALPHA, seed),
        size=float(found.power[0]),
        power=dict(zip(GRID, found.power.tolist(), strict=True)),
        standard_error=dict(zip(GRID, found.standard_error.tolist(), strict=True)),
        by_t=dict(zip(RHOS, by_t.power.tolist(), strict=True)),
        detectable=crossing(found.power, WANTED),
    )


def crossing(power: np.ndarray, wanted: float) -> float | None:
    """The true rho at which the power over ``GRID`` first reaches ``wanted``, between its points by
    linear interpolation; None where it does not.
    """
    reached = np.flatnonzero(power >= wanted)
    if not reached.size:
        return None
    at = int(reached[0])
    if at == 0:
        return GRID[0]
    share = (wanted - power[at - 1]) / (power[at] - power[at - 1])
    return float(GRID[at - 1] + share * (GRID[at] - GRID[at - 1]))


def models(data: AnalysisData) -> pl.DataFrame:
    """The models behind each outcome's n."""
    said = {row["model"]: row for row in analysis.describe(data).iter_rows(named=True)}
    rows = [
        {**said[one.keys[place]], "models": one.models, "outcome": one.outcome}
        for one in paired.pairings(data, matched=False)
        for place in np.flatnonzero(one.known())
    ]
    return analysis.frame(rows, MODELS) if rows else analysis.nothing(MODELS, analysis.NO_TARGETS)


def table(data: AnalysisData) -> pl.DataFrame:
    """Power at true rhos of 0.3 to 0.9 for each outcome's n, the size of the test beside it.

    ``power`` and ``size`` reject where |rho| reaches ``critical``, the permutation critical value,
    ``power_t`` by the t approximation; ``detectable`` is the true rho that 80 % of such studies
    would find, ``rho`` the one that this study observed.
    """
    rows: list[dict[str, Any]] = []
    for one in paired.pairings(data, matched=False):
        n = int(one.known().sum())
        common = {**one.about, "n": n, "alpha": ALPHA, "draws": DRAWS}
        if n < FEWEST:
            few = f"{n} models are too few: at least {FEWEST} are needed"
            rows.append({**common, "reason": few})
            continue
        found, rho = design(n, data.seed), analysis.rank_correlation(one.x, one.y)
        common |= {"critical": _finite(found.critical), "size": found.size, "rho": rho}
        rows += [
            {
                **common,
                "true_rho": true,
                "power": found.power[true],
                "standard_error": found.standard_error[true],
                "power_t": found.by_t[true],
                "detectable": found.detectable,
            }
            for true in RHOS
        ]
    return analysis.frame(rows, TABLE) if rows else analysis.nothing(TABLE, analysis.NO_TARGETS)


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def sentence(table: pl.DataFrame) -> str:
    """Power at each number of models that an outcome has, and the size of the test."""
    if reason := analysis.why(table):
        return f"No power: {reason}."
    rows = table.filter((pl.col("models") == "declared") & pl.col("power").is_not_null())
    if rows.is_empty():
        return f"No power: {table['reason'].drop_nulls()[0]}."
    parts = []
    for (n,), part in rows.group_by("n", maintain_order=True):
        own = part.unique("true_rho", maintain_order=True).sort("true_rho")
        first = own.row(0, named=True)
        each = ", ".join(
            f"{row['power']:.3f} for {RHO} = {row['true_rho']:g}"
            for row in own.iter_rows(named=True)
        )
        parts.append(
            f"With {n} models a two-sided permutation test at {first['alpha']:g} rejects "
            f"{_where(first)}, in {100 * first['size']:.1f} % of studies without any correlation; "
            f"its power is {each}. {_least(first)}."
        )
    return " ".join(parts)


def _where(row: dict[str, Any]) -> str:
    if row["critical"] is None:
        return "nothing"
    return f"where |{RHO}| reaches {number(row['critical'])}"


def _least(row: dict[str, Any]) -> str:
    share = f"{100 * WANTED:.0f} % of such studies would find"
    if row["detectable"] is None:
        return f"No true {RHO} up to {GRID[-1]:g} is one that {share}"
    return f"{share} a true {RHO} of {number(row['detectable'])}"
