"""Whether embeddings of semantic pairs are more alike than those of random pairs, by model."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from stamp.report import analysis
from stamp.report.analysis import AnalysisData
from stamp.report.outcomes import MEAN
from stamp.report.profiles import associations
from stamp.report.profiles.associations import Quantity
from stamp.report.wording import RHO, number, p_text

COUNT, ASSOCIATION = "count", "association"
TITLES = {"difference": "difference of mean cosines", "delta": "Cliff's delta of cosines"}
NO_MODEL = "no model is counted"
TABLE = {
    "what": pl.String,
    "quantity": pl.String,
    "name": pl.String,
    **associations.ASSOCIATION,
    "count": pl.Int64,
    "share": pl.Float64,
    "exceptions": pl.String,
    "delta_least": pl.Float64,
    "delta_median": pl.Float64,
    "delta_largest": pl.Float64,
    "log10_p_largest": pl.Float64,
}
MODELS = {
    **analysis.DESCRIBED,
    "cosine_semantic": pl.Float64,
    "cosine_random": pl.Float64,
    **{
        f"{name}{end}": pl.Float64
        for name in ("difference", "delta")
        for end in ("", "_low", "_high")
    },
    "log10_p": pl.Float64,
    "n_semantic": pl.Int64,
    "n_random": pl.Int64,
    "reason": pl.String,
}


def models(data: AnalysisData) -> pl.DataFrame:
    """Every model's mean cosines, their difference, Cliff's delta, and log10 of p."""
    rows = []
    for said in analysis.describe(data).iter_rows(named=True):
        own = data.profiles.filter(pl.col("model") == said["model"])
        found = {(row["quantity"], row["part"]): row for row in own.to_dicts()}
        for kind in ("semantic", "random"):
            row = found.get(("cosine", kind), {})
            said |= {f"cosine_{kind}": row.get("value"), f"n_{kind}": row.get("n")}
        for name in ("difference", "delta", "log10_p"):
            row = found.get((name, None), {})
            said |= {name: row.get("value"), "reason": row.get("reason")}
            said |= {f"{name}_low": row.get("low"), f"{name}_high": row.get("high")}
        rows.append(said)
    return analysis.frame(rows, MODELS)


def table(data: AnalysisData) -> pl.DataFrame:
    """How many models have the larger mean cosine over semantic pairs, and rho with the outcomes.

    The ``count`` row of a filter: in how many of n models semantic pairs have the larger mean
    cosine, the models in which they have not, the range of Cliff's delta over the models, and
    log10 of the largest Mann-Whitney p. ``association`` rows: rho of the difference of means and of
    delta with STAMP and with each outcome.
    """
    found = {
        name: associations.quantity(data, name, what=ASSOCIATION, quantity=name, name=title)
        for name, title in TITLES.items()
    }
    p = associations.quantity(data, "log10_p")
    rows = [_count(data, which, found, p) for which in analysis.filters(data)]
    return analysis.frame([*rows, *associations.associate(data, list(found.values()))], TABLE)


def _count(
    data: AnalysisData, which: str, found: dict[str, Quantity], p: Quantity
) -> dict[str, Any]:
    keys = analysis.kept(data, which, MEAN)["model"].to_list()
    gap, delta = (found[name].of(keys) for name in TITLES)
    known = ~np.isnan(gap)
    row: dict[str, Any] = {"what": COUNT, "models": which, "n": int(known.sum())}
    if not known.any():
        reason = found["difference"].reason if keys else NO_MODEL
        return {**row, "reason": reason or NO_MODEL}
    larger = gap > 0
    lost = [key for key, has, more in zip(keys, known, larger, strict=True) if has and not more]
    return row | {
        "count": int(larger.sum()),
        "share": float(larger[known].mean()),
        "exceptions": ", ".join(lost) or None,
        "delta_least": float(np.nanmin(delta)),
        "delta_median": float(np.nanmedian(delta)),
        "delta_largest": float(np.nanmax(delta)),
        "log10_p_largest": float(np.nanmax(p.of(keys))),
    }


def sentence(table: pl.DataFrame) -> str:
    """In how many models semantic pairs are more alike, by how much, and rho with STAMP."""
    declared = table.filter(pl.col("models") == "declared")
    row = declared.filter(pl.col("what") == COUNT).row(0, named=True)
    if row["count"] is None:
        return f"No cosines of embeddings: {row['reason']}."
    words = (
        f"In {row['count']} of {row['n']} models ({row['share']:.0%}) the embeddings of semantic "
        "pairs have the larger mean cosine; Cliff's delta between the cosines of semantic and "
        f"random pairs is {number(row['delta_least'])} to {number(row['delta_largest'])}, "
        f"{number(row['delta_median'])} in the median, and the largest Mann\u2013Whitney p is "
        f"10^{row['log10_p_largest']:.0f}, as if pairs were independent."
    )
    if row["exceptions"]:
        words += f" Not in {row['exceptions']}."
    shown = associations.headline(table.filter(pl.col("what") == ASSOCIATION))
    said = [
        f"{RHO} with {one['title']} is {number(one['rho'])} ({p_text(one['p'])}, n = {one['n']})"
        for one in shown.filter(pl.col("quantity") == "delta").drop_nulls("rho").to_dicts()
    ]
    return words + (f" Of delta, {', '.join(said)}." if said else "")
