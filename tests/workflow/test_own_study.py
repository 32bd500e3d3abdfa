"""An own study in two commands: what `new-study` and `add-model` print is run as it stands."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import numpy as np
import polars as pl
import warm
from project import Project

from stamp.cli.example_data import write_example

MODELS = ("steady", "noisy")


def outputs(table: Path, folder: Path) -> Path:
    """Outputs of two made-up models for every image: a patient's own values, and much noise."""
    rows = pl.read_csv(table)
    patients = rows["patient"].rank("dense").to_numpy() - 1
    rng = np.random.default_rng(0)
    own = rng.normal(size=(int(patients.max()) + 1, 3))[patients]
    noise = rng.normal(size=own.shape)
    file = folder / "outputs.npz"
    arrays = {"steady": own + 0.1 * noise, "noisy": 0.1 * own + noise}
    np.savez(file, image=np.array(rows["file"].to_list()), **arrays)
    return file


def test_a_study_of_outputs_alone_is_written_filled_and_run_as_printed(tmp_path: Path) -> None:
    project = Project.create(tmp_path / "project")
    mine = project.folder / "mine"
    write_example(mine, patients=40, size=32, seed=0)
    table = mine / "clinic" / "table.csv"
    file = outputs(table, mine)
    shutil.rmtree(mine / "clinic" / "images")  # nothing but a table and outputs
    written = project.stamp("new-study", "clinic", "--data", "mine/clinic/table.csv")
    assert written.code == 0, written.text
    given = ["--family", "made-up", "--objective", "none", "--regime", "none", "--trained-on"]
    added = project.stamp("add-model", "--study", "clinic", "--logits", "mine/outputs.npz", *given)
    assert added.code == 0, added.text
    assert "2 models: logits 2" in added.text
    command = added.text.strip().splitlines()[-1].strip()
    assert command in written.text
    checked = project.stamp("check-data", "clinic", "--half-width", "0.5")
    assert checked.code == 0, checked.text
    done = subprocess.run(
        [warm.python(), "-m", *shlex.split(command)],
        cwd=project.folder,
        env=project.environment(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert done.returncode == 0, done.stdout
    board = pl.read_csv(project.result("clinic/leaderboard.csv"))
    assert board["model"].to_list() == list(MODELS)
    assert board["stamp"][0] > board["stamp"][1] + 0.3
    assert not project.result("small_phantom").exists()  # no other study was run
    assert file.is_file()
