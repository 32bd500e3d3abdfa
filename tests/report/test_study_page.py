"""The page: what its answer may say, what it holds, and that no name becomes markup."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import made_up_page
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from stamp.report import comparability
from stamp.report.analyses.baselines import table as baselines
from stamp.report.analysis import nothing
from stamp.report.page.answer import Answer, Track, answer, standing
from stamp.report.page.last_lines import last_lines, lines_of_failure, study_lines
from stamp.report.page.render import index_html, study_html, summary
from stamp.report.page.study_page import study_page
from stamp.stats.rank_intervals import outranks, rank_intervals

NO_TARGETS = "no targets"


def row(model: str, stamp: float | None, **more: Any) -> dict[str, Any]:
    return {"model": model, "stamp": stamp, "low": None, "high": None, "stop": False, **more}


def from_draws(draws: np.ndarray, level: float = 0.95) -> tuple[list[dict], dict[str, dict]]:
    """Rows and shares of draws, as the statistics have them; rows by mean, best first."""
    found, share = rank_intervals(draws, level), outranks(draws)
    keys = [f"m{i}" for i in range(len(draws))]
    rows = [
        row(
            key,
            float(draws[i].mean()),
            rank_low=float(np.floor(found.low[i])),
            rank_high=float(np.ceil(found.high[i])),
        )
        for i, key in enumerate(keys)
    ]
    shares = {key: dict(zip(keys, share[i], strict=True)) for i, key in enumerate(keys)}
    return sorted(rows, key=lambda one: -one["stamp"]), shares


def said(rows: list[dict], shares: dict | None = None, track: Track | None = None) -> Answer:
    names = {one["model"]: one["model"].upper() for one in rows}
    return answer(standing(rows, shares or {}, 0.95), names, track, 0.95)


# --- the answer -----------------------------------------------------------------------------------


@given(st.integers(1, 9), st.integers(0, 10_000), st.sampled_from([0.8, 0.95, 0.99]))
def test_the_answer_never_says_more_than_the_draws(count: int, seed: int, level: float) -> None:
    rng = np.random.default_rng(seed)
    draws = rng.normal(size=count)[:, None] + rng.normal(size=(count, 300)) * rng.random()
    rows, shares = from_draws(draws, level)
    found = standing(rows, shares, level)
    groups = [*found.top, *found.between, *found.below, *found.unusable]
    assert sorted(groups) == sorted(one["model"] for one in rows)
    place = {f"m{i}": i for i in range(count)}
    for low in found.below:
        for high in found.top:  # counted here draw by draw, not by the function that was used there
            above = np.mean(draws[place[high]] > draws[place[low]])
            assert above >= (1 + level) / 2 - 1e-9
    for one in rows:
        if one["rank_low"] == 1:
            assert one["model"] in found.top
    if found.first_in_all and len(found.top) == 1:
        best = place[found.top[0]]
        assert np.mean(draws.argmax(axis=0) == best) >= (1 + level) / 2 - 1 / 300


def test_models_whose_draws_overlap_are_not_told_apart() -> None:
    rng = np.random.default_rng(0)
    rows, shares = from_draws(
        np.array([0.90, 0.89, 0.50])[:, None] + 0.02 * rng.normal(size=(3, 2000))
    )
    found = said(rows, shares)
    assert found.headline == "M0 and M1 can't be told apart at the top."
    assert "M2 is clearly below all models at the top." in found.sentences


def test_a_clear_winner_is_called_so_only_where_its_rank_interval_is_one_place() -> None:
    rows = [row("a", 0.9, rank_low=1, rank_high=1), row("b", 0.5, rank_low=2, rank_high=2)]
    shares = {"a": {"b": 1.0}, "b": {"a": 0.0}}
    assert said(rows, shares).headline == "A ranks first, clearly above every other model."
    rows[0]["rank_high"] = 2
    assert "taken alone" in said(rows, shares).headline


def test_a_model_below_the_first_but_not_below_all_of_the_top_is_said_to_be_between() -> None:
    rows = [row("a", 0.9), row("b", 0.8), row("c", 0.7)]
    shares = {"a": {"b": 0.8, "c": 0.99}, "b": {"c": 0.9}}
    found = said(rows, shares)
    assert found.standing.top == ["a", "b"] and found.standing.between == ["c"]
    assert any("C is below A, but not clearly below all" in one for one in found.sentences)


def test_models_with_a_flag_that_forbids_use_are_not_at_the_top() -> None:
    rows = [row("leaky", 0.99, stop=True), row("a", 0.9, low=0.8, high=0.95)]
    found = said(rows)
    assert found.standing.top == ["a"]
    assert any("LEAKY must not be used" in one for one in found.sentences)
    nobody = said([row("leaky", 0.99, stop=True)])
    assert nobody.headline.startswith("No model can be recommended")


def test_without_any_interval_the_answer_does_not_order_models() -> None:
    found = said([row("a", 0.9), row("b", 0.8)])
    assert "no interval says how sure" in found.headline
    assert not found.standing.below


def test_intervals_alone_tell_models_apart_where_they_do_not_overlap() -> None:
    rows = [row("a", 0.9, low=0.85, high=0.95), row("b", 0.84, low=0.80, high=0.86)]
    rows.append(row("c", 0.5, low=0.4, high=0.6))
    found = standing(rows, {}, 0.95)
    assert (found.top, found.below) == (["a", "b"], ["c"])


def test_one_model_is_not_ranked() -> None:
    assert "nothing to rank" in said([row("a", 0.9, low=0.8, high=1.0)]).headline


def test_the_record_gives_both_intervals_and_says_when_zero_is_inside() -> None:
    track = Track("the mean of all targets", 11, 0.41, -0.2, 0.8, 0.9, 0.6, 0.97)
    last = said([row("a", 0.9, low=0.8, high=1.0)], track=track).sentences[-1]
    for words in ("0.41", "\u22120.20 to 0.80", "0.90", "0.60 to 0.97", "11 models"):
        assert words in last
    assert "no relation" in last
    clear = said([row("a", 0.9, low=0.8, high=1.0)], track=replace(track, low=0.1)).sentences[-1]
    assert "no relation" not in clear
    both = said([row("a", 0.9)], track=replace(track, source_low=-0.1)).sentences[-1]
    assert "STAMP's interval includes zero" in last and "Both intervals include zero" in both
    assert NO_TARGETS in said([row("a", 0.9, low=0.8, high=1.0)]).sentences[-1]


def test_the_record_says_which_ranking_was_clearly_better() -> None:
    rows = [row("a", 0.9, low=0.8, high=1.0)]
    track = Track("the mean of all targets", 77, 0.63, 0.47, 0.75, 0.91, 0.83, 0.94)
    assert "the source metric ranked clearly better" in said(rows, track=track).sentences[-1]
    overlap = said(rows, track=replace(track, high=0.84)).sentences[-1]
    assert "clearly better" not in overlap
    better = replace(track, low=0.95, high=0.99)
    assert "STAMP ranked clearly better" in said(rows, track=better).sentences[-1]


def test_what_must_not_be_used_stands_right_after_the_headline() -> None:
    rows = [row("a", 0.9, low=0.8, high=1.0), row("b", 0.5, low=0.4, high=0.6)]
    rows += [row("c", 0.4, low=0.3, high=0.5), row("leaky", 0.95, low=0.9, high=1.0, stop=True)]
    assert "LEAKY must not be used" in said(rows).sentences[0]


def test_names_with_commas_are_quoted_and_long_lists_are_counted() -> None:
    rows = [row(f"m{i}", 0.9 - i / 100) for i in range(9)]
    shares = {a["model"]: {b["model"]: 0.5 for b in rows} for a in rows}
    shares["m0"]["m8"] = 0.99
    names = {one["model"]: f"Net, {one['model']}" for one in rows}
    found = answer(standing(rows, shares, 0.95), names, None, 0.95)
    assert found.headline.startswith("\u201cNet, m0\u201d, \u201cNet, m1\u201d")
    assert "and 5 more can't be told apart" in found.headline


# --- the page -------------------------------------------------------------------------------------


class Elements(HTMLParser):
    """The elements of a page, with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def data_of(html: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="page-data">(.*?)</script>', html, re.S)
    assert found
    return json.loads(found[1])


def test_a_hostile_name_stays_text_everywhere() -> None:
    hostile = made_up_page.HOSTILE
    page = made_up_page.page(names={0: hostile}, images=True)
    page = replace(page, facts=replace(page.facts, texts={**page.facts.texts, "title": hostile}))
    for html in (study_html(page), index_html([summary(page, "made-up/page.html")])):
        elements = Elements(html).found
        assert not [one for one in elements if one[0] == "img" or "onerror" in one[1]]
        assert [one[1].get("id", "").strip() for one in elements if one[0] == "script"] in (
            ["page-data", "", ""],
            [],
        )
        assert "49" not in re.findall(r"Ωµ&#39; (.{2,8})", html)[0]
    assert data_of(study_html(page))["datasets"]["models"][0]["name"] == hostile


def test_a_page_asks_for_nothing_from_anywhere() -> None:
    html = study_html(made_up_page.page(images=True))
    for tag, attributes in Elements(html).found:
        for name in ("src", "href", "action", "data", "srcset", "poster"):
            value = attributes.get(name) or ""
            assert re.match(r"(data:|#|\.\./index\.html$|$)", value), (tag, value)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy and "default-src &#39;none&#39;" in policy[1]
    assert "unsafe-eval" not in policy[1] and "http" not in policy[1]


def test_a_thousand_models_without_images_stay_under_ten_megabytes() -> None:
    page = made_up_page.page(count=1000)
    html = study_html(page)
    assert len(html.encode()) < 10_000_000
    assert html.count("<tr data-model=") == 1000
    assert len(data_of(html)["datasets"]["outranks"]) == 40 * 39


@pytest.mark.parametrize("count", [1, 2])
def test_few_models_without_targets_have_a_page(count: int) -> None:
    page = made_up_page.page(count=count, targets=False)
    html = study_html(page)
    assert NO_TARGETS in html and 'id="target"' not in html
    assert 'id="baselines"' not in html
    assert data_of(html)["outcomes"] == []


def test_tables_with_little_in_them_have_a_page() -> None:
    """A table of a user's own has no draws, no pairs and no intervals."""
    full = made_up_page.tables(targets=False)
    lacking = ["low", "high", "rank_low", "rank_high", "rank_median", "within", "n_semantic"]
    bare = replace(
        full,
        leaderboard=full.leaderboard.drop(lacking),
        scores=full.scores.drop("low", "high", "within", "n_semantic"),
        outranks=None, pairs={}, training={}, sentences={}, metadata={},
    )  # fmt: skip
    page = study_page(bare, made_up_page.facts(scoring=None, command="", seed=None, versions={}))
    assert "no interval says how sure" in page.answer.headline
    assert set(data_of(study_html(page))["charts"]) == set()


def test_analyses_that_found_nothing_leave_their_chart_out(tmp_path: Path) -> None:
    """Without targets the table of predictors has one row, a reason, and a file of empty cells."""
    file = tmp_path / "baselines.csv"
    nothing(baselines.TABLE, "the study has no targets").write_csv(file)
    found = pl.read_csv(file, schema=baselines.TABLE)
    full = replace(made_up_page.tables(targets=False), baselines=found)
    html = study_html(study_page(full, made_up_page.facts()))
    assert 'id="chart-baselines"' not in html
    row = {"models": "declared", "outcome": "mean", "predictor": "stamp", "name": "STAMP", "n": 6,
           "common": True, "oriented": 0.5, "low": 0.1, "high": 0.9}  # fmt: skip
    some = pl.DataFrame([dict.fromkeys(baselines.TABLE) | row], schema=baselines.TABLE)
    page = study_page(replace(made_up_page.tables(), baselines=some), made_up_page.facts())
    assert data_of(study_html(page))["datasets"]["baselines"][0]["rho"] == 0.5


def test_names_of_images_are_on_the_page_only_with_the_images() -> None:
    without, shown = (study_html(made_up_page.page(images=on)) for on in (False, True))
    assert "image-0-a" not in without and "This page holds images" not in without
    assert "image-0-a" in shown and "This page holds images" in shown
    assert "data:image/png" not in without and "data:image/png" in shown


def test_generated_images_are_named_as_such_instead_of_a_warning() -> None:
    page = study_page(made_up_page.tables(images=True), made_up_page.facts(made_images=True))
    html = study_html(page)
    assert "This page holds images" not in html and "they were generated" in html


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_intervals_of_metrics_are_at_the_level_of_the_study(level: float) -> None:
    texts = {**made_up_page.TEXTS, "level": level}
    page = study_page(made_up_page.tables(), made_up_page.facts(texts=texts))
    low, high = norm.interval(level, scale=0.01)
    for one in page.models:
        assert one["source_low"] == pytest.approx(max(0, one["source_metric"] + low))
        assert one["values"]["coast"]["high"] == pytest.approx(
            min(1, one["values"]["coast"]["value"] + high)
        )


def test_models_of_one_label_get_names_that_tell_them_apart() -> None:
    page = made_up_page.page(names={0: "Twin", 1: "Twin"})
    assert {one["name"] for one in page.models[:2]} == {"Twin (m0000)", "Twin (m0001)"}


def test_equal_tables_make_equal_pages() -> None:
    assert study_html(made_up_page.page()) == study_html(made_up_page.page())


def test_every_model_has_a_card_with_its_flags_and_what_was_not_tested() -> None:
    page = made_up_page.page(excluded={2: "near chance"})
    cards = data_of(study_html(page))["cards"]
    assert set(cards) == {one["model"] for one in page.models}
    flagged = {one["title"]: one for one in cards["m0002"]}
    assert flagged["Flags"]["flags"][0]["label"] == "excluded"
    assert "near chance" in flagged["Flags"]["flags"][0]["reason"]
    assert flagged["What was not tested"]["items"]
    score = dict(flagged["Score"]["rows"])
    assert score["Estimator"] == "exact" and "STAMP by sampled pairs" in score
    made = dict(flagged["Made with"]["rows"])
    assert made["torch"] == "2.0" and "scores/m0002.parquet" in flagged["Made with"]["code"]


def test_a_model_that_could_not_be_scored_is_listed_with_its_reason() -> None:
    full = made_up_page.tables()
    gone = pl.DataFrame(
        {"model": ["gone"], "label": ["Gone"], "family": ["x"], "objective": ["y"],
         "regime": ["z"], "flags": ["not available: no weights"]}
    )  # fmt: skip
    board = pl.concat([full.leaderboard, gone], how="diagonal")
    page = study_page(replace(full, leaderboard=board), made_up_page.facts())
    assert page.models[-1]["raised"][0]["reason"] == "It could not be scored: no weights."
    assert "gone" in page.answer.standing.unusable
    assert "no weights" in study_html(page)


# --- the last lines -------------------------------------------------------------------------------


def test_a_run_ends_with_the_first_three_models_and_where_the_page_is(tmp_path: Any) -> None:
    page = made_up_page.page(excluded={5: "near chance"})
    told = summary(page, "made-up/page.html")
    lines = study_lines(told, "results")
    assert lines[0] == "A study: 6 models" and lines[-1] == "  page: results/made-up/page.html"
    assert len(lines) == 5 and "0.900 (0.860 to 0.940)" in lines[1]
    assert lines[1].endswith("no flags")
    alone = made_up_page.page(count=1, targets=False, excluded={0: "near chance"})
    lines = study_lines(summary(alone, "made-up/page.html"), "results")
    assert lines[0] == "A study: 1 model"
    assert lines[1].startswith("  -  Model 0") and lines[1].endswith("excluded")
    (tmp_path / "made-up").mkdir()
    (tmp_path / "made-up" / "page.json").write_text(json.dumps(told))
    (tmp_path / "index.html").touch()
    text = last_lines(str(tmp_path), ["made-up", "not-run"])
    assert text.count("page:") == 1 and f"{tmp_path}/index.html" in text


def failed(rule: str, log: Path, **wildcards: str) -> SimpleNamespace:
    """A job as Snakemake's scheduler keeps it."""
    name = SimpleNamespace(name=rule)
    return SimpleNamespace(
        rule=name, log=[str(log)], wildcards_dict=wildcards, is_group=lambda: False
    )


def test_a_run_that_fails_ends_with_the_other_studies_and_with_what_failed_and_why(
    tmp_path: Path,
) -> None:
    for study in ("good", "bad"):
        told = summary(made_up_page.page(), f"{study}/page.html")
        (tmp_path / study).mkdir()
        (tmp_path / study / "page.json").write_text(json.dumps(told))
    log = tmp_path / "score.log"
    log.write_text("something before\nstamp: model 'm': no logits\n")
    score = failed("score", log, study="bad", model="m")
    group = SimpleNamespace(is_group=lambda: True, jobs=[score])
    lines = lines_of_failure(str(tmp_path), ["good", "bad"], [group]).splitlines()
    assert "A job failed:" in lines and "  score (bad, m): model 'm': no logits" in lines
    assert any("good/page.html" in line for line in lines)
    assert not any("bad/page.html" in line for line in lines)
    download = failed("download", tmp_path / "none.log")
    both = lines_of_failure(str(tmp_path), ["good", "bad"], [score, download])
    assert "2 jobs failed:" in both and "page.html" not in both
    assert "  download: " in both
    many = [failed("score", log, study="bad", model=f"m{i:02d}") for i in range(13)]
    assert "  and 3 more" in lines_of_failure(str(tmp_path), [], many).splitlines()


# --- stress tests ---------------------------------------------------------------------------------


def test_a_page_without_targets_shows_what_breaks_each_model() -> None:
    tables = replace(made_up_page.tables(3, targets=False), robustness=made_up_page.stressed())
    html = study_html(study_page(tables, made_up_page.facts()))
    found = data_of(html)
    assert 'id="robustness"' in html and "robustness" in found["charts"]
    rows = found["datasets"]["robustness"]
    assert {row["model"] for row in rows} == {"m0000", "m0001"}
    first = next(row for row in rows if row["change"] == "salt and pepper")
    assert first["gain"] == pytest.approx(-0.02) and first["clean"] == 0.9
    card = {one["title"]: one for one in found["cards"]["m0001"]}
    said = card["What breaks it"]["texts"]
    assert len(said) == 3
    assert said[0].startswith("Accuracy falls from 0.90 to 0.82 under JPEG compression")
    assert "What breaks it" not in {one["title"] for one in found["cards"]["m0002"]}


def test_a_page_of_a_study_without_stress_tests_has_no_such_section() -> None:
    html = study_html(made_up_page.page())
    assert 'id="robustness"' not in html and "robustness" not in data_of(html)["charts"]


def test_models_of_different_pretraining_are_shown_apart_with_a_warning() -> None:
    told = made_up_page.facts(texts=made_up_page.pretrained(12))
    found = study_page(made_up_page.tables(count=12), told)
    assert [(one["pretraining"], one["n"]) for one in found.strata] == [("in1k", 6), ("in21k", 6)]
    html = study_html(found)
    assert 'id="pretraining"' in html and comparability.WENT_WRONG in html
    assert 'id="pretraining"' not in study_html(made_up_page.page(count=12))


def test_regret_has_a_chart_of_every_number_of_models_at_hand() -> None:
    tables = replace(made_up_page.tables(count=12), regret=made_up_page.picked_by())
    data = data_of(study_html(study_page(tables, made_up_page.facts())))
    at_hand = next(one for one in data["charts"]["regret"]["params"] if one["name"] == "k")
    assert (at_hand["value"], at_hand["bind"]["options"]) == (12, [5, 12, 20])
    kinds = {"STAMP", "source metric", "random choice"}
    assert {row["kind"] for row in data["datasets"]["regret"]} == kinds


# --- what else is said ----------------------------------------------------------------------------


def analyses_of(text: str) -> str:
    """The section of analyses of a page, for an analysis that says ``text``."""
    tables = replace(made_up_page.tables(), sentences={"partials": text})
    html = study_html(study_page(tables, made_up_page.facts()))
    return html.partition('<section id="analyses">')[2].partition("</section>")[0]


def test_what_an_analysis_says_of_several_outcomes_is_a_list() -> None:
    found = analyses_of("Over 6 models. Clinic: first. More of it. Mean of targets: second.")
    assert "<p>Over 6 models.</p>" in found
    assert "<li>Clinic: first. More of it.</li><li>Mean of targets: second.</li>" in found
    alone = analyses_of("Mean of targets: of T. Mean of targets: of L; see Clinic: a name.")
    assert "<li>" not in alone and "of T. Mean of targets: of L" in alone


def test_the_loss_of_a_head_on_a_frozen_backbone_is_no_epoch_of_the_curve() -> None:
    page = study_page(made_up_page.tables(), made_up_page.facts(frozen=["m0001"]))
    html = study_html(page)
    rows = data_of(html)["datasets"]["training"]
    assert [row["loss"] for row in rows if row["model"] == "m0001"] == [1.0, 0.5]
    assert [row["loss"] for row in rows if row["model"] == "m0002"] == [1.0, 0.5, 0.3]
    assert "its loss is not shown" in html
    assert "its loss is not shown" not in study_html(made_up_page.page())


def test_losses_below_zero_are_on_a_linear_scale() -> None:
    tables = made_up_page.tables()
    scales = []
    for losses in ([2.0, 1.0], [0.5, -0.5]):
        curves = replace(tables, training={"m0000": {"losses": losses, "images": 5}})
        chart = data_of(study_html(study_page(curves, made_up_page.facts())))["charts"]["training"]
        scales.append(chart["layer"][0]["encoding"]["y"]["scale"].get("type"))
    assert scales == ["log", None]


def test_the_command_of_a_card_has_the_seed() -> None:
    page = study_page(made_up_page.tables(), made_up_page.facts(seed=3))
    made = {one["title"]: one for one in data_of(study_html(page))["cards"]["m0000"]}["Made with"]
    assert made["code"].endswith(" seed=3")
