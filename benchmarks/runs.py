"""CPU seconds of whole runs, each by the real workflow in a folder of its own.

The default run, one more model in a finished study, a study of 89 models whose logits somebody
brings, and one more of those. Snakemake, its jobs and what they start are counted. ``before`` is
what the same took with a new process, and so a new start of torch or polars, for every job.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
import yaml

from benchmarks import ROOT
from benchmarks.planning import PARTS, write_yaml
from benchmarks.row import Row

MODELS = 89
BRANCH = 9.6  # CPU seconds of one digits model's whole branch in a single process
STUDY: dict[str, Any] = {
    "title": "Models that somebody else ran",
    "task": "multiclass",
    "classes": [str(digit) for digit in range(10)],
    "source": {"dataset": "mnist"},
    "preprocessing": {"size": 28, "channels": 1},
    "pairs": {"split": "test", "semantic": "class", "max_pairs": 2000},
    "calibration": {"split": "calibration", "n_images": 500, "scale": True},
    "targets": {"uci": {"dataset": "uci_digits", "outcomes": "whole"}},
    "zoo": ["brought"],
}


def project(folder: Path) -> Path:
    """A copy of the project without results."""
    folder.mkdir()
    for part in (*PARTS, "envs", "resources"):
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy2
        copy(ROOT / part, folder / part)
    return folder


def cpu_seconds(folder: Path, *arguments: str) -> float:
    """What Snakemake and all its processes took; a run that fails is an error."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    dropped = ("SNAKEMAKE_PROFILE", "PYTHONPATH")
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "--cores", "8", *arguments],
        cwd=folder,
        env={key: value for key, value in os.environ.items() if key not in dropped},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(done.stdout)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def bring(folder: Path, number: int) -> None:
    """Logits of one more model on every image that the study asks about, and its zoo entry."""
    rng = np.random.default_rng(number)
    files = sorted((folder / "results" / "brought" / "views").glob("*.parquet"))
    images = pl.concat([pl.read_parquet(file, columns=["image", "label"]) for file in files])
    images = images.unique("image", maintain_order=True)
    right = images["label"].cast(pl.String).to_numpy()[:, None] == np.array(STUDY["classes"])
    logits = rng.normal(0, 1, right.shape) + right * rng.uniform(0.5, 4)
    table = pl.DataFrame(logits, schema=STUDY["classes"]).insert_column(0, images["image"])
    table.write_parquet(folder / f"model-{number}.parquet")
    zoo = folder / "config" / "zoo" / "brought.yaml"
    entries = yaml.safe_load(zoo.read_text()) if zoo.exists() else {}
    entries[f"model-{number}"] = {
        **{"label": f"Model {number}", "family": "made", "objective": "none", "regime": "none"},
        "load": {"source": "logits", "file": f"model-{number}.parquet"},
    }
    write_yaml(zoo, entries)


def brought(folder: Path) -> list[Row]:
    """A study of models with their logits, and one more of them."""
    write_yaml(folder / "config" / "studies" / "brought.yaml", STUDY)
    write_yaml(
        folder / "config" / "zoo" / "brought.yaml",
        {
            "model": {
                **{"label": "None", "family": "made", "objective": "none", "regime": "none"},
                "load": {"source": "logits", "file": "none.parquet"},
            }
        },
    )
    (folder / "none.parquet").touch()
    study = ("--config", "studies=[brought]")
    cpu_seconds(folder, *study, "--until", "source_view", "view")
    (folder / "config" / "zoo" / "brought.yaml").unlink()
    for number in range(MODELS):
        bring(folder, number)
    whole = cpu_seconds(folder, *study)
    bring(folder, MODELS)
    more = cpu_seconds(folder, *study)
    return [
        Row(
            f"a study of {MODELS} models with their logits", whole, "CPU s", "<= 100", "427 before"
        ),
        Row("one more of them", more, "CPU s", "<= 8", "22.5 before"),
    ]


def default(folder: Path) -> list[Row]:
    """The embedded default, and one more model in its study of digits."""
    whole = cpu_seconds(folder)
    zoo = folder / "config" / "zoo" / "digits.yaml"
    entries = yaml.safe_load(zoo.read_text())
    key = "resnet-plain"
    entries["one-more"] = {**entries[key], "label": "One more"}
    write_yaml(zoo, entries)
    more = cpu_seconds(folder)
    note = f"45 before; {more / BRANCH:.1f} times its work in one process"
    return [
        Row("the default run", whole, "CPU s", "<= 450", "660 before"),
        Row("one more model in it", more, "CPU s", f"<= {2.5 * BRANCH:.0f}", note),
    ]


def main() -> list[Row]:
    """All four runs."""
    with TemporaryDirectory() as name:
        return [
            *brought(project(Path(name) / "brought")),
            *default(project(Path(name) / "default")),
        ]
