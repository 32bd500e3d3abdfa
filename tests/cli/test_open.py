"""`python -m stamp open`: which file it names, and what it says where there is none."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import pytest

from stamp.__main__ import main


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "results" / "phantom").mkdir(parents=True)
    (tmp_path / "results" / "index.html").touch()
    (tmp_path / "results" / "phantom" / "page.html").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_index_is_opened_and_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda address: opened.append(address) or True)
    assert main(["open"]) == 0
    assert main(["open", "phantom"]) == 0
    assert opened == [
        (folder / "results" / "index.html").as_uri(),
        (folder / "results" / "phantom" / "page.html").as_uri(),
    ]
    assert capsys.readouterr().out == "results/index.html\nresults/phantom/page.html\n"


def test_without_a_browser_the_file_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda address: False)
    assert main(["open"]) == 0
    assert "no browser" in capsys.readouterr().out
    monkeypatch.setattr(webbrowser, "open", lambda address: pytest.fail("opened"))
    assert main(["open", "--print"]) == 0


def test_a_page_that_is_not_there_is_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["open", "fantom"]) == 1
    assert "results/fantom/page.html" in (said := capsys.readouterr().err) and "phantom" in said
    (folder / "results" / "index.html").unlink()
    assert main(["open"]) == 1
    assert "results/index.html" in capsys.readouterr().err
