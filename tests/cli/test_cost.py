"""`python -m stamp cost` counts what a study will take, before it runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from project import DATASETS, DIGITS, ROOT, ZOOS

from stamp.__main__ import main
from stamp.cli.cost.operations import counted
from stamp.config.zoo import read_zoo

TEXTS = {"title": "made for tests", "licence": "none", "citation": "none"}
IMAGES = {"mnist": {"train": 3500, "calibration": 500, "test": 1000}, "few_uci": {"test": 200}}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A study whose data sets say how many images they have."""
    sets = {key: {**TEXTS, **each} for key, each in DATASETS.items()}
    for key, number in IMAGES.items():
        sets[key]["images"] = number
    zoo = {key: dict(entry) for key, entry in ZOOS["small_digits"].items()}
    load = {key: value for key, value in zoo["linear"]["load"].items() if key != "epochs"}
    zoo["linear"] = {**zoo["linear"], "backbone": "ResNet-50", "load": load}
    write(tmp_path, "config", {"studies": ["small_digits"], "seed": 3, "device": "cpu"})
    write(tmp_path, "datasets", sets)
    write(tmp_path, "studies/small_digits", DIGITS)
    write(tmp_path, "zoo/small_digits", zoo)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder: Path, name: str, document: Any) -> None:
    file = folder / "config" / f"{name}.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(yaml.safe_dump(document, sort_keys=False))


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["cost", "--json", *arguments]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_study_is_counted_by_its_images_models_and_epochs(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = told(capsys, "--tflops", "2")
    one = found["studies"]["small_digits"]
    pool, calibration, beyond, target, train = 400, 100, 600, 200, 3500
    forwarded = pool + calibration + beyond + target
    pixels = 28 * 28
    assert one["caches"] == one["caches_left"] == (forwarded + train) * pixels
    assert one["logits"] == 2 * forwarded * 10 * 4
    assert one["forwards"] == 2 * forwarded
    assert one["training"] == (8 + 1) * train  # epochs: the usual ones, and those of the entry
    resnet, usual = counted()["ResNet-50"][224] / 64, 8 / 64  # at an eighth of the side
    operations = (forwarded + 3 * 8 * train) * resnet * 1e9
    operations += (forwarded + 3 * train) * usual * 1e9
    assert one["gpu_hours"] == pytest.approx(operations / 2e12 / 3600)
    assert (one["assumed"], one["not_counted"], one["downloads"]) == (1, [], 0)
    assert found["needed"] == one["caches"] + one["logits"]


def test_an_index_and_a_view_count_before_what_was_published(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = told(capsys)["studies"]["small_digits"]["forwards"]
    index = project / "results" / "datasets" / "few_uci"
    index.mkdir(parents=True)
    rows = pl.DataFrame({"domain": ["a"] * 50, "split": ["test"] * 50})
    rows.write_parquet(index / "index.parquet")
    assert told(capsys)["studies"]["small_digits"]["forwards"] == before - 2 * 150
    view = project / "results" / "small_digits" / "views"
    view.mkdir(parents=True)
    rows.head(30).write_parquet(view / "uci.parquet")
    assert told(capsys)["studies"]["small_digits"]["forwards"] == before - 2 * 170


def test_a_cache_that_is_there_is_not_written_again(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = told(capsys)["studies"]["small_digits"]["caches_left"]
    file = project / "results" / "small_digits" / "pixels" / "uci" / "28-gray-bilinear.npy"
    file.parent.mkdir(parents=True)
    file.touch()
    found = told(capsys)["studies"]["small_digits"]
    assert found["caches_left"] == whole - 200 * 28 * 28
    assert found["caches"] == whole


def test_views_that_nobody_counted_are_named_and_not_guessed(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sets = yaml.safe_load((project / "config" / "datasets.yaml").read_text())
    del sets["few_uci"]["images"]
    write(project, "datasets", sets)
    assert told(capsys)["studies"]["small_digits"]["not_counted"] == ["uci (images)"]
    assert main(["cost"]) == 0
    text = capsys.readouterr().out
    assert "uci (images)" in text and "and more" in text
    assert "1 model counted as 8 GFLOPs" in text
    assert "Disk: at most" in text and "enough" in text


def test_an_impossible_speed_is_refused(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cost", "--tflops", "0"]) == 1
    assert "--tflops 0" in capsys.readouterr().err


def test_every_backbone_of_the_papers_zoos_has_its_operations() -> None:
    for name in ("medical", "natural"):
        zoo = read_zoo(ROOT / "config" / "zoo" / f"{name}.yaml")
        backbones = {one["backbone"] for one in zoo.values() if "unavailable" not in one}
        assert backbones <= set(counted())


@pytest.mark.parametrize("size", [64, 96])
def test_counted_operations_are_those_of_a_network_of_known_layers(size: int) -> None:
    """A convolution of stride 1 and a linear layer, counted by hand."""
    import torch
    from benchmarks.gflops import operations

    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, 5, 3, padding=1), torch.nn.Flatten(), torch.nn.Linear(5 * size**2, 7)
    )
    by_hand = 2 * (size**2 * 5 * 3 * 9 + 5 * size**2 * 7)
    assert operations(network, size) == by_hand


@pytest.mark.parametrize("study", ["medical", "natural"])
def test_the_page_of_a_study_shows_what_the_command_prints(
    study: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shutil.copytree(ROOT / "config", tmp_path / "config")
    monkeypatch.chdir(tmp_path)  # where nothing was run
    assert main(["cost", study, "--markdown"]) == 0
    lines = capsys.readouterr().out.strip().splitlines()
    page = (ROOT / "docs" / f"{study}.md").read_text()
    assert all(line in page for line in lines if line)
