"""The table that a paper prints of a study: one row per target and score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from stamp.report import comparability
from stamp.report.outcomes import MEAN
from stamp.report.wording import DASH, RHO

SCORES = {"stamp": "STAMP", "stamp_matched": "class-matched STAMP"}
COLUMNS = {
    "target": pl.String,
    "score": pl.String,
    "models": pl.String,
    "n": pl.Int64,
    "rho": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "fisher_low": pl.Float64,
    "fisher_high": pl.Float64,
    "bootstrap_low": pl.Float64,
    "bootstrap_high": pl.Float64,
    "p": pl.Float64,
    "p_asymptotic": pl.Float64,
    "loo_low": pl.Float64,
    "loo_high": pl.Float64,
    "partial": pl.Float64,
    "partial_p": pl.Float64,
    "corrected": pl.Float64,
    "corrected_low": pl.Float64,
    "corrected_high": pl.Float64,
    "corrected_p": pl.Float64,
    "source_metric_error": pl.Float64,
    "source_metric_rho": pl.Float64,
    "plain_source_rho": pl.Float64,
    "note": pl.String,
}
CORRECTED = ("corrected", "corrected_low", "corrected_high", "corrected_p")
ORIGINS = {
    "n": "n",
    "rho": "rho",
    "low": "bonett_wright_low",
    "high": "bonett_wright_high",
    "fisher_low": "fisher_low",
    "fisher_high": "fisher_high",
    "bootstrap_low": "bootstrap_low",
    "bootstrap_high": "bootstrap_high",
    "p": "p_permutation",
    "p_asymptotic": "p_asymptotic",
    "loo_low": "loo_low",
    "loo_high": "loo_high",
    "partial": "partial_source",
    "partial_p": "partial_source_p",
    **{name: f"partial_source_{name}" for name in CORRECTED},
    "source_metric_error": "partial_source_error",
    "source_metric_rho": "source_metric_rho",
    "plain_source_rho": "plain_source_rho",
}
KINDS = ("", "fisher_", "bootstrap_")
MATCHED = (
    "It is class-matched where a target has another mix of classes: weighted to the shares of the "
    "target's labels, or to those that the study expects (`class_mix`); the plain one stands "
    "beside it. "
)
RELABELLED = "the source's own images under other labels"
NO_TARGETS = (
    "This study has no targets: there is nothing to correlate the scores with. The ranking is in "
    "leaderboard.csv, one folder up; ranks.csv and outranks.csv say how sure it is."
)


def target_title(outcome: str, texts: Mapping[str, Any]) -> str:
    """An outcome's name for a reader."""
    if outcome == MEAN:
        return "Mean of targets"
    target, _, domain = outcome.partition("/")
    title = texts["targets"].get(target, target)
    return f"{title}: {domain}" if domain else title


def main_table(correlations: pl.DataFrame, texts: Mapping[str, Any]) -> pl.DataFrame:
    """Rho of STAMP and class-matched STAMP with each outcome, the source metric's beside it.

    ``partial`` is given the source metric, ``corrected`` the same without the bias of that metric's
    measurement error, ``source_metric_error``. The source metric is class-matched where a target
    has another mix of classes; ``plain_source_rho`` is then the rho of the plain one.

    ``low`` and ``high`` are Bonett and Wright's interval, Fisher's and the bootstrap's stand beside
    it; p is the permutation p. The source metric's rho is over the models of the row. Under the
    filter ``all`` no model is left out; under ``declared`` those that the study's rule excludes.
    """
    rows = []
    kept = correlations.filter(pl.col("filter").is_in(["all", "declared", "uncontaminated"]))
    for (which, outcome), part in kept.group_by("filter", "outcome", maintain_order=True):
        common = {
            "target": target_title(str(outcome), texts),
            "models": which,
        }
        about = RELABELLED if str(outcome).partition("/")[0] in texts["relabelled"] else None
        for predictor, name in SCORES.items():
            chosen = part.filter(pl.col("predictor") == predictor).iter_rows(named=True)
            rows += [
                {
                    **common,
                    **{column: found[origin] for column, origin in ORIGINS.items()},
                    "score": name,
                    "note": "; ".join(filter(None, [about, found["reason"]])) or None,
                }
                for found in chosen
            ]
    return pl.DataFrame(rows, schema=COLUMNS)


def markdown(table: pl.DataFrame, texts: Mapping[str, Any]) -> str:
    """The table for a reader, all models first, three decimals."""
    level = f"{100 * texts['level']:g} %"
    names = ["Target", "Score", "Models", "n", RHO, f"{level} interval", "Fisher", "bootstrap", "p"]
    names += ["leave one out", f"partial {RHO}", f"corrected partial {RHO}"]
    matched = table["plain_source_rho"].is_not_null().any()
    names += [f"source metric {RHO}", *([f"plain source metric {RHO}"] if matched else []), ""]
    lines = [f"# {texts['title']}", ""] + ([texts["notice"], ""] if texts["notice"] else [])
    if not texts["targets"]:
        return "\n".join([*lines, NO_TARGETS]) + "\n"
    lines += [_line(names), _line(["---"] * len(names))]
    for row in table.iter_rows(named=True):
        cells = [row["target"], row["score"], row["models"], str(row["n"]), _number(row["rho"])]
        cells += [_range(row[f"{kind}low"], row[f"{kind}high"]) for kind in KINDS]
        cells.append(_p(row["p"]))
        cells += [_range(row["loo_low"], row["loo_high"]), _number(row["partial"])]
        cells.append(_corrected(row))
        cells.append(_number(row["source_metric_rho"]))
        cells += [_number(row["plain_source_rho"])] if matched else []
        cells.append(row["note"] or "")
        lines.append(_line(cells))
    lines += [
        "",
        f"{RHO}: Spearman's rank correlation over models; {level} intervals: Bonett and Wright's, "
        "made for it; Fisher's, made for Pearson's; percentiles of a bootstrap over models; p: "
        f"two-sided permutation. Partial {RHO}: given the metric on labeled source images, which "
        f"needs no target data either and whose own {RHO} over the same models stands beside it. "
        + (MATCHED if matched else "")
        + f"That metric is measured with error, which biases the plain partial {RHO} towards the "
        f"score: the corrected one takes the error into account, with its {level} interval. "
        + (
            "Where there is none, `partial_source_corrected_reason` in correlations.csv says why."
            if table["source_metric_error"].is_not_null().any()
            else "Here that error is not known: no correction is possible."
        ),
    ]
    if said := comparability.warning(texts.get("pretraining", {})):
        lines += ["", said]
    return "\n".join(lines) + "\n"


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _number(value: float | None) -> str:
    return DASH if value is None else f"{value:.3f}"


def _range(low: float | None, high: float | None) -> str:
    return DASH if low is None or high is None else f"{low:.3f} to {high:.3f}"


def _corrected(row: Mapping[str, Any]) -> str:
    if row["corrected"] is None:
        return DASH
    return f"{_number(row['corrected'])} ({_range(row['corrected_low'], row['corrected_high'])})"


def _p(value: float | None) -> str:
    return DASH if value is None else f"{value:.4f}"
