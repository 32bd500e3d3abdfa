"""Whether models that augmentation moves little do better: the nuisance ratio SV_aug / AV."""

from __future__ import annotations

import polars as pl

from stamp.report.analysis import DESCRIBED, RHO, Data, frame, number, p_text
from stamp.report.profile_tables import (
    ASSOCIATION,
    STAMP,
    associations,
    by_part,
    first_reason,
    headline,
    quantity,
    with_outcome,
)

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
    found = with_outcome(data, by_part(data, ["ratio"]))
    found = found.with_columns(augmentation="part", ratio="value", images="n")
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
