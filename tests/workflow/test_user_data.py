"""Studies of a user's own images without targets: what they leave, and what an edit runs."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from PIL import Image
from project import Project, made_once, model

from stamp.__main__ import main
from stamp.cli.example_data import write_example
from stamp.cli.example_data.clinic import LABELED
from stamp.config.registries.analyses import ANALYSES
from stamp.core.artifacts import read_arrays
from stamp.images.reading import open_image

STUDY = {
    "title": "Clinic",
    "task": "multilabel",
    "classes": list(LABELED),
    "source": {"dataset": "clinic", "train": "train"},
    "preprocessing": {"size": 32, "channels": 1},
    "pairs": {
        "split": "test",
        "semantic": "temporal",
        "also": {"labeled": 40},
        "max_pairs": 70,
        "n_pairs_sweep": [20, 40],
    },
    "calibration": {"split": "calibration", "n_images": 40},
    "zoo": ["clinic"],
    "analyses": sorted(ANALYSES),
    "stress": {"changes": ["blur", "noise"], "images": 40},
    "statistics": {"permutations": 200, "resamples": 200, "minimum": 3},
}
SHAPES = {
    "title": "Shapes",
    "task": "multiclass",
    "classes": ["circle", "square", "triangle"],
    "source": {"dataset": "shapes", "train": "train"},
    "preprocessing": {"size": 32, "channels": 1},
    "pairs": {"split": "test", "semantic": "class", "max_pairs": 60},
    "calibration": {"split": "calibration", "n_images": 15, "scale": True},
    "id": {"split": "test"},
    "zoo": ["shapes"],
    "statistics": {"permutations": 200, "resamples": 200},
}
ABOUT = {"title": "made", "licence": "none", "citation": "none", "access": "form"}
MODELS = ["few", "linear", "noisy"]


def create(folder: Path) -> Project:
    """A project with two studies of the example's files, without targets."""
    project = Project.create(folder, {"clinic": STUDY, "shapes": SHAPES})
    write_example(folder / "mine", patients=80, size=32, seed=1)
    shares = {"train": 0.4, "calibration": 0.2, "test": 0.4}
    project.write(
        "datasets.yaml",
        {
            "clinic": {"adapter": "csv", "root": "mine/clinic", **ABOUT},
            "shapes": {
                "adapter": "folder",
                "root": "mine/shapes",
                "options": {"splits": shares},
                **ABOUT,
            },
        },
    )
    zoo = {
        "linear": model("linear", "Linear", epochs=3),
        "noisy": model("linear", "Linear, noisy", label_noise=0.3),
        "few": model("linear", "Linear, few", fraction=0.5),
    }
    project.write("zoo/clinic.yaml", zoo)
    project.write("zoo/shapes.yaml", zoo)
    return project


@pytest.fixture(scope="session")
def ready(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Project:
    """The project after a run; copy it before changing anything."""
    return made_once(tmp_path_factory, worker_id, "own", create)


@pytest.fixture
def own(ready: Project, tmp_path: Path) -> Project:
    return ready.copy(tmp_path / "own")


def forward(study: str = "clinic") -> Counter[str]:
    """What follows from a new pixel cache of the source, but for the aggregates and figures."""
    return Counter(
        f"{rule} {study}{view} {name}"
        for rule, view in (
            ("logits", " source"),
            ("calibrate", ""),
            ("score", ""),
            ("evaluate", " source"),
        )
        for name in MODELS
    )


def test_without_targets_models_are_ranked_and_every_table_says_so(ready: Project) -> None:
    for study in ("clinic", "shapes"):
        board = pl.read_csv(ready.result(f"{study}/leaderboard.csv"))
        assert sorted(board["model"]) == MODELS
        placed = board.filter(pl.col("place").is_not_null())
        assert placed["place"].to_list() == list(range(1, len(placed) + 1))
        assert placed["stamp"].is_sorted(descending=True)
        assert board["source_metric"].null_count() == 0
        assert not any(name.startswith("target:") for name in board.columns)
        same = pl.read_parquet(ready.result(f"{study}/leaderboard.parquet"))
        assert same["model"].to_list() == board["model"].to_list()
        text = ready.result(f"{study}/statistics/main.md").read_text()
        assert "This study has no targets" in text
        assert "| Target |" not in text


def test_without_targets_figures_show_ranks_and_scores_and_no_empty_panel(ready: Project) -> None:
    folder = ready.result("clinic/figures")
    assert {"forest.png", "ranks.png"} <= {file.name for file in folder.iterdir()}
    assert not (folder / "targets.png").exists()
    for file in folder.glob("*.png"):
        assert len(Image.open(file).convert("L").getcolors()) > 10, file


def test_a_page_of_own_images_holds_none_unless_the_study_says_so(ready: Project) -> None:
    for study in ("clinic", "shapes"):
        html = ready.result(f"{study}/page.html").read_text()
        assert "data:image" not in html and "This page holds images" not in html
        images = pl.read_parquet(ready.result(f"{study}/views/source.parquet"))["image"]
        assert not [one for one in images if f'"{one}"' in html], "not even their names"
        assert not ready.result(f"{study}/thumbnails.parquet").exists()


def test_one_key_puts_own_images_on_the_page_which_says_so(own: Project) -> None:
    own.edit("studies/clinic.yaml", lambda study: study.update(show_images=True))
    assert own.plan() == Counter(["thumbnails clinic", "page clinic", "index_page"])
    own.finish()
    html = own.result("clinic/page.html").read_text()
    assert "data:image/" in html and "This page holds images of the source data set." in html
    assert "This page holds images" not in own.result("shapes/page.html").read_text()


def test_touched_tables_and_images_mean_no_job(own: Project) -> None:
    """They are also other files than those that the run saw: the project is a copy."""
    for number, file in enumerate((own.folder / "mine").rglob("*.*")):
        time = (1_000_000_000 + number) if number % 2 else (2_000_000_000 + number)
        os.utime(file, (time, time))
    assert own.plan() == Counter()


def test_an_edited_table_makes_its_index_anew_and_no_other_data_sets(own: Project) -> None:
    table = own.folder / "mine" / "clinic" / "table.csv"
    table.write_text(table.read_text().replace("2024-01-01", "2023-12-31", 1))
    found = own.plan()
    assert found["find_dataset clinic"] == found["pairs clinic"] == 1
    assert not any("shapes" in job for job in found)


def test_an_image_put_into_a_folder_makes_the_index_anew(own: Project) -> None:
    circles = own.folder / "mine" / "shapes" / "circle"
    shutil.copy2(circles / "000.png", circles / "new.png")
    found = own.plan()
    assert found["find_dataset shapes"] == 1
    assert not any("clinic" in job for job in found)


def test_a_replaced_image_is_decoded_again_and_what_follows_runs(own: Project) -> None:
    rows = pl.read_parquet(own.result("clinic/views/source.parquet"))
    path = own.folder / rows.filter(pl.col("path").str.ends_with(".png"))["path"][0]
    picture, state = open_image(path, 1), path.stat()
    picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT).save(path)
    os.utime(path, (state.st_atime - 1000, state.st_mtime - 1000))
    found = own.plan()
    assert found["pixels clinic source 32-gray-bilinear"] == 1
    assert forward() <= found
    assert "find_dataset clinic" not in found
    assert not any("shapes" in job for job in found)
    own.finish("--until", "pixels")
    assert not any(job.startswith(("find", "pixels")) for job in own.plan())


def test_a_missing_image_is_counted_and_named_by_the_run(own: Project) -> None:
    table = own.folder / "mine" / "clinic" / "table.csv"
    first = table.read_text().splitlines()[1].partition(",")[0]
    (table.parent / first).unlink()
    table.write_text(table.read_text() + "\n")
    done = own.run()
    assert done.code != 0
    assert re.search(rf"stamp: .*mine/clinic.*{re.escape(first)}", done.text), done.text
    assert "Traceback" not in done.text


@pytest.mark.parametrize(("study", "name"), [("clinic", "linear"), ("shapes", "few")])
def test_one_models_card_has_the_workflows_numbers(
    ready: Project,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    study: str,
    name: str,
) -> None:
    monkeypatch.chdir(ready.folder)
    before = {path: path.stat().st_mtime_ns for path in ready.folder.rglob("*")}
    weights = f"results/{study}/trained/{name}.safetensors"
    model = ["--load", f"config/zoo/{study}.yaml", "--model", name, "--file", weights]
    assert main(["audit-model", "--study", study, *model, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    board = pl.read_parquet(ready.result(f"{study}/leaderboard.parquet"))
    row = board.filter(pl.col("model") == name).row(0, named=True)
    for column in ("stamp", "low", "high", "eta2", "within", "total", "temperature", "raw"):
        assert found[column] == row[column], column
    assert found["source_metric"]["value"] == row["source_metric"]
    assert found["flags"] == (row["flags"] or "")
    assert (found["n_semantic"], found["parameters"]) == (row["n_semantic"], row["parameters"])
    others = board.filter((pl.col("model") != name) & pl.col("place").is_not_null())
    assert found["among"]["joint"]
    assert found["among"]["models"] == len(others) > 0
    assert found["among"]["place"] == 1 + int((others["stamp"] > row["stamp"]).sum())
    if len(others) == len(board) - 1 and row["place"] is not None:
        assert found["among"]["place"] == row["place"]
        assert found["among"]["low"] == row["rank_low"]
        assert found["among"]["high"] == row["rank_high"]
    assert {path: path.stat().st_mtime_ns for path in ready.folder.rglob("*")} == before


def test_the_arguments_of_a_card_give_the_workflows_numbers_too(
    ready: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same settings word by word, without the study's file."""
    monkeypatch.chdir(ready.folder)
    weights = "results/clinic/trained/noisy.safetensors"
    settings = ["--task", "multilabel", "--classes", ",".join(LABELED), "--pairs", "70"]
    settings += ["--calibration-count", "40", "--resamples", "200", "--size", "32"]
    model = ["--load", "config/zoo/clinic.yaml", "--model", "noisy", "--file", weights]
    data = ["--data", "mine/clinic/table.csv", "--channels", "1"]
    assert main(["audit-model", *data, *settings, *model, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    board = pl.read_parquet(ready.result("clinic/leaderboard.parquet"))
    row = board.filter(pl.col("model") == "noisy").row(0, named=True)
    for column in ("within", "total", "raw", "temperature"):
        assert found[column] == row[column], column


def test_a_card_is_written_where_it_is_asked_for(
    ready: Project,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(ready.folder)
    weights = "results/shapes/trained/linear.safetensors"
    model = ["--load", "config/zoo/shapes.yaml", "--model", "linear", "--file", weights]
    out = tmp_path / "card.json"
    among = ["--among", "results/shapes/leaderboard.csv", "--out", str(out)]
    assert main(["audit-model", "--study", "shapes", *model, *among]) == 0
    text = capsys.readouterr().out
    found = json.loads(out.read_text())
    assert f"STAMP       {found['stamp']:.3f}, 95 % interval" in text
    assert f"place {found['among']['place']} beside" in text
    assert "not how right: read it beside the source metric" in " ".join(text.split())


@pytest.mark.parametrize(("study", "name"), [("clinic", "noisy"), ("shapes", "linear")])
def test_the_card_of_a_zoos_model_is_made_of_what_the_workflow_has(
    ready: Project,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    study: str,
    name: str,
) -> None:
    """As the one that is scored anew, in no time; and the same outputs in a file are noticed."""
    monkeypatch.chdir(ready.folder)
    before = {path: path.stat().st_mtime_ns for path in ready.folder.rglob("*")}
    assert main(["audit-model", "--study", study, "--model", name, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    weights = f"results/{study}/trained/{name}.safetensors"
    model = ["--load", f"config/zoo/{study}.yaml", "--model", name, "--file", weights]
    assert main(["audit-model", "--study", study, *model, "--json"]) == 0
    anew = json.loads(capsys.readouterr().out)
    # only the workflow runs stress tests, and only where the study asks for them
    assert len(found.pop("worst_changes")) == (2 if study == "clinic" else 0)
    assert found == {**anew, "command": found["command"]}
    assert found["trained_on"] == "train"
    assert found["weights"]["sha256"] == digest_of(ready.folder / weights)
    assert f"results/{study}/scores/{name}.parquet" in found["command"]
    assert {path: path.stat().st_mtime_ns for path in ready.folder.rglob("*")} == before


def digest_of(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def test_a_file_with_the_outputs_of_a_model_of_the_study_is_noticed(
    own: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(own.folder)
    rows = pl.read_parquet(own.result("clinic/views/source.parquet"))
    logits = read_arrays(own.result("clinic/logits/source/noisy.safetensors"))["logits"]
    columns = {name: logits[:, at].astype(float) for at, name in enumerate(LABELED)}
    pl.DataFrame({"image": rows["image"], **columns}).write_csv("again.csv")
    assert main(["audit-model", "--study", "clinic", "--logits", "again.csv", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert "same outputs as noisy" in found["flags"]
    absent = own.result("clinic/evaluations/source/few.parquet")
    absent.unlink()
    assert main(["audit-model", "--study", "clinic", "--model", "few"]) == 1
    line = capsys.readouterr().err
    assert line.count("results/clinic/evaluations/source/few.parquet") == 2
    assert "`snakemake " in line and "studies=[clinic]" in line
    assert main(["audit-model", "--study", "clinic", "--model", "fwe"]) == 1
    assert "did you mean 'few'?" in capsys.readouterr().err
