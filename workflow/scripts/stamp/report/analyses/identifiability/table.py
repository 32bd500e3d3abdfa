"""The paper's conditions, measured: centroid gaps and sensitivity against STAMP and the outcomes.

Over all models together, within each family and within each superfamily: a correlation that only
families make is none of the models. Where the study also scores labeled pairs, that score stands
beside STAMP.
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
from stamp.stats.correlations.correlation import FEWEST

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
GROUPS = ("family", "superfamily")  # what the zoo says of a model, from the finer to the coarser
LABELED = {"stamp_labeled": "STAMP of labeled pairs"}
TABLE = {
    "quantity": pl.String,
    "name": pl.String,
    "family": pl.String,
    "group": pl.String,
    **associations.ASSOCIATION,
}
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


def groups(data: AnalysisData) -> list[tuple[str, str]]:
    """The families and superfamilies of at least four models, each with which of both it is."""
    found = []
    for group in GROUPS:
        said = [data.models[key].get(group) for key in data.scores["model"]]
        names = [name for name in said if name]
        found += [(group, name) for name in sorted(set(names)) if names.count(name) >= FEWEST]
    return found


def table(data: AnalysisData) -> pl.DataFrame:
    """Rho of each quantity with STAMP, with each outcome, and with STAMP of labeled pairs.

    Over all models, then within each family and superfamily: ``group`` says which of both.
    """
    found = []
    for name, title in TITLES.items():
        pooled = associations.quantity(data, name, quantity=name, name=title, family=POOLED)
        found += [pooled, *(_within(data, pooled, *one) for one in groups(data))]
    further = {column: title for column, title in LABELED.items() if column in data.scores.columns}
    return analysis.frame(associations.associate(data, found, further), TABLE)


def _within(data: AnalysisData, pooled: Quantity, group: str, name: str) -> Quantity:
    own = {k: one for k, one in pooled.values.items() if data.models[k].get(group) == name}
    return replace(pooled, about={**pooled.about, "family": name, "group": group}, values=own)


def sentence(table: pl.DataFrame) -> str:
    """Rho with STAMP over all models and within families, of each quantity that models have."""
    parts = []
    shown = associations.headline(table, LABELED)
    for name, title in QUANTITIES.items():
        rows = shown.filter(pl.col("quantity") == name)
        pooled = rows.filter(pl.col("family") == POOLED)
        if pooled["rho"].is_null().all():
            parts.append(f"No {title}: {associations.first_reason(pooled)}.")
        else:
            parts.append(_words(title, pooled, rows.filter(pl.col("outcome") == STAMP)))
        parts += _variants(shown, VARIANTS.get(name, {}))
    return " ".join(parts)


def _words(title: str, pooled: pl.DataFrame, rows: pl.DataFrame) -> str:
    """Rho of one quantity over all models, and its rho with STAMP within groups of them."""
    said = [
        f"{RHO} with {one['title']} is {number(one['rho'])} ({p_text(one['p'])}, n = {one['n']})"
        for one in pooled.drop_nulls("rho").iter_rows(named=True)
    ]
    words = f"{title[0].upper()}{title[1:]}: {', '.join(said)}"
    for group, kinds in (("family", "families"), ("superfamily", "superfamilies")):
        inside = rows.filter(pl.col("group") == group).drop_nulls("rho")
        listed = ", ".join(
            f"{one['family']} {number(one['rho'])} ({p_text(one['p'])}, n = {one['n']})"
            for one in inside.to_dicts()
        )
        words += f"; with STAMP within {kinds}: {listed}" if listed else ""
    return f"{words}."


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
