"""A model's card as sections of words and numbers, for the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stamp.report import card
from stamp.report.analyses.robustness.table import worst_changes
from stamp.report.flags import no_skill_name
from stamp.report.page.study_page import StudyPage

Row = Mapping[str, Any]
Section = dict[str, Any]
# what a card reads of a row; a table of older scores lacks some
READ = (
    *card.NUMBERS, "metric", "source_metric", "source_se", "source_low", "source_high",
    "source_no_skill", "source_n", "source_reason", "degenerate", "excluded", "trained_on",
    "missing",
)  # fmt: skip


def sections(row: Row, page: StudyPage) -> list[Section]:
    """The sections of one model's card, in the order of reading; what is not known is left out."""
    told = _told(row, page)
    found: list[Section] = [
        {"title": "Score", "rows": _known(_score(row, page)), "texts": told.get("meaning", [])},
        {"title": "Flags", "flags": row["raised"], "texts": [] if row["raised"] else ["None."]},
        {"title": "On the targets", "rows": _targets(row, page)},
        {"title": "What breaks it", "texts": _broken_by(row, page)},
        {"title": "What was not tested", "items": told.get("not_tested", [])},
        {"title": "Model", "rows": _known(_model(row, page))},
        {
            "title": "Made with",
            "rows": _known(told.get("made", {})),
            "code": told.get("command", page.facts.command),
        },
    ]
    return [one for one in found if any(value for key, value in one.items() if key != "title")]


def _told(row: Row, page: StudyPage) -> dict[str, Any]:
    """What only a card says: meaning, what was not tested, versions, weights and command."""
    facts, key = page.facts, row["model"]
    if facts.scoring is None or row.get("raw") is None:
        return {}
    trained = page.tables.training.get(key, {})
    weights = {name: trained[name] for name in ("weights_sha256",) if name in trained}
    metadata = {**weights, **page.tables.metadata.get(key, {})}
    command = card.repeat(facts.study, key, facts.results)
    seeded = command if facts.seed is None else f"{command} seed={facts.seed}"
    made = card.origin(metadata, seeded)
    values = {one.title: row["values"][one.key]["value"] for one in page.outcomes}
    targets = {name: value for name, value in values.items() if value is not None}
    found = card.card({**dict.fromkeys(READ), **row}, facts.scoring, made, targets)
    return {
        "meaning": [found["meaning"]],
        "not_tested": found["not_tested"],
        "made": {
            **found["versions"],
            "device": found["device"],
            "seed": found["seed"],
            **{f"weights, {name}": value for name, value in found["weights"].items()},
        },
        "command": found["command"],
    }


def _score(row: Row, page: StudyPage) -> dict[str, Any]:
    level, place = f"{100 * page.level:g} %", row.get("place")
    low, high = row.get("rank_low"), row.get("rank_high")
    ranks = "" if low is None or high is None else f"; {level} rank interval {low:g} to {high:g}"
    name = no_skill_name(row.get("metric"))
    return {
        "STAMP": value_text(row.get("stamp"), row.get("low"), row.get("high"), level),
        "Place": None if place is None else f"{place} of {len(page.models)}{ranks}",
        "SV, semantic pairs": _digits(row.get("within")),
        "AV, random pairs": _digits(row.get("total")),
        "η², variance between groups": _digits(row.get("eta2")),
        **_estimators(row),
        "Pairs": _pairs(row),
        "Groups": _count(row.get("groups")),
        "Images": _count(row.get("images")),
        f"Source {page.source_metric}": value_text(
            row["source_metric"], row["source_low"], row["source_high"], level
        ),
        name[0].upper() + name[1:]: _digits(row.get("source_no_skill")),
        "Temperature": _digits(row.get("temperature")),
    }


def _estimators(row: Row) -> dict[str, Any]:
    """How the headline was estimated, and what the other estimator says."""
    if row.get("estimator") == "exact":
        sampled = _digits(row.get("sampled_stamp"))
        return {"Estimator": "exact", "STAMP by sampled pairs": sampled}
    own = "sampled" if row.get("estimator") == "sampled" else None
    return {"Estimator": own, "STAMP by the exact estimator": _digits(row.get("exact_stamp"))}


def _targets(row: Row, page: StudyPage) -> list[tuple[str, str]]:
    found = [(one.title, row["values"][one.key]) for one in page.outcomes]
    return [(title, value_text(one["value"], one["low"], one["high"])) for title, one in found]


def _broken_by(row: Row, page: StudyPage) -> list[str]:
    """The changes of the stress tests that cost the model the most."""
    found = page.tables.robustness
    return [] if found is None else worst_changes(found, row["model"], page.level)


def _model(row: Row, page: StudyPage) -> dict[str, Any]:
    return {
        "Key": row["model"],
        "Family": row["family"],
        "Objective": row["objective"],
        "Regime": row["regime"],
        "Pretraining": row.get("pretraining"),
        "Trained on": row.get("trained_on"),
        "Training images": _count(page.tables.training.get(row["model"], {}).get("images")),
        "Parameters": _count(row.get("parameters")),
    }


def _known(rows: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(name, str(value)) for name, value in rows.items() if value is not None]


def value_text(
    value: float | None, low: float | None = None, high: float | None = None, level: str = ""
) -> str:
    """A value with its interval, as far as there is one."""
    if value is None:
        return "none"
    if low is None or high is None:
        return f"{value:.3f}"
    name = f"{level} interval " if level else ""
    return f"{value:.3f} ({name}{low:.3f} to {high:.3f})"


def _digits(value: float | None) -> str | None:
    return None if value is None else f"{value:.4g}"


def _count(value: int | None) -> str | None:
    return None if value is None else f"{int(value):,}"


def _pairs(row: Row) -> str | None:
    if row.get("n_semantic") is None or row.get("n_random") is None:
        return None
    return f"{row['n_semantic']:,} semantic, {row['n_random']:,} random"
