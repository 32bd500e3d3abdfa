"""What the rules that exclude models do: each model's temperature, and rho under each rule."""

from __future__ import annotations

from typing import Any

import polars as pl

from stamp.report import analysis
from stamp.report.analysis import AnalysisData
from stamp.report.main_table import target_title
from stamp.report.outcomes import MEAN, shown_outcomes, values
from stamp.report.wording import RHO, number

TABLE = {
    "rule": pl.String,
    "outcome": pl.String,
    "title": pl.String,
    "left_out": pl.Int64,
    "degenerate": pl.Int64,
    "best_left_out": pl.Float64,
    **analysis.AGREEMENT,
    "models_left_out": pl.String,
    "reason": pl.String,
}
MODELS = {
    **analysis.DESCRIBED,
    "temperature": pl.Float64,
    "bound": pl.String,
    "performance": pl.Float64,
    "degenerate": pl.Boolean,
    "excluded_temperature": pl.String,
    "excluded_chance": pl.String,
    "excluded_declared": pl.String,
}
RULES = {
    "none": (),
    "temperature": ("temperature",),
    "chance": ("chance",),
    "both": ("temperature", "chance"),
}


def models(data: AnalysisData) -> pl.DataFrame:
    """Every model's temperature, whether it ended at a bound, and what each rule says of it.

    ``performance`` is the accuracy or macro-AUROC on the calibration images.
    """
    rules = data.scores.select(
        "model",
        "degenerate",
        "excluded_temperature",
        "excluded_chance",
        excluded_declared="excluded",
    )
    found = analysis.describe(data).join(rules, on="model", maintain_order="left").rows(named=True)
    for row in found:
        record = data.calibrations[row["model"]]
        row |= {"temperature": record["value"], "bound": record["bound"]}
        row["performance"] = record["performance"]
    return analysis.frame(found, MODELS)


def kept_by(data: AnalysisData, rule: str) -> pl.DataFrame:
    """The models that a rule keeps with their score; ``both`` drops what either excludes.

    Under ``none`` degenerate models stay, at their raw value; every rule leaves them out.
    """
    if rule == "none":
        return data.scores.select("model", score=pl.col("raw").cast(pl.Float64))
    keep = ~pl.col("degenerate")
    for one in RULES[rule]:
        keep &= pl.col(f"excluded_{one}").is_null()
    return data.scores.filter(keep).select("model", score=pl.col("stamp").cast(pl.Float64))


def excluded_by(data: AnalysisData, rule: str) -> list[str]:
    """The models that a rule itself excludes."""
    hit = pl.any_horizontal(
        pl.lit(False), *(pl.col(f"excluded_{one}").is_not_null() for one in RULES[rule])
    )
    return data.scores.filter(hit)["model"].to_list()


def table(data: AnalysisData) -> pl.DataFrame:
    """Rho of the score with each outcome without the models that each rule excludes.

    ``best_left_out`` is the best calibration performance among those: a rule that is to find heads
    that do not work should leave out none that does. Models that are degenerate, and no rule's,
    are missing too, and counted apart.
    """
    rows = []
    own = {rule: excluded_by(data, rule) for rule in RULES}
    for outcome in shown_outcomes(data.outcomes):
        for rule in RULES:
            board = kept_by(data, rule)
            keys = board["model"].to_list()
            gone, missing = own[rule], len(data.scores) - len(keys)
            known = [data.calibrations[key]["performance"] for key in gone]
            best = max((one for one in known if one is not None), default=None)
            truth = values(data.outcomes, outcome, keys)
            rows.append(
                {
                    "rule": rule,
                    "outcome": outcome,
                    "title": target_title(outcome, data.texts),
                    "left_out": len(gone),
                    "degenerate": missing - len(gone),
                    "best_left_out": best,
                    "models_left_out": ", ".join(gone) or None,
                    **analysis.agreement(data, outcome, keys, board["score"].to_numpy(), truth),
                }
            )
    reason = analysis.NO_TARGETS
    return analysis.frame(rows, TABLE) if rows else analysis.nothing(TABLE, reason)


def sentence(table: pl.DataFrame) -> str:
    """How many models each rule excludes, and rho under each, for the mean of the targets."""
    if reason := analysis.why(table):
        return f"No {RHO} under the rules that exclude models: {reason}."
    wanted = table.filter(pl.col("outcome") == MEAN)
    rows = wanted if len(wanted) else table
    parts = []
    for (_,), part in rows.group_by("outcome", maintain_order=True):
        own: dict[str, dict[str, Any]] = {row["rule"]: row for row in part.iter_rows(named=True)}
        said = [f"{number(own['none']['rho'])} over all {own['none']['n']} models"]
        said += [
            f"{number(own[rule]['rho'])} over the {own[rule]['n']} that {words}"
            for rule, words in (
                ("temperature", "the temperature rule keeps"),
                ("chance", "the chance rule keeps"),
                ("both", "both keep"),
            )
        ]
        parts.append(f"{own['none']['title']}: {RHO} is {', '.join(said)}.")
    first = {row["rule"]: row for row in rows.iter_rows(named=True)}
    for rule in ("temperature", "chance"):
        row = first[rule]
        if row["left_out"]:
            best = number(row["best_left_out"])
            parts.append(
                f"The {rule} rule excludes {row['models_left_out']}; the best of them reaches "
                f"{best} on the calibration images."
            )
        else:
            parts.append(f"The {rule} rule excludes no model.")
    return " ".join(parts)
