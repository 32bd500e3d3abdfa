"""Whether the time between two visits matters: STAMP from pairs i and i + g, for each gap g."""

from __future__ import annotations

import polars as pl

from stamp.report import analysis
from stamp.report.analysis import AnalysisData
from stamp.report.profiles import associations
from stamp.report.profiles.associations import STAMP
from stamp.report.wording import RHO, number

TABLE = {
    "gap": pl.Int64,
    **associations.ASSOCIATION,
    "pairs": pl.Int64,
    "changed": pl.Int64,
    "changed_share": pl.Float64,
}
MODELS = {
    **analysis.DESCRIBED,
    "gap": pl.Int64,
    "pairs": pl.Int64,
    "gap_stamp": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "within": pl.Float64,
    "reason": pl.String,
}


def gaps(data: AnalysisData) -> list[int]:
    """The gaps that the profiles have rows of."""
    return sorted({int(part) for part in data.profiles["part"].drop_nulls().unique()})


def models(data: AnalysisData) -> pl.DataFrame:
    """Every model's score at each gap with its interval, and SV."""
    found = associations.by_part(data, ["stamp"]).with_columns(
        gap=pl.col("part").cast(pl.Int64), pairs="n", gap_stamp="value"
    )
    within = data.profiles.filter(pl.col("quantity") == "within")
    found = found.join(
        within.select("model", "part", within="value"),
        on=["model", "part"],
        how="left",
        maintain_order="left",
    )
    return analysis.frame(found.rows(named=True), MODELS)


def table(data: AnalysisData) -> pl.DataFrame:
    """Rho of STAMP at each gap with the study's own STAMP and with each outcome.

    ``pairs`` and ``changed`` are the same for all models: how many pairs of pooled images are so
    many visits apart, and how many of those changed label. A longer history belongs to other
    patients than a short one: gaps differ in whom they are of, not in time alone.
    """
    at = gaps(data)
    if not at:
        return analysis.nothing(TABLE, "no model has a profile of gaps")
    counts = {gap: _pairs(data, gap) for gap in at}
    rows = associations.associate(
        data, [associations.quantity(data, "stamp", gap, gap=gap) for gap in at]
    )
    return analysis.frame([{**row, **counts[row["gap"]]} for row in rows], TABLE)


def _pairs(data: AnalysisData, gap: int) -> dict[str, float | int | None]:
    rows = data.profiles.filter(
        (pl.col("quantity") == "changed")
        & (pl.col("part") == str(gap))
        & pl.col("value").is_not_null()
    )
    if rows.is_empty():
        return {"pairs": None, "changed": None, "changed_share": None}
    pairs, share = rows["n"][0], rows["value"][0]
    return {"pairs": pairs, "changed": round(share * pairs), "changed_share": share}


def sentence(table: pl.DataFrame) -> str:
    """The score and rho of the shortest and of the longest gap, and the changed labels."""
    if reason := analysis.why(table):
        return f"No analysis of follow-up gaps: {reason}."
    rows = associations.headline(table)
    own = rows.filter((pl.col("outcome") == STAMP) & pl.col("mean").is_not_null())
    if own.is_empty():
        return f"No analysis of follow-up gaps: {associations.first_reason(rows)}."
    first, last = own.row(0, named=True), own.row(-1, named=True)
    words = (
        f"Over visits {first['gap']} apart the mean score of the models is {number(first['mean'])} "
        f"({first['pairs']:,} pairs, of which {first['changed']:,} changed label), over visits "
        f"{last['gap']} apart {number(last['mean'])} ({last['pairs']:,} pairs, {last['changed']:,} "
        f"changed); the rank correlation with the study's own score is {number(first['rho'])} and "
        f"{number(last['rho'])}."
    )
    for one in rows.filter(pl.col("outcome") != STAMP).iter_rows(named=True):
        if one["gap"] in (first["gap"], last["gap"]) and one["rho"] is not None:
            words += (
                f" {one['title']}: {RHO} at gap {one['gap']} is {number(one['rho'])} "
                f"(n = {one['n']})."
            )
    return words
