"""Where in a network STAMP comes from: its value layer by layer, and the gain of each step."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import polars as pl

from stamp.report import analysis
from stamp.report.analyses.layers.profile import KINDS, LAYERS
from stamp.report.analysis import AnalysisData
from stamp.report.profiles import associations
from stamp.report.profiles.associations import STAMP, Quantity
from stamp.report.wording import RHO, number, p_text

ARROW = " to "
STEPS = tuple(pairwise(LAYERS))
SPANS = (("mid", "penultimate"),)  # the transition that the paper names
DEEP = ("early", "penultimate")
TABLE = {"kind": pl.String, "what": pl.String, "layer": pl.String, **associations.ASSOCIATION}
MODELS = {
    **analysis.DESCRIBED,
    "kind": pl.String,
    "what": pl.String,
    "layer": pl.String,
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "n": pl.Int64,
    "outcome": pl.String,
    "outcome_value": pl.Float64,
    "reason": pl.String,
}


def features(data: AnalysisData, kind: str) -> Iterator[Quantity]:
    """STAMP of each layer, the gain of each transition, and penultimate minus early.

    ``what`` is ``layer``, ``gain`` (of neighbouring layers), ``span`` or ``deep minus early``.
    """
    at = {
        layer: associations.quantity(data, kind, layer, kind=kind, what="layer", layer=layer)
        for layer in LAYERS
    }
    yield from at.values()
    for what, pairs in (("gain", STEPS), ("span", SPANS), ("deep minus early", (DEEP,))):
        for first, second in pairs:
            yield at[second].minus(at[first], what=what, layer=f"{first}{ARROW}{second}")


def models(data: AnalysisData) -> pl.DataFrame:
    """Every model's STAMP at each layer with its interval, and every difference."""
    known = associations.by_part(data, KINDS).with_columns(
        kind="quantity", layer="part", what=pl.lit("layer")
    )
    said = {
        row["model"]: row
        for row in associations.with_outcome(data, analysis.describe(data)).to_dicts()
    }
    rows = [{**row, **said[row["model"]]} for row in known.to_dicts()]
    for kind in KINDS:
        for one in features(data, kind):
            if one.about["what"] != "layer":
                rows += [
                    {**said[key], **one.about, "value": value}
                    for key, value in one.values.items()
                    if key in said
                ]
    return analysis.frame(rows, MODELS)


def table(data: AnalysisData) -> pl.DataFrame:
    """Rho of each layer's STAMP and of each gain with the study's STAMP and with each outcome."""
    found = [one for kind in KINDS for one in features(data, kind)]
    return analysis.frame(associations.associate(data, found), TABLE)


def sentence(table: pl.DataFrame) -> str:
    """The mean of each layer, of penultimate minus early, and the layer that goes best with it."""
    rows = associations.headline(table).filter(pl.col("kind") == "raw")
    own = rows.filter((pl.col("outcome") == STAMP) & (pl.col("what") == "layer"))
    means = own.drop_nulls("mean")
    taps = means.filter(pl.col("layer") != "output")
    if taps.is_empty():
        return f"No STAMP by layer: {associations.first_reason(own)}."
    listed = ", ".join(f"{one['layer']} {number(one['mean'])}" for one in means.to_dicts())
    words = f"STAMP by layer, mean over models: {listed}."
    deep = rows.filter(pl.col("what") == "deep minus early")
    for one in deep.iter_rows(named=True):
        words += (
            f" Penultimate minus early and {one['title']}: {RHO} = {number(one['rho'])} "
            f"({p_text(one['p'])}, n = {one['n']})."
        )
    best = rows.filter((pl.col("outcome") != STAMP) & (pl.col("what") == "layer"))
    for one in best.drop_nulls("rho").sort("rho", descending=True).head(1).to_dicts():
        words += (
            f" Of the layers {one['layer']} goes best with {one['title']}: {RHO} = "
            f"{number(one['rho'])}, the source metric's {number(one['source_metric_rho'])}."
        )
    return words
