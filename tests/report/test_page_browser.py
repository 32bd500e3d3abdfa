"""The page in a real browser: it sorts, filters, hovers, switches targets, and opens cards."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import made_up_page
import polars as pl
import pytest
from browser import Page, chromium

from stamp.report import comparability
from stamp.report.page.render import index_html, study_html, summary
from stamp.report.page.study_page import StudyPage, study_page
from stamp.report.wording import DASH, RHO

COUNT = 8
NAMES = {0: made_up_page.HOSTILE, 1: "Aardvark", 2: "Zebra"}


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile")) as started:
        yield started


FIXED = ".chart:not(.sideways .chart) .role-legend-entry text"  # of charts that do not slide


def made_up(**how: Any) -> StudyPage:
    """A study with every section that a page can have."""
    told = made_up_page.facts(texts=made_up_page.pretrained(how["count"]))
    return study_page(made_up_page.full(made_up_page.tables(**how)), told)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The index and three pages: a study with everything, one without targets, a large one."""
    folder = tmp_path_factory.mktemp("pages")
    pages = {
        "full": made_up(count=COUNT, names=NAMES, images=True, excluded={5: "near chance"}),
        "bare": made_up_page.page(count=1, targets=False),
        "large": made_up(count=1000),
    }
    told = []
    for name, page in pages.items():
        (folder / name).mkdir()
        (folder / name / "page.html").write_text(study_html(page), encoding="utf-8")
        told.append(summary(page, f"{name}/page.html"))
    (folder / "index.html").write_text(index_html(told), encoding="utf-8")
    return folder


@pytest.fixture
def page(driver: Any, files: Path) -> Page:
    return Page(driver, files / "full" / "page.html")


def models(page: Page) -> list[str]:
    """The models of the rows that can be seen, in their order."""
    rows = page.all("#leaderboard-table tbody tr")
    return [row.get_attribute("data-model") for row in rows if row.is_displayed()]


def points(page: Page, chart: str = "stamp-outcome") -> list[Any]:
    """The marks of the models in a chart."""
    return page.all(f"#chart-{chart} .mark-symbol.role-mark path")


def places(page: Page, chart: str = "stamp-outcome") -> list[str]:
    return [each.get_attribute("transform") for each in points(page, chart)]


def cells(page: Page, chart: str) -> list[Any]:
    """The cells of a heat map."""
    return page.all(f"#chart-{chart} .mark-rect.role-mark path")


def words_of(page: Page, chart: str) -> list[str]:
    """What is written in a chart; long names are cut off."""
    texts = "return Array.from(arguments[0].querySelectorAll('text'), (one) => one.textContent)"
    return list(page.run(texts, page.one(f"#chart-{chart}")))


def hovered(page: Page, mark: Any) -> str:
    """What is told of a mark when the pointer is above it."""
    from selenium.webdriver import ActionChains

    page.run("arguments[0].scrollIntoView({block: 'center'})", mark)
    ActionChains(page.driver).move_to_element(mark).perform()
    return str(page.until(lambda: page.texts("#vg-tooltip-element"))[0])


@pytest.mark.parametrize("name", ["full", "bare", "large"])
def test_a_page_loads_without_a_message_and_without_any_request(
    driver: Any, files: Path, name: str
) -> None:
    page = Page(driver, files / name / "page.html")
    assert page.logged() == []
    assert page.requests() == [(files / name / "page.html").as_uri()]
    assert page.run("return window.hacked") is None


def test_a_hostile_name_is_shown_as_it_is(page: Page) -> None:
    assert page.one("tr[data-model=m0000] button.link").text == " ".join(
        made_up_page.HOSTILE.split()
    )
    assert page.all("img[src=x]") == []
    page.click("tr[data-model=m0000] button.link")
    page.until(lambda: page.texts("#card-title"))  # the card follows the address a moment later
    assert page.one("#card-title").text == " ".join(made_up_page.HOSTILE.split())
    assert page.run("return window.hacked") is None and page.all("img[src=x]") == []


def test_a_column_sorts_both_ways_and_says_so(page: Page) -> None:
    heading = page.all("#leaderboard-table thead th[aria-sort]")[1]
    heading.find_element("css selector", "button").click()
    names = [text.split("\n")[0] for text in page.texts("#leaderboard-table tbody th")]
    assert heading.get_attribute("aria-sort") == "ascending"
    assert names == sorted(names, key=str.lower)
    heading.find_element("css selector", "button").click()
    assert heading.get_attribute("aria-sort") == "descending"
    back = [text.split("\n")[0] for text in page.texts("#leaderboard-table tbody th")]
    assert back == names[::-1]
    score = page.all("#leaderboard-table thead th[aria-sort]")[2]
    score.find_element("css selector", "button").send_keys("\n")  # by keyboard
    assert models(page) == [f"m{i:04d}" for i in range(COUNT)]


def test_search_and_the_flags_filter_rows(page: Page) -> None:
    page.one("#search").send_keys("zebra")
    assert models(page) == ["m0002"]
    assert page.one("#count").text == f"1 of {COUNT} models"
    page.run("arguments[0].value=''; arguments[0].dispatchEvent(new Event('input'))",
             page.one("#search"))  # fmt: skip
    page.click("#only option[value=stop]")
    assert models(page) == ["m0005"]
    assert "excluded" in page.one("tr[data-model=m0005] .flags").text
    assert "near chance" in page.one("tr[data-model=m0005] .flags").text


def test_a_mark_tells_its_model_under_the_pointer(page: Page) -> None:
    shown = hovered(page, points(page)[2])
    assert "STAMP" in shown and any(name in shown for name in ("Zebra", "Aardvark", "Model"))
    assert page.logged() == []


def test_another_target_moves_the_marks_and_changes_what_is_said(page: Page) -> None:
    before, said = places(page), page.one("#rho-stamp").text
    assert f"{RHO} = " in said and "95 % interval" in said
    assert set(page.texts(".target-title")) == {"Mean of targets"}
    options = page.texts("#target option")
    assert options == ["Mean of targets", "Clinic", "Coast"]
    page.click("#target option[value=coast]")
    page.until(lambda: places(page) != before)
    assert len(points(page)) == COUNT
    assert set(page.texts(".target-title")) == {"Coast"}  # also where the menu is not printed


def test_picks_are_seen_in_the_table_and_in_the_charts(page: Page) -> None:
    before = [each.get_attribute("d") for each in points(page)]
    page.click("tr[data-model=m0003] input")
    page.until(lambda: [each.get_attribute("d") for each in points(page)] != before)
    assert "picked" in page.one("tr[data-model=m0003]").get_attribute("class")
    mark = points(page)[0]
    page.click(mark)
    page.until(lambda: len(page.all("tr.picked")) == 2)
    page.click("#clear")
    assert page.all("tr.picked") == []


def test_every_section_has_a_heading_and_a_way_to_it(page: Page) -> None:
    found = "return Array.from(document.querySelectorAll('main section'), (one) => one.id)"
    sections = page.run(found)
    links = page.all("nav a[href^='#']")
    assert [one.get_attribute("href").split("#")[1] for one in links] == sections
    wanted = ["answer", "leaderboard", "outcomes", "certainty", "baselines", "robustness",
              "regret", "pretraining", "training", "analyses", "repeat"]  # fmt: skip
    assert sections == wanted
    for each in page.all("main section:not(#answer)"):
        assert each.find_element("css selector", "h2").is_displayed()
    assert all(one.size["height"] > 120 for one in page.all("main .chart svg"))
    assert page.logged() == []


def test_the_heat_map_of_the_order_tells_how_often_a_model_is_above_another(page: Page) -> None:
    assert len(cells(page, "outranks")) == COUNT * (COUNT - 1)
    shown = hovered(page, cells(page, "outranks")[0])
    assert "above in" in shown and "%" in shown


def test_other_predictors_follow_the_menu_of_targets(page: Page) -> None:
    before = places(page, "baselines")
    assert len(before) == 3 and page.run("return window.hacked") is None
    assert any(one.startswith("</script><img") for one in words_of(page, "baselines"))
    page.click("#target option[value=coast]")
    page.until(lambda: places(page, "baselines") != before)
    assert "predictor" in hovered(page, points(page, "baselines")[0])


def test_stress_tests_have_a_cell_per_model_and_change_and_follow_picks(page: Page) -> None:
    tested = COUNT - 1  # the last one could not be run
    found = cells(page, "robustness")
    assert len(found) == tested * (len(made_up_page.CHANGES) + 1)  # and the mean
    words = words_of(page, "robustness")
    assert words.count("0.90") == tested  # clean, as a number
    assert {"clean", "mean", "salt and pepper", "Zebra"} <= set(words) and "Model 7" not in words
    shown = hovered(page, found[-1])
    assert "difference" in shown and "changed" in shown
    page.click("tr[data-model=m0002] input")
    faint = "return arguments[0].filter((one) => +one.getAttribute('opacity') < 0.5).length"
    page.until(lambda: page.run(faint, cells(page, "robustness")))
    others = (tested - 1) * (len(made_up_page.CHANGES) + 1)
    assert page.run(faint, cells(page, "robustness")) == others


def test_regret_follows_the_number_of_models_at_hand_and_the_target(page: Page) -> None:
    words = {"STAMP", "source top-1", "random choice"}
    assert words <= set(words_of(page, "regret"))
    before = places(page, "regret")
    choices = page.all("#chart-regret input[type=radio]")
    assert [one.get_attribute("value") for one in choices] == ["5", "12", "20"]
    assert choices[1].is_selected()
    page.click(choices[0])
    page.until(lambda: places(page, "regret") != before)
    fewer = places(page, "regret")
    page.click("#target option[value=clinic]")
    page.until(lambda: places(page, "regret") != fewer)
    assert "loss" in hovered(page, points(page, "regret")[0])


def test_models_of_other_pretraining_data_are_warned_of_and_ranked_apart(page: Page) -> None:
    assert comparability.WENT_WRONG in page.one("#pretraining").text
    rows = [row.text.split() for row in page.all("#pretraining tbody tr")]
    assert [row[:2] for row in rows] == [["in1k", "4"], ["in21k", "3"]]
    assert rows[0][2] != DASH and rows[1][2:] == [DASH, DASH]  # three models are too few


def test_picks_are_seen_in_the_curves_of_training(page: Page) -> None:
    widths = "return arguments[0].map((one) => one.getAttribute('stroke-width'))"
    assert len(page.all("#chart-training .mark-line.role-mark path")) == COUNT
    page.click("tr[data-model=m0003] input")
    drawn = lambda: page.run(widths, page.all("#chart-training .mark-line.role-mark path"))  # noqa: E731
    page.until(lambda: sorted(drawn()) == ["1.3"] * (COUNT - 1) + ["4"])
    assert "training loss" in hovered(page, points(page, "training")[0])


def test_the_page_ends_with_analyses_and_how_to_repeat_it(page: Page) -> None:
    assert "A sentence of an analysis." in page.one("#analyses").text
    assert "snakemake --cores 8" in page.one("#repeat pre").text
    configuration = page.one("#repeat details pre")
    assert not configuration.is_displayed()
    page.click("#repeat summary")
    assert configuration.is_displayed() and configuration.text == "title: A study"


def test_the_csv_is_the_leaderboard(page: Page) -> None:
    address = page.one("a[download]").get_attribute("href")
    assert page.one("a[download]").get_attribute("download") == "made-up-leaderboard.csv"
    table = pl.read_csv(base64.b64decode(address.partition("base64,")[2]))
    assert len(table) == COUNT and table["label"][0] == made_up_page.HOSTILE


def test_a_card_shows_score_flags_pairs_and_distances(page: Page) -> None:
    page.click("tr[data-model=m0000] button.link")
    page.until(lambda: page.all("#chart-distances .mark-rect path"))
    words = page.one("#card").text
    for part in ("0.900", "What was not tested", "snakemake", "Pairs that add most to SV",
                 "Typical pairs", "30 % of their SV", "labeled cat", "not labeled"):  # fmt: skip
        assert part in words, part
    pictures = page.all("#card .pair img")
    assert len(pictures) == 12  # of the six pairs that add most; the typical ones have none here
    assert page.run("return arguments[0].naturalWidth", pictures[0]) == 1
    assert pictures[0].get_attribute("alt") == "first image, labeled cat"
    assert page.run("return document.activeElement.id") == "card-title"
    page.one("#card-title").send_keys("\ue00c")  # Escape
    page.until(lambda: not page.one("#card").is_displayed())
    assert page.logged() == []


def test_a_card_has_an_address_of_its_own(driver: Any, files: Path) -> None:
    page = Page(driver, files / "full" / "page.html")
    page.run("location.hash = 'model=m0004'")
    page.until(lambda: page.texts("#card-title"))
    assert page.texts("#card-title") == ["Model 4"]


def test_many_models_are_shown_in_pages(driver: Any, files: Path) -> None:
    page = Page(driver, files / "large" / "page.html")
    count = "return document.querySelectorAll('#leaderboard-table tbody tr:not([hidden])').length"
    assert page.run(count) == 50
    assert page.one("#page-number").text == "page 1 of 20"
    page.click("#next")
    assert page.one("#page-number").text == "page 2 of 20"
    page.one("#search").send_keys("m0999")
    assert models(page) == ["m0999"]


@contextmanager
def screen(page: Page, width: int) -> Iterator[None]:
    """A screen of so many pixels; below 500 a phone's."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        yield
    finally:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("width", [400, 800, 1400])
@pytest.mark.parametrize("name", ["full/page.html", "index.html"])
def test_no_width_makes_a_page_scroll_sideways(
    driver: Any, files: Path, name: str, width: int
) -> None:
    page = Page(driver, files / name)
    with screen(page, width):
        page.until(lambda: page.run("return innerWidth") == width)
        assert page.run("return document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize(("width", "shown"), [(400, ["excluded"]), (800, ["excluded"]), (1400, [])])
def test_a_narrow_screen_has_flags_under_the_name(page: Page, width: int, shown: list[str]) -> None:
    with screen(page, width):
        page.until(lambda: page.run("return innerWidth") == width)
        assert page.texts("tr[data-model=m0005] th .flag") == shown
        assert page.one("tr[data-model=m0005] td .flag").is_displayed()


@pytest.mark.parametrize("width", [400, 800, 1400])
def test_no_legend_is_cut_off(driver: Any, files: Path, width: int) -> None:
    right = "return arguments[0].map((one) => one.getBoundingClientRect().right)"
    with screen(Page(driver, files / "full" / "page.html"), width):
        page = Page(driver, files / "full" / "page.html")
        assert max(page.run(right, page.all(FIXED))) < width


def test_a_phone_gets_heat_maps_that_can_be_read(driver: Any, files: Path) -> None:
    with screen(Page(driver, files / "bare" / "page.html"), 400):
        page = Page(driver, files / "large" / "page.html")
        widths = "return arguments[0].map((one) => one.getBoundingClientRect().width)"
        for chart, least in (("outranks", 10), ("robustness", 25)):
            assert min(page.run(widths, cells(page, chart))) > least


def test_words_in_charts_follow_light_and_dark(page: Page) -> None:
    colour = "return getComputedStyle(document.querySelector('.chart text')).fill"
    seen = {}
    for scheme in ("light", "dark"):
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        seen[scheme] = page.run(colour)
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert seen == {"light": "rgb(28, 33, 38)", "dark": "rgb(231, 235, 239)"}


def test_the_index_leads_to_the_pages(driver: Any, files: Path) -> None:
    driver.get((files / "index.html").as_uri())
    assert len(driver.find_elements("css selector", ".study")) == 3
    driver.find_element("css selector", ".study a").click()
    assert driver.current_url == (files / "full" / "page.html").as_uri()
