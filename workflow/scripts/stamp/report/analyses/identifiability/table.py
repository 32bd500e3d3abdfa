"""The paper's conditions, measured: centroid gaps and sensitivity against STAMP and the outcomes.

Over all models together and within each family: a correlation that only families make is none of
the models.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import polars as pl

from stamp.report import analysis
from stamp.report.analysis import AnalysisData
from stamp.report.profiles import associations
from stamp.report.profiles.associations import STAMP, Quantity
from stamp.report.wording import RHO, number, p_text
from stamp.stats.correlation import FEWEST

QUANTITIES = {
    "centroid_gap": "centroid gap",
    "side_gap": "gap of positives and negatives",
    "lipschitz": "Lipschitz proxy",
}
# Other readings of a quantity, which a sentence names in a few words.
VARIANTS = {
    "lipschitz": {
        "lipschitz_spectral": "spectral norm of the Jacobian",
        "lipschitz_pairs": "slope between semantic pairs",
    }
}
TITLES = QUANTITIES | {key: title for own in VARIANTS.values() for key, title in own.items()}
POOLED = "all families"
TABLE = {"quantity": pl.String, "name": pl.String, "family": pl.String, **associations.ASSOCIATION}
MODELS = {
    **analysis.DESCRIBED,
    "quantity": pl.String,
    "name": pl.String,
    "value": pl.Float64,
    "n": pl.Int64,
    "reason": pl.String,
}


def models(data: AnalysisData) -> pl.DataFrame:
    """Every model's centroid gaps and Lipschitz proxy with its variants."""
    found = associations.by_part(data, list(TITLES)).with_columns(
        name=pl.col("quantity").replace_strict(TITLES, default=None)
    )
    return analysis.frame(found.rows(named=True), MODELS)


def families(data: AnalysisData) -> list[str]:
    """The families of at least four models."""
    names = [data.models[key]["family"] for key in data.scores["model"]]
    return [name for name in sorted(set(names)) if names.count(name) >= FEWEST]


def table(data: AnalysisData) -> pl.DataFrame:
    """Rho of each quantity with STAMP and with each outcome: over all models, then by family."""
    found = []
    for name, title in TITLES.items():
        pooled = associations.quantity(data, name, quantity=name, name=title, family=POOLED)
        found += [pooled, *(_within(data, pooled, family) for family in families(data))]
    return analysis.frame(associations.associate(data, found), TABLE)


def _within(data: AnalysisData, pooled: Quantity, family: str) -> Quantity:
    own = {k: value for k, value in pooled.values.items() if data.models[k]["family"] == family}
    return replace(pooled, about={**pooled.about, "family": family}, values=own)


def sentence(table: pl.DataFrame) -> str:
    """Rho with STAMP over all models and within families, of each quantity that models have."""
    parts = []
    shown = associations.headline(table)
    for name, title in QUANTITIES.items():
        rows = shown.filter(pl.col("quantity") == name)
        pooled = rows.filter(pl.col("family") == POOLED)
        if pooled["rho"].is_null().all():
            parts.append(f"No {title}: {associations.first_reason(pooled)}.")
            parts += _variants(shown, VARIANTS.get(name, {}))
            continue
        said = [
            f"{RHO} with {one['title']} is {number(one['rho'])} ({p_text(one['p'])}, "
            f"n = {one['n']})"
            for one in pooled.iter_rows(named=True)
        ]
        words = f"{title[0].upper()}{title[1:]}: {', '.join(said)}"
        inside = rows.filter(
            (pl.col("family") != POOLED) & (pl.col("outcome") == STAMP)
        ).drop_nulls("rho")
        listed = ", ".join(
            f"{one['family']} {number(one['rho'])} (n = {one['n']})" for one in inside.to_dicts()
        )
        parts.append(words + (f"; with STAMP within families: {listed}." if listed else "."))
        parts += _variants(shown, VARIANTS.get(name, {}))
    return " ".join(parts)


def _variants(shown: pl.DataFrame, titles: Mapping[str, str]) -> list[str]:
    """Rho of a quantity's variants over all models, in one sentence where models have them."""
    said = []
    for name, title in titles.items():
        rows = shown.filter((pl.col("quantity") == name) & (pl.col("family") == POOLED))
        each = [
            f"{RHO} {number(one['rho'])} with {one['title']} (n = {one['n']})"
            for one in rows.drop_nulls("rho").iter_rows(named=True)
        ]
        if each:
            said.append(f"{title}, {' and '.join(each)}")
    return [f"Its variants: {'; '.join(said)}."] if said else []
