"""The page in a real browser: it sorts, filters, hovers, switches targets, and opens cards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import made_up_page
import pytest
from browser import Page, chromium

from stamp.report.page.render import index_html, study_html, summary
from stamp.report.wording import RHO

NAMES = {0: made_up_page.HOSTILE, 1: "Aardvark", 2: "Zebra"}


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The index and three pages: a study with everything, one without targets, a large one."""
    folder = tmp_path_factory.mktemp("pages")
    how: dict[str, dict[str, Any]] = {
        "full": {"count": 6, "names": NAMES, "images": True, "excluded": {5: "near chance"}},
        "bare": {"count": 1, "targets": False},
        "large": {"count": 1000},
    }
    told = []
    for name, options in how.items():
        page = made_up_page.page(**options)
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


def heights(page: Page) -> list[str]:
    return [each.get_attribute("transform") for each in points(page)]


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
    assert models(page) == [f"m{i:04d}" for i in range(6)]


def test_search_and_the_flags_filter_rows(page: Page) -> None:
    page.one("#search").send_keys("zebra")
    assert models(page) == ["m0002"]
    assert page.one("#count").text == "1 of 6 models"
    page.run("arguments[0].value=''; arguments[0].dispatchEvent(new Event('input'))",
             page.one("#search"))  # fmt: skip
    page.click("#only option[value=stop]")
    assert models(page) == ["m0005"]
    assert "excluded" in page.one("tr[data-model=m0005] .flags").text
    assert "near chance" in page.one("tr[data-model=m0005] .flags").text


def test_a_mark_tells_its_model_under_the_pointer(page: Page) -> None:
    from selenium.webdriver import ActionChains

    mark = points(page)[2]
    page.run("arguments[0].scrollIntoView({block: 'center'})", mark)
    ActionChains(page.driver).move_to_element(mark).perform()
    shown = page.until(lambda: page.texts("#vg-tooltip-element"))[0]
    assert "STAMP" in shown and any(name in shown for name in ("Zebra", "Aardvark", "Model"))
    assert page.logged() == []


def test_another_target_moves_the_marks_and_changes_what_is_said(page: Page) -> None:
    before, said = heights(page), page.one("#rho-stamp").text
    assert f"{RHO} = " in said and "95 % interval" in said
    options = page.texts("#target option")
    assert options == ["Mean of targets", "Clinic", "Coast"]
    page.click("#target option[value=coast]")
    page.until(lambda: heights(page) != before)
    assert len(points(page)) == 6


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


@pytest.mark.parametrize("width", [400, 800, 1400])
@pytest.mark.parametrize("name", ["full/page.html", "index.html"])
def test_no_width_makes_a_page_scroll_sideways(
    driver: Any, files: Path, name: str, width: int
) -> None:
    page = Page(driver, files / name)
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        page.until(lambda: page.run("return innerWidth") == width)
        assert page.run("return document.documentElement.scrollWidth") <= width
    finally:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


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
