"""Whether models that augmentation moves little do better: the nuisance ratio SV_aug / AV."""

from __future__ import annotations

import polars as pl

from stamp.report import analysis
from stamp.report.analyses.nuisance.profile import AUGMENTATIONS
from stamp.report.analysis import AnalysisData
from stamp.report.profiles import associations
from stamp.report.profiles.associations import STAMP
from stamp.report.wording import RHO, number, p_text

DEFAULT = "composite"
TABLE = {"augmentation": pl.String, **associations.ASSOCIATION}
MODELS = {
    **analysis.DESCRIBED,
    "augmentation": pl.String,
    "ratio": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "images": pl.Int64,
    "outcome": pl.String,
    "outcome_value": pl.Float64,
    "reason": pl.String,
}


def models(data: AnalysisData) -> pl.DataFrame:
    """Every model's ratio under each augmentation, beside the mean outcome or the only one."""
    found = associations.with_outcome(data, associations.by_part(data, ["ratio"]))
    found = found.with_columns(augmentation="part", ratio="value", images="n")
    return analysis.frame(found.rows(named=True), MODELS)


def table(data: AnalysisData) -> pl.DataFrame:
    """Rho of each augmentation's ratio with STAMP and with each outcome.

    The ratio is 1 - Aug-STAMP of the same augmentation, so its rho is that of Aug-STAMP with the
    other sign.
    """
    found = [associations.quantity(data, "ratio", one, augmentation=one) for one in AUGMENTATIONS]
    return analysis.frame(associations.associate(data, found), TABLE)


def sentence(table: pl.DataFrame) -> str:
    """Rho of the composite's ratio with STAMP and with the mean outcome."""
    rows = associations.headline(table).filter(pl.col("augmentation") == DEFAULT)
    if rows["rho"].is_null().all():
        return f"No nuisance ratio: {associations.first_reason(rows)}."
    own = rows.filter(pl.col("outcome") == STAMP).row(0, named=True)
    words = (
        f"The outputs move under all augmentations together by {number(own['mean'])} of what "
        f"random pairs are apart, in the mean of {own['n']} models."
    )
    for one in rows.iter_rows(named=True):
        words += (
            f" The ratio and {one['title']}: {RHO} = {number(one['rho'])} ({p_text(one['p'])}, "
            f"n = {one['n']}; partial, given the source metric, {number(one['partial'])}, "
            f"corrected for that metric's error {number(one['partial_corrected'])})."
        )
    return words
