"""A study of own images whose results and data are in a storage, on a disk that no job shares."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import networks
import numpy as np
import polars as pl
import pytest
from project import ABOUT, Project, checkout

from stamp.cli.example_data import write_example
from stamp.cli.example_data.clinic import LABELED
from stamp.core.artifacts import array_metadata

STUDY = {
    "title": "Clinic",
    "task": "multilabel",
    "classes": list(LABELED),
    "source": {"dataset": "clinic"},
    "preprocessing": {"size": 32, "channels": 1},
    "pairs": {"split": "test", "semantic": "temporal", "max_pairs": 40},
    "calibration": {"split": "calibration", "n_images": 15},
    "zoo": ["clinic"],
    "statistics": {"permutations": 100, "resamples": 100},
}
TEXTS = {"family": "own", "objective": "supervised", "regime": "plain", "trained_on": ["train"]}
BOARD = "results/clinic/leaderboard.csv"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A study of a clinic's images with an ONNX file and a file of outputs, no data made."""
    project = Project(checkout(tmp_path / "project"))
    project.write("config.yaml", {"studies": ["clinic"], "seed": 3, "device": "cpu"})
    mine, models = project.folder / "mine", project.folder / "models"
    write_example(mine, patients=30, size=32, seed=0)
    project.write("datasets.yaml", {"clinic": {"adapter": "csv", "root": "mine/clinic", **ABOUT}})
    project.write("studies/clinic.yaml", STUDY)
    models.mkdir()
    networks.write_onnx(networks.network(len(LABELED), 32), models / "net.onnx", 32)
    images = pl.read_csv(mine / "clinic" / "table.csv")["file"].to_list()
    values = np.random.default_rng(0).normal(size=(len(images), len(LABELED)))
    networks.write_outputs(models / "given.npy", images, values, list(LABELED))
    onnx = {"source": "onnx", "file": "models/net.onnx", "mean": [0.45], "std": [0.27]}
    given = {"source": "logits", "file": "models/given.npy"}
    zoo = {key: {"label": key, **TEXTS, "load": load} for key, load in
           (("net", onnx), ("given", given))}  # fmt: skip
    project.write("zoo/clinic.yaml", zoo)
    return project


def storage(folder: Path) -> list[str]:
    """The arguments of a run whose inputs and results are in ``folder``, and copied to a disk."""
    shared = ["persistence", "software-deployment", "sources", "source-cache"]
    return [
        "--default-storage-provider", "fs", "--default-storage-prefix", str(folder),
        "--local-storage-prefix", str(folder.with_name("scratch")), "--shared-fs-usage", *shared,
    ]  # fmt: skip


@pytest.mark.skipif(
    shutil.which("rsync") is None and "CI" not in os.environ,
    reason="the storage plugin copies by rsync",
)
def test_jobs_work_on_copies_from_the_storage_and_nothing_else(project: Project) -> None:
    project.finish(BOARD)
    expected = (project.folder / BOARD).read_bytes()
    shutil.rmtree(project.folder / "results")
    shutil.rmtree(project.folder / ".snakemake")
    store = project.folder.with_name("store")
    for part in ("mine", "models"):
        shutil.copytree(project.folder / part, store / part)
    for image in (project.folder / "mine" / "clinic" / "images").iterdir():
        image.write_bytes(b"")  # a job that read this one would fail
    project.finish(*storage(store))
    assert (store / BOARD).read_bytes() == expected
    assert (store / "results" / "index.html").is_file()
    own = [file for file in project.result("").rglob("*") if not file.name.startswith(".")]
    assert own == []  # nothing but the run's own notes is beside the configuration
    index = pl.read_parquet(store / "results" / "datasets" / "clinic" / "index.parquet")
    assert index["path"].str.starts_with("mine/clinic/images/").all()
    told = array_metadata(store / "results" / "clinic" / "logits" / "source" / "net.safetensors")
    assert told["weights_file"].startswith(str(store.with_name("scratch")))
    assert project.plan(*storage(store)) == {}


def test_what_a_storage_cant_bring_apart_is_named(project: Project, tmp_path: Path) -> None:
    inside = project.folder / "mine" / "clinic" / "net.onnx"
    shutil.copy2(project.folder / "models" / "net.onnx", inside)
    file = {"file": "mine/clinic/net.onnx"}
    project.edit("zoo/clinic.yaml", lambda zoo: zoo["net"]["load"].update(file))
    refused = project.run("--dry-run", *storage(tmp_path / "store"))
    assert refused.code != 0
    assert "mine/clinic/net.onnx: lies in mine/clinic" in refused.text
    project.finish("--dry-run")  # without a storage it is no matter


def test_a_study_with_extra_outputs_is_refused_in_a_storage(
    project: Project, tmp_path: Path
) -> None:
    project.edit("studies/clinic.yaml", lambda study: study.update(analyses=["baselines"]))
    refused = project.run("--dry-run", *storage(tmp_path / "store"))
    assert refused.code != 0
    assert "study 'clinic'" in refused.text and "extra outputs" in refused.text
