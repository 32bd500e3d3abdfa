"""A table of one's own: the same numbers as a study's, a page that shows them, clear mistakes."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from project import ROOT
from scipy.stats import spearmanr

from stamp.__main__ import main
from stamp.cli.statistics import user_table
from stamp.cli.statistics.chosen_columns import ColumnChoice
from stamp.config.registries.analyses import ANALYSES
from stamp.core.errors import UserError
from stamp.stats.correlations.noisy_control import SimulationSettings, partial_given_noisy_control
from stamp.stats.correlations.partial_correlation import partial_spearman

PAGE = ROOT / "docs" / "your-own-table.md"
EXAMPLE = ROOT / "docs" / "your-own-table.csv"
COMMAND = ["statistics", "docs/your-own-table.csv", "--out", "results/mine"]
COMMAND += ["--controls", "epochs", "--title", "Made-up table"]
ROWS = {
    "model": ["a", "b", "c", "d", "e"],
    "score": ["0.1", "0.2", "0.3", "0.5", "0.4"],
    "source_metric": ["0.5", "0.6", "0.7", "0.8", "0.75"],
    "far": ["0.4", "0.45", "0.6", "0.5", "0.7"],
}


def table(folder: Path, **columns: list[str] | None) -> Path:
    """A small table with some columns changed, added or (None) left out."""
    chosen = {name: cells for name, cells in {**ROWS, **columns}.items() if cells is not None}
    lines = [",".join(chosen), *(",".join(row) for row in zip(*chosen.values(), strict=True))]
    path = folder / "my.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder in which the page's command ran, and what it printed."""
    folder = tmp_path_factory.mktemp("own")
    return folder, ran(folder)


def ran(folder: Path) -> str:
    """What the page's command prints in a folder that has the page's table."""
    (folder / "docs").mkdir()
    shutil.copy(EXAMPLE, folder / "docs")
    run = subprocess.run(
        [sys.executable, "-m", "stamp", *COMMAND],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT / "workflow" / "scripts")},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def shown(which: str) -> str:
    """A block of the page, by the comment before it."""
    found = re.search(rf"<!-- {which}: [^\n]*\n```text\n(.*?)```", PAGE.read_text(), re.S)
    assert found, which
    return found[1]


def files(folder: Path) -> str:
    """The files that a run leaves, as the page lists them: of the analyses two for all."""
    found = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.*"))
    others = set(ANALYSES) - {"partials", "probit"}
    own = [path for path in found if path.startswith("results")]
    return "".join(f"{one}\n" for one in own if _stem(one) not in others)


def _stem(path: str) -> str:
    return Path(path).stem.removesuffix("_models")


def mistakes() -> str:
    """What some mistakes are answered with."""
    said = []
    with tempfile.TemporaryDirectory() as folder:
        for columns in (
            {"score": None, "scores": ROWS["score"]},
            {"model": ["a", "b", "a", "d", "e"]},
            {"far": ["0.4", "high", "0.6", "0.5", "0.7"]},
            {"far": ["0.4", "", "0.6", "0.5", "0.7"]},
            {"source_metric_se": ["0.01", "-0.02", "", "0.01", "0.01"]},
        ):
            with pytest.raises(UserError) as caught:
                user_table.read(table(Path(folder), **columns))
            said.append(str(caught.value).replace(f"{folder}/", ""))
    return "".join(f"stamp: {one}\n" for one in said)


def regenerate(folder: Path) -> None:
    """Write what a run says into the page: by hand, where that is meant to change.

    ``PYTHONPATH=workflow/scripts:tests:. .venv/bin/python tests/cli/test_statistics.py``
    """
    printed, page = ran(folder), PAGE.read_text()
    sentence = (folder / "results/mine/analyses/partials.txt").read_text()
    for which, text in (
        ("what the command prints", printed),
        ("the files", files(folder)),
        ("a sentence", sentence),
        ("mistakes", mistakes()),
    ):
        block = rf"(<!-- {which}: [^\n]*\n```text\n).*?```"
        page = re.sub(block, lambda found, text=text: f"{found[1]}{text}```", page, flags=re.S)
    PAGE.write_text(page)


def test_the_page_shows_what_the_command_prints_and_writes(done: tuple[Path, str]) -> None:
    folder, printed = done
    assert shown("what the command prints") == printed
    assert shown("the files") == files(folder)
    sentence = (folder / "results/mine/analyses/partials.txt").read_text()
    assert shown("a sentence") == sentence
    assert shown("mistakes") == mistakes()
    assert " ".join(COMMAND[:-1]) in PAGE.read_text()


def test_without_a_standard_error_nothing_is_corrected_and_the_table_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = ["--permutations", "9", "--resamples", "9"]
    assert main(["statistics", str(table(tmp_path)), "--out", str(tmp_path / "out"), *few]) in (
        0,
        None,
    )
    assert "no correction is possible" in capsys.readouterr().out
    found = pl.read_csv(tmp_path / "out" / "statistics" / "correlations.csv")
    rows = found.filter(predictor="stamp")
    assert rows["partial_source_corrected"].null_count() == len(rows)
    assert "not known" in rows["partial_source_corrected_reason"][0]


def test_the_numbers_are_those_of_the_table(done: tuple[Path, str]) -> None:
    folder = done[0] / "results" / "mine"
    given = pl.read_csv(EXAMPLE)
    main_table = pl.read_csv(folder / "statistics" / "main.csv")
    for which, rows in (("all", given), ("declared", given.filter(pl.col("excluded").is_null()))):
        for target in ("hospital_a", "hospital_b"):
            row = main_table.filter(target=target, models=which).row(0, named=True)
            x, y, z = (rows[name].to_numpy() for name in ("score", target, "source_metric"))
            assert row["n"] == len(rows)
            assert row["rho"] == pytest.approx(spearmanr(x, y)[0])
            assert row["source_metric_rho"] == pytest.approx(spearmanr(z, y)[0])
            assert row["partial"] == pytest.approx(partial_spearman(x, y, z).rho)
            errors = rows["source_metric_se"].to_numpy()
            found = partial_given_noisy_control(x, y, z, errors, SimulationSettings())
            assert row["corrected"] == pytest.approx(found.corrected, nan_ok=True)
            assert row["source_metric_error"] == pytest.approx(np.sqrt(np.mean(errors**2)))
    kept = given.filter(pl.col("excluded").is_null())
    epochs = kept["epochs"].to_numpy()[None]
    rows = pl.read_csv(folder / "analyses" / "partials.csv")
    found = rows.filter(models="declared", outcome="hospital_b", controls="epochs")["partial"][0]
    x, y = kept["score"].to_numpy(), kept["hospital_b"].to_numpy()
    assert found == pytest.approx(partial_spearman(x, y, epochs).rho)
    ranks = pl.read_csv(folder / "leaderboard.csv").drop_nulls("place")
    assert ranks["stamp"].to_list() == sorted(kept["score"], reverse=True)


def test_every_analysis_that_needs_nothing_else_is_there(done: tuple[Path, str]) -> None:
    folder = done[0] / "results" / "mine" / "analyses"
    for name in ["baselines", *(key for key, one in ANALYSES.items() if not one.inputs)]:
        assert (folder / f"{name}.txt").read_text().endswith(".\n")
        assert not pl.read_csv(folder / f"{name}.csv", infer_schema_length=None).is_empty()


def test_one_target_without_a_rule_is_enough(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    note = ["one", "", "two", "", ""]
    path = table(tmp_path, note=note)
    quick = ["--permutations", "50", "--resamples", "50"]
    assert main(["statistics", str(path), "--out", str(tmp_path / "out"), *quick]) == 0
    printed = capsys.readouterr().out
    assert "| far | STAMP | all | 5 |" in printed and "declared" not in printed
    assert "left alone: note" in printed
    assert (tmp_path / "out" / "figures" / "targets.png").is_file()


def test_outcomes_that_are_no_shares_have_everything_but_lines(tmp_path: Path) -> None:
    path = table(tmp_path, far=["12", "30", "25", "61", "40"])
    quick = ["--permutations", "50", "--resamples", "50"]
    assert main(["statistics", str(path), "--out", str(tmp_path / "out"), *quick]) == 0
    assert "no probit" in (tmp_path / "out" / "analyses" / "probit.txt").read_text()
    x, y = (np.array(cells, float) for cells in (ROWS["score"], ["12", "30", "25", "61", "40"]))
    found = pl.read_csv(tmp_path / "out" / "statistics" / "main.csv")["rho"][0]
    assert found == pytest.approx(spearmanr(x, y)[0])
    baselines = pl.read_csv(tmp_path / "out" / "analyses" / "baselines.csv")
    line = baselines.filter(pl.col("predictor") == "on_the_line")
    assert line["rho"].is_null().all() and set(line["reason"]) == {"not available"}
    both = baselines.filter((pl.col("outcome") == "far") & (pl.col("models") == "all"))
    z = np.array(ROWS["source_metric"], float)
    gap = spearmanr(z, y)[0] - spearmanr(x, y)[0]
    assert both.filter(predictor="source_metric")["minus_stamp"][0] == pytest.approx(gap)


FIVE = ["1", "2", "3", "4", "5"]


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        (
            {"source_metric": None, "source_metrics": FIVE},
            ["'source_metric'", "did you mean 'source_metrics'?"],
        ),
        ({"model": ["a", "b", "a", "d", "e"]}, ["model 'a'", "twice"]),
        ({"model": ["a", "", "c", "d", "e"]}, ["model 2"]),
        ({"score": ["0.1", "x", "1", "2", "3"]}, ["model 'b'", "column 'score'", "'x'"]),
        ({"far": ["0.4", "nan", "0.6", "0.5", "0.7"]}, ["model 'b'", "column 'far'", "'nan'"]),
        ({"far": ["0.4", "", "0.6", "0.5", "0.7"]}, ["model 'b'", "column 'far'", "no value"]),
        ({"parameters": ["1", "many", "", "", ""]}, ["model 'b'", "'parameters'", "'many'"]),
        ({"far": None}, ["no target"]),
        ({"source:near": FIVE}, ["'source:near'", "no target 'near'"]),
        ({"source_se:far": FIVE}, ["'source_se:far'", "'source:far'"]),
        (
            {"source:far": FIVE, "source_se:far": ["0", "-1", "0", "0", "0"]},
            ["model 'b'", "'source_se:far'", "-1"],
        ),
        ({"mean": FIVE}, ["reserved", "'mean'"]),
        ({name: cells[:3] for name, cells in ROWS.items()}, ["3 models", "at least 4"]),
        ({"far": [*ROWS["far"][:4], "0.7,9"]}, ["line 6", "5 cells", "4"]),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_written(
    columns: dict, named: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = table(tmp_path, **columns)
    assert main(["statistics", str(path), "--out", str(tmp_path / "out")]) == 1
    line = capsys.readouterr().err
    assert line.startswith(f"stamp: {path}") and all(one in line for one in named), line
    assert line.count("\n") == 1 and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("more", "named"),
    [
        (["--controls", "fa"], ["'fa'", "did you mean 'far'?"]),
        (["--controls", "score"], ["'score'", "known: far"]),
        (["--permutations", "0"], ["--permutations 0", "1"]),
        (["--level", "95"], ["--level 95.0", "between 0 and 1"]),
        (["--equivalence", "0"], ["--equivalence 0.0", "above 0", "2"]),
        (["--score", "fare*"], ["'fare*'", "far"]),
        (["--source", "sourc_metric"], ["'sourc_metric'", "did you mean 'source_metric'?"]),
        (["--targets", "far", "--matched", "near=score"], ["--matched near", "far"]),
        (["--targets", "far", "--matched", "far"], ["--matched far", "target=column"]),
        (["--percent"], ["--percent", "--targets"]),
    ],
)
def test_an_argument_that_can_not_be_is_one_line(
    more: list[str], named: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = table(tmp_path)
    assert main(["statistics", str(path), "--out", str(tmp_path / "out"), *more]) == 1
    line = capsys.readouterr().err
    assert all(one in line for one in named) and line.count("\n") == 1, line
    assert not (tmp_path / "out").exists()


def test_columns_of_another_table_are_taken_by_name_mean_and_pattern(tmp_path: Path) -> None:
    columns = {
        "noise.1": ["10", "20", "30", "", "50", "10"],
        "noise.2": ["30", "20", "50", "40", "70", "30"],
        "val": ["50", "60", "70", "80", "90", "50"],
        "val-on-far": ["55", "61", "72", "83", "94", "55"],
        "far": ["40", "45", "60", "50", "70", "40"],
        "left alone": ["x"] * 6,
    }
    names = ["a", "b", "c", "d", "e", "copy of a"]
    path = table(tmp_path, model=names, score=None, source_metric=None, **columns)
    choice = ColumnChoice(["noise.*"], "val", ["far"], {"far": "val-on-far"}, True, True)
    found = user_table.read(path, (), choice)
    assert found.models == ["a", "b", "c", "e"]  # d lacks a value, the last repeats the first
    assert found.numbers["score"] == pytest.approx([0.2, 0.2, 0.4, 0.6])
    assert found.numbers["source:far"] == pytest.approx([0.55, 0.61, 0.72, 0.94])
    assert found.targets == ["far"]
    whole = user_table.read(path, (), ColumnChoice(["noise.2"], "val", ["far"], percent=True))
    assert len(whole.models) == 6 and "source:far" not in whole.numbers


def test_a_class_matched_source_metric_is_what_partials_hold_fixed(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    names = ("score", "source_metric", "far", "near", "source:far", "source_se:far")
    columns = {name: [f"{value:.3f}" for value in rng.random(14)] for name in names}
    path = table(tmp_path, model=[f"m{k}" for k in range(14)], **columns)
    few = ["--permutations", "20", "--resamples", "20"]
    assert main(["statistics", str(path), "--out", str(tmp_path / "out"), *few]) in (0, None)
    x, y, z, plain = (
        np.array(columns[name], float) for name in ("score", "far", "source:far", "source_metric")
    )
    rows = pl.read_csv(tmp_path / "out/statistics/correlations.csv").filter(
        outcome="far", predictor="stamp", filter="all"
    )
    assert rows["partial_source"][0] == pytest.approx(partial_spearman(x, y, z).rho)
    assert rows["partial_plain_source"][0] == pytest.approx(partial_spearman(x, y, plain).rho)
    board = pl.read_csv(tmp_path / "out/leaderboard.csv").sort("model")
    mine = dict(zip([f"m{k}" for k in range(14)], z, strict=True))
    assert board["source:far"].to_list() == pytest.approx([mine[key] for key in board["model"]])
    regret = pl.read_csv(tmp_path / "out/analyses/regret.csv").filter(outcome="far", k=12)
    for name, score in (("stamp", x), ("source_metric", plain), ("source_matched", z)):
        picks = [
            y[max(some, key=lambda at, score=score: score[at])]
            for some in combinations(range(14), 12)
        ]
        best = np.mean([y[list(some)].max() for some in combinations(range(14), 12)])
        found = regret.filter(predictor=name)["regret"][0]
        assert found == pytest.approx(best - np.mean(picks))
    assert "Regret" in (tmp_path / "out/page.html").read_text()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "no such file"),
        (b"", "the first line must name the columns"),
        (b"model,score\n\xff\xfe,1\n", "can't be read as CSV in UTF-8"),
        (b"model,score,score,source_metric\n", "the column 'score' stands twice"),
    ],
)
def test_what_is_no_table_is_refused(content: bytes | None, said: str, tmp_path: Path) -> None:
    path = tmp_path / "my.csv"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError, match=re.escape(said)):
        user_table.read(path)


def test_excel_s_mark_at_the_beginning_and_blank_lines_do_no_harm(tmp_path: Path) -> None:
    path = table(tmp_path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n") + b"\r\n,,,\r\n")
    found = user_table.read(path)
    assert found.models == ROWS["model"] and found.targets == ["far"]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        regenerate(Path(place))


def test_row_numbers_without_a_name_are_no_target_and_percent_is_told(tmp_path: Path) -> None:
    from stamp.cli.statistics.user_table import read

    rows = [f"{n},m{n},0.{n + 1},0.{n + 2},0.{n + 1}5" for n in range(7)]
    file = tmp_path / "t.csv"
    file.write_text("\n".join([",model,score,source_metric,far", *rows]) + "\n")
    assert read(file).targets == ["far"]
    file.write_text(file.read_text().replace("0.35", "35.5%"))
    with pytest.raises(UserError, match=r"column 'far': '35\.5%' is percent: .*write 0\.355"):
        read(file)
