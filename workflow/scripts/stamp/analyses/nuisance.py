"""Whether models that augmentation moves little do better: the nuisance ratio SV_aug / AV."""

from __future__ import annotations

import polars as pl

from stamp.analyses import DESCRIBED, RHO, Data, frame, number, p_text, shown_outcomes
from stamp.analyses.profiled import (
    ASSOCIATION,
    STAMP,
    associations,
    by_part,
    first_reason,
    headline,
    quantity,
)
from stamp.outcomes import MEAN, values

AUGMENTATIONS = ("composite", "flip", "rotation", "brightness", "contrast", "crop")
DEFAULT = "composite"
TABLE = {"augmentation": pl.String, **ASSOCIATION}
MODELS = {
    **DESCRIBED,
    "augmentation": pl.String,
    "ratio": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "images": pl.Int64,
    "outcome": pl.String,
    "outcome_value": pl.Float64,
    "reason": pl.String,
}


def models(data: Data) -> pl.DataFrame:
    """Every model's ratio under each augmentation, beside the mean outcome or the only one."""
    names = shown_outcomes(data)
    shown = MEAN if MEAN in names else next(iter(names), None)
    found = by_part(data, ["ratio"])
    keys = found["model"].to_list()
    truth = values(data.outcomes, shown, keys) if shown else [None] * len(keys)
    found = found.with_columns(
        augmentation="part",
        ratio="value",
        images="n",
        outcome=pl.lit(shown, dtype=pl.String),
        outcome_value=pl.Series(truth, dtype=pl.Float64),
    )
    return frame(found.rows(named=True), MODELS)


def table(data: Data) -> pl.DataFrame:
    """Rho of each augmentation's ratio with STAMP and with each outcome.

    The ratio is 1 - Aug-STAMP of the same augmentation, so its rho is that of Aug-STAMP with the
    other sign.
    """
    found = [quantity(data, "ratio", one, augmentation=one) for one in AUGMENTATIONS]
    return frame(associations(data, found), TABLE)


def sentence(table: pl.DataFrame) -> str:
    """Rho of the composite's ratio with STAMP and with the mean outcome."""
    rows = headline(table).filter(pl.col("augmentation") == DEFAULT)
    if rows["rho"].is_null().all():
        return f"No nuisance ratio: {first_reason(rows)}."
    own = rows.filter(pl.col("outcome") == STAMP).row(0, named=True)
    words = (
        f"The outputs move under all augmentations together by {number(own['mean'])} of what "
        f"random pairs are apart, in the mean of {own['n']} models."
    )
    for one in rows.iter_rows(named=True):
        words += (
            f" The ratio and {one['title']}: {RHO} = {number(one['rho'])} ({p_text(one['p'])}, "
            f"n = {one['n']}; partial, given the source metric, {number(one['partial'])})."
        )
    return words
