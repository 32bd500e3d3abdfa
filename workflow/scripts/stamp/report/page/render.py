"""Pages as text: templates filled in, scripts and styles inside, nothing loaded from elsewhere.

The Content-Security-Policy of a page allows exactly its own scripts, by their digests, and no
connection at all.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

from stamp.report import comparability
from stamp.report.page import charts
from stamp.report.page.card_sections import sections
from stamp.report.page.study_page import StudyPage, pictures
from stamp.report.wording import DASH, MINUS

TEMPLATES = Path(__file__).parent / "templates"
FIRST = 3  # models of a summary
NO_IMAGES = (
    "The images and their names are not on this page. `show_images: true` in the study puts them "
    "here; their names are in results/<study>/pair_examples/."
)


def study_html(page: StudyPage, library: str | None = None) -> str:
    """The page of a study; ``library`` is :func:`chart_library` of a caller who has it already."""
    specifications = charts.charts(page)
    library, script = library or chart_library(), _asset("page.js")
    return (
        _environment()
        .get_template("study.html")
        .render(
            page=with_rows(page),
            charts=specifications,
            data=_json(page_data(page, specifications)),
            csv=_csv_address(page.tables.leaderboard),
            level=_percent(page.level),
            told_apart=_percent((1 + page.level) / 2),
            analyses=[
                {"title": name.replace("_", " ").capitalize(), **_by_outcome(text, page)}
                for name, text in page.tables.sentences.items()
            ],
            comparability=comparability.warning(page.pretraining),
            strata=page.strata,
            most_ranked=charts.MOST_RANKED,
            least_widths=charts.least_widths(page),
            more_ranked=len(page.models) > charts.MOST_RANKED,
            library=Markup(library),
            script=Markup(script),
            style=Markup(_asset("page.css")),
            policy=_policy([library, script]),
        )
    )


def _by_outcome(text: str, page: StudyPage) -> dict[str, Any]:
    """What an analysis says, first of the study, then one item for each of several outcomes."""
    titles = "|".join(re.escape(one.title).replace(r"\ ", "[ _]") for one in page.outcomes)
    first, *rest = re.split(rf"(?:^|(?<=[.] ))({titles}): ", text) if titles else [text]
    if len(set(rest[::2])) < 2:
        return {"text": text, "items": []}
    items = [f"{name}: {said.strip()}" for name, said in zip(rest[::2], rest[1::2], strict=True)]
    return {"text": first.strip(), "items": items}


def index_html(summaries: Sequence[Mapping[str, Any]]) -> str:
    """The page that leads to the studies' pages."""
    return (
        _environment()
        .get_template("index.html")
        .render(
            studies=[
                {**one, "first": [{**row, "interval": _interval(row)} for row in one["first"]]}
                for one in summaries
            ],
            style=Markup(_asset("page.css")),
            policy=_policy([]),
        )
    )


def summary(page: StudyPage, address: str) -> dict[str, Any]:
    """What the index and the last lines of a run say of a study."""
    scored = [row for row in page.models if row.get("stamp") is not None]
    placed = [row for row in scored if row.get("place") is not None]
    return {
        "study": page.facts.study,
        "title": page.facts.texts["title"],
        "notice": page.facts.texts.get("notice", ""),
        "address": address,
        "headline": page.answer.headline,
        "sentences": page.answer.sentences,
        "models": len(page.models),
        "holds_images": page.holds_images,
        "level": page.level,
        "first": [
            {
                **{key: row.get(key) for key in ("place", "model", "name", "stamp", "low", "high")},
                "flags": [
                    {"label": one["label"], "severity": one["severity"]} for one in row["raised"]
                ],
            }
            for row in (placed or scored)[:FIRST]
        ],
    }


def page_data(page: StudyPage, specifications: Mapping[str, Any]) -> dict[str, Any]:
    """What the page's script reads."""
    shown = page.tables.pairs if page.holds_images else _without_names(page.tables.pairs)
    return {
        "level": _percent(page.level),
        "outcomes": [
            {
                "key": one.key,
                "title": one.title,
                "metric": one.metric,
                "matched": one.matched,
                "source_matched": one.source_matched,
                "stamp": one.stamp,
                "source": one.source,
            }
            for one in page.outcomes
        ],
        "charts": specifications,
        "datasets": charts.datasets(page),
        "cards": {row["model"]: sections(row, page) for row in page.models},
        "pairs": shown,
        "pictures": pictures(page.tables.thumbnails),
        "holds_images": page.holds_images,
        "no_images": NO_IMAGES,
    }


def _without_names(pairs: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The pairs without the names of their images, which may tell who is on them."""

    def bare(found: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        return [{key: value for key, value in one.items() if key != "images"} for one in found]

    return {
        model: {**record, "largest": bare(record["largest"]), "typical": bare(record["typical"])}
        for model, record in pairs.items()
    }


def with_rows(page: StudyPage) -> StudyPage:
    """The page with what a row of the table needs beside its numbers."""
    ends = [row[end] for row in page.models for end in ("low", "high") if row.get(end) is not None]
    bottom, top = (min(ends), max(ends)) if ends else (0.0, 1.0)
    for row in page.models:
        kinds = {one["severity"] for one in row["raised"]}
        row["flag_kinds"] = " ".join(["any", *sorted(kinds)] if kinds else ["none"])
        row["flag_order"] = f"{len(row['raised'])}" if kinds else ""
        words = [row["model"], row["name"], row["family"], row["objective"], row["regime"]]
        words += [one["words"] for one in row["raised"]]
        row["search"] = " ".join(str(word) for word in words).lower()
        row["bar"] = _bar(row, bottom, top)
        for key in ("place", "stamp", "low", "high", "rank_low", "rank_high", "rank_median"):
            row.setdefault(key, None)
    return page


def _bar(row: Mapping[str, Any], bottom: float, top: float) -> dict[str, float] | None:
    """Where the interval of a score stands on the scale of all models, in percent."""
    if any(row.get(key) is None for key in ("stamp", "low", "high")):
        return None
    whole = (top - bottom) or 1.0
    start, middle, end = (
        round(100 * (row[key] - bottom) / whole, 2) for key in ("low", "stamp", "high")
    )
    return {"start": start, "middle": middle, "width": round(end - start, 2)}


# --- templates ------------------------------------------------------------------------------------


@cache
def _environment() -> Environment:
    found = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["n"] = _number
    found.filters["raw"] = lambda value: "" if value is None else value
    return found


@cache
def _asset(name: str) -> str:
    return (TEMPLATES / name).read_text()


@cache
def chart_library() -> str:
    """Vega, Vega-Lite and vega-embed, as one script; it takes a second to put together."""
    import vl_convert

    return vl_convert.javascript_bundle()  # type: ignore[call-arg]


def _policy(scripts: Sequence[str]) -> str:
    digests = [
        f"'sha256-{base64.b64encode(hashlib.sha256(one.encode()).digest()).decode()}'"
        for one in scripts
    ]
    allowed = " ".join(digests) or "'none'"
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _json(value: Any) -> Markup:
    """JSON for a script element: no ``<``, ``>`` or ``&`` of a name can end it."""
    return htmlsafe_json_dumps(_finite(value), ensure_ascii=False, separators=(",", ":"))


def _finite(value: Any) -> Any:
    """Numbers shortened to what is shown, and null for what is not one."""
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    return value


def _csv_address(table: pl.DataFrame) -> str:
    text = base64.b64encode(table.write_csv().encode()).decode()
    return f"data:text/csv;base64,{text}"


def _number(value: float | None) -> str:
    return DASH if value is None else f"{value:.3f}".replace("-", MINUS)


def _interval(row: Mapping[str, Any]) -> str:
    if row["low"] is None or row["high"] is None:
        return DASH
    return f"{_number(row['low'])} to {_number(row['high'])}"


def _percent(value: float) -> str:
    return f"{100 * value:g} %"
