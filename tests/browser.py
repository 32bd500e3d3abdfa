"""A real headless Chromium: what a page does in it, what it asks the network for, what it logs."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--window-size=1400,1000",
)  # fmt: skip
PATIENCE = 120  # seconds until a page that never gets ready is given up


def programs() -> tuple[str, str]:
    """Where Chromium and its driver are; without them a test is skipped, and fails in CI."""
    found = [
        next(filter(None, map(shutil.which, names)), None)
        for names in (("chromium", "chromium-browser", "google-chrome"), ("chromedriver",))
    ]
    if None in found:
        why = "no chromium and chromedriver here: envs/chromium installs Debian's"
        if os.environ.get("CI") == "true":
            pytest.fail(why)
        pytest.skip(why)
    return str(found[0]), str(found[1])


@contextmanager
def chromium(profile: Path) -> Iterator[Any]:
    """A driver with a fresh profile."""
    program, driver = programs()
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield started
    finally:
        started.quit()


class Page:
    """A page that is open in a browser."""

    def __init__(self, driver: Any, path: Path):
        self.driver = driver
        driver.get("about:blank")
        self.logged()
        self.requests()
        driver.get(path.as_uri())
        self.until(
            lambda: self.run(
                "return document.documentElement.dataset.ready || !document.scripts.length"
            )
        )

    def run(self, script: str, *given: Any) -> Any:
        """The value of a script in the page."""
        return self.driver.execute_script(script, *given)

    def all(self, selector: str) -> list[Any]:
        """All elements of a selector."""
        return self.driver.find_elements("css selector", selector)

    def one(self, selector: str) -> Any:
        """The first element of a selector."""
        return self.driver.find_element("css selector", selector)

    def click(self, element: Any) -> None:
        """Click an element (or the first of a selector) where nothing covers it."""
        found = self.one(element) if isinstance(element, str) else element
        self.run("arguments[0].scrollIntoView({block: 'center'})", found)
        found.click()

    def texts(self, selector: str) -> list[str]:
        """The texts of all elements that can be seen."""
        return [each.text for each in self.all(selector) if each.is_displayed()]

    def until(self, condition: Callable[[], Any]) -> Any:
        """Wait until something is true."""
        end = time.monotonic() + PATIENCE
        while not (found := condition()):
            assert time.monotonic() < end, "the page did not get there"
            time.sleep(0.05)
        return found

    def logged(self) -> list[str]:
        """What the page wrote to the console since the last time."""
        return [each["message"] for each in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """The addresses that were asked for since the last time; data and files are no network."""
        messages = [
            json.loads(each["message"])["message"] for each in self.driver.get_log("performance")
        ]
        asked = [
            each["params"]["request"]["url"]
            for each in messages
            if each["method"] == "Network.requestWillBeSent"
        ]
        return [one for one in asked if not one.startswith(("data:", "about:", "chrome:"))]
