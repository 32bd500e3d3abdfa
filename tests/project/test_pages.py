"""Every link from one page to another leads to a file and a heading that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from project import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "config" / "README.md"])
LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(page: Path) -> set[str]:
    """The anchors that a Git host gives a page: its headings and its own."""
    text = page.read_text()
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", title.lower()).strip() for title in titles)
    return {title.replace(" ", "-") for title in plain} | set(re.findall(r'<a id="([^"]+)"', text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(page.read_text()):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), link
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), link


def test_every_page_can_be_reached_from_the_readme() -> None:
    found, new = set(), {ROOT / "README.md"}
    while new:
        found |= new
        links = [
            (page.parent / link.partition("#")[0]).resolve()
            for page in new
            for link in LINK.findall(page.read_text())
            if "://" not in link
        ]
        new = {link for link in links if link.suffix == ".md" and link.is_file()} - found
    assert {page.name for page in (ROOT / "docs").glob("*.md")} <= {page.name for page in found}
