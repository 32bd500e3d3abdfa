"""A model's card as sections of words and numbers, for the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stamp.report.page.study_page import StudyPage

Row = Mapping[str, Any]
UNTESTED = (
    "STAMP and the source metric are measured on source images. Other scanners, cameras, places, "
    "populations and prevalences were not tested"
)


def sections(row: Row, page: StudyPage) -> list[dict[str, Any]]:
    """The sections of one model's card; what is not known is not listed."""
    found = [
        {"title": "Score", "rows": _known(_score(row, page))},
        {"title": "Flags", "flags": row["raised"]}
        if row["raised"]
        else {"title": "Flags", "texts": ["None."]},
        {"title": "Model", "rows": _known(_model(row))},
        {"title": "What was not tested", "texts": [_untested(row, page)]},
    ]
    if page.outcomes:
        rows = [(one.title, _value(row["values"][one.key])) for one in page.outcomes]
        found.insert(2, {"title": "On the targets", "rows": rows})
    if page.facts.command:
        found.append({"title": "Repeat it", "code": page.facts.command})
    return found


def _score(row: Row, page: StudyPage) -> dict[str, Any]:
    level = f"{100 * page.level:g} % interval"
    place = row.get("place")
    return {
        "STAMP": _value({"value": row.get("stamp"), "low": row.get("low"), "high": row.get("high")})
        + ("" if row.get("low") is None else f", {level}"),
        "Place": None if place is None else f"{place} of {len(page.models)}",
        "SV (semantic pairs)": _digits(row.get("within")),
        "AV (random pairs)": _digits(row.get("total")),
        "η² (share of variance between groups)": _digits(row.get("eta2")),
        "Estimator": row.get("estimator"),
        "Over all pairs": _digits(row.get("exact_stamp")),
        "Pairs": _pairs(row),
        "Groups": row.get("groups"),
        "Images": row.get("images"),
        f"Source {page.source_metric}": _value(
            {
                "value": row["source_metric"],
                "low": row["source_low"],
                "high": row["source_high"],
            }
        ),
        "Majority-class rate": _digits(row.get("majority_rate")),
        "Temperature": _digits(row.get("temperature")),
    }


def _model(row: Row) -> dict[str, Any]:
    parameters = row.get("parameters")
    return {
        "Key": row["model"],
        "Family": row["family"],
        "Objective": row["objective"],
        "Regime": row["regime"],
        "Trained on": row.get("trained_on"),
        "Parameters": None if parameters is None else f"{parameters:,}",
    }


def _untested(row: Row, page: StudyPage) -> str:
    tested = [one.title for one in page.outcomes if row["values"][one.key]["value"] is not None]
    if not tested:
        return f"{UNTESTED}."
    return f"{UNTESTED}, beyond the targets of this study: {', '.join(tested)}."


def _known(rows: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(name, str(value)) for name, value in rows.items() if value is not None]


def _value(found: Row) -> str:
    if found["value"] is None:
        return "none"
    interval = ""
    if found.get("low") is not None:
        interval = f" ({found['low']:.3f} to {found['high']:.3f})"
    return f"{found['value']:.3f}{interval}"


def _digits(value: float | None) -> str | None:
    return None if value is None else f"{value:.4g}"


def _pairs(row: Row) -> str | None:
    if row.get("n_semantic") is None:
        return None
    return f"{row['n_semantic']:,} semantic, {row['n_random']:,} random"
