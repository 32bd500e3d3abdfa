"""The command line itself: help, version, suggestions, the project's folder, tables, completion."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest

from stamp import __version__
from stamp.__main__ import main, parser
from stamp.cli import COMMANDS
from stamp.cli.completion import script
from stamp.cli.project_folder import seen_from
from stamp.cli.runs.run_log import Run, RunJob
from stamp.cli.terminal.arguments import Place
from stamp.cli.terminal.report_lines import Report
from stamp.cli.terminal.tables import table, titled

NAMES = [name.replace("_", "-") for name in COMMANDS]


def helped(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as left:
        main([*arguments])
    assert left.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("name", NAMES)
def test_help_fits_80_columns_and_its_example_is_understood(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    text = helped(capsys, name, "--help")
    assert max(map(len, text.splitlines())) <= 80
    shown = text.partition("example:\n")[2].replace("\\\n", " ")
    words = shlex.split(shown.partition(">")[0])
    assert words[:3] == ["python", "-m", "stamp"]
    assert parser().parse_args(words[3:]).command == name


def test_the_list_of_commands_fits_too_and_the_version_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = helped(capsys, "--help")
    assert max(map(len, text.splitlines())) <= 80
    assert all(f"    {name}" in text for name in NAMES)
    assert helped(capsys, "--version") == f"stamp {__version__}\n"


def test_no_command_prints_the_list_of_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    said = capsys.readouterr().out
    assert all(f"    {name}" in said for name in NAMES)


def test_a_mistyped_command_is_one_line_with_the_one_that_is_meant(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--project", ".", "stauts", "--study", "x"]) == 2
    assert capsys.readouterr().err == "stamp: no command 'stauts': did you mean 'status'?\n"


def test_a_command_finds_its_project_from_a_subfolder_and_paths_stay_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.yaml").write_text("studies: [gone]\nseed: 0\n")
    inside = tmp_path / "mine" / "deep"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    assert main(["status"]) == 1
    assert "config/datasets.yaml" in capsys.readouterr().err  # of the project, which has none
    given = argparse.Namespace(
        out=Path("card.json"), data=Place("here.csv"), key=Place("phantom"),
        many=[Place("here.csv")], whole=Path("/tmp/x"), word="here.csv", project=None,
    )  # fmt: skip
    (inside / "here.csv").touch()
    seen_from(tmp_path, given)
    assert (given.out, given.data) == (Path("mine/deep/card.json"), "mine/deep/here.csv")
    assert (given.key, given.many) == ("phantom", ["mine/deep/here.csv"])
    assert (given.whole, given.word) == (Path("/tmp/x"), "here.csv")
    assert type(given.data) is type(given.key) is str
    assert Path.cwd() == inside


def test_a_project_is_named_from_anywhere_and_must_be_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["--project", "nowhere", "metrics"]) == 1
    assert "--project nowhere: no project" in capsys.readouterr().err
    (tmp_path / "there" / "config").mkdir(parents=True)
    (tmp_path / "there" / "config" / "config.yaml").write_text("studies: [gone]\nseed: 0\n")
    assert main(["--project", "there", "example-data", "new", "--patients", "10"]) == 0
    assert (tmp_path / "new" / "shapes").is_dir()


ROWS = [["a-name-that-stays", "some words that may be wrapped anywhere", "x" * 12], ["b", "c", "d"]]


@pytest.mark.parametrize("columns", [45, 60, 200])
def test_tables_fit_the_terminal_and_lose_nothing(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    text = table(ROWS, indent="  ")
    assert max(map(len, text.splitlines())) <= columns
    assert sorted(text.split()) == sorted(" ".join(cell for row in ROWS for cell in row).split())


def test_a_pipe_gets_one_line_per_row_and_a_narrow_terminal_paragraphs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert len(table(ROWS).splitlines()) == 2
    assert len(titled(["name", "text", "more"], ROWS).splitlines()) == 4
    monkeypatch.setenv("COLUMNS", "30")
    narrow = titled(["name", "text", "more"], ROWS)
    assert max(map(len, narrow.splitlines())) <= 30
    assert "  more: d" in narrow


def test_wrapped_titles_stay_above_the_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "45")
    titles = ["name", "a title of many words that is wrapped", "more"]
    above, _, below = titled(titles, ROWS).partition("---")
    assert sorted(above.split()) == sorted(" ".join(titles).split())
    assert "a-name-that-stays" in below


def test_metrics_fit_80_columns_and_are_told_to_programs_without_colours(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["metrics"]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text
    assert main(["metrics", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"name", "metric", "needs", "better", "tasks", "reference"} == set(found[0])
    assert all(one["name"] in text for one in found)


def test_a_report_is_told_to_programs_by_level() -> None:
    report = Report(facts={"images": 3})
    for level in ("note", "error", "error"):
        report.found(level, f"a {level}")
    expected = {"images": 3, "errors": ["a error"], "warnings": [], "notes": ["a note"]}
    assert report.record() == expected


def test_logs_are_told_to_programs() -> None:
    from stamp.cli.logs import record

    jobs = {
        "1": RunJob("score", {"study": "s", "model": "m"}, Path("m.log"), "failed", 2),
        "2": RunJob("pairs", {"study": "s"}, None, "finished", 1),
    }
    found = record(Run(Path("run.log"), jobs, True, "now"), "s", failed=True)
    assert [job["rule"] for job in found["jobs"]] == ["score"]
    assert json.loads(json.dumps(found))["jobs"][0]["attempts"] == 2


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("stamp chec", {"check-data"}),
        ("stamp status --j", {"--json"}),
        ("stamp --project x logs --fa", {"--failed"}),
        ("stamp check-data fol", {"folder"}),
        ("stamp status --study cl", {"clinic"}),
        ("stamp open c", {"clinic"}),
    ],
)
def test_bash_completes_commands_options_studies_and_files(
    line: str, expected: set[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", "bash"]) == 0
    (tmp_path / "completion").write_text(capsys.readouterr().out)
    (tmp_path / "folder").mkdir()
    (tmp_path / "config" / "studies").mkdir(parents=True)
    (tmp_path / "config" / "studies" / "clinic.yaml").touch()
    words = " ".join(f"'{word}'" for word in line.split())
    asked = (
        f"source completion; COMP_WORDS=({words}); COMP_CWORD={len(line.split()) - 1}; _stamp; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", asked], cwd=tmp_path, capture_output=True, text=True,
        env={"PATH": os.environ["PATH"]}, check=True,
    )  # fmt: skip
    assert set(done.stdout.split()) == expected
    assert "bashcompinit" in script("zsh", {"": [], "status": []})
