"""CPU seconds of whole runs, each by the real workflow in a folder of its own.

The default run, one more model in a finished study, a study of 89 models whose logits somebody
brings, and one more of those. Snakemake, its jobs and what they start are counted. The code of the
time when the limits were set runs beside today's, so that the machine matters little.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
import yaml

from benchmarks import ROOT, filed
from benchmarks.planning import PARTS, write_yaml
from benchmarks.row import Row
from stamp.core import progress

MODELS = 89
# The limits as shares of what the code of that time took: CPU seconds of one machine.
LIMITS = {
    "default run": 450 / 660,
    "one more model in it": 24 / 45,
    f"study of {MODELS} models with their logits": 100 / 427,
    "one more of them": 8 / 22.5,
}
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
FILED_STUDY = {  # the same in the words of that time
    **{key: value for key, value in STUDY.items() if key != "preprocessing"},
    "pixels": {"size": 28, "channels": 1},
    "pairs": {"split": "test", "semantic": "class", "largest": 2000, "count": 2000},
    "calibration": {"split": "calibration", "count": 500, "scale": True},
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


def brought(folder: Path, study: dict[str, Any]) -> Iterator[float]:
    """A study of models with their logits, and one more of them."""
    write_yaml(folder / "config" / "studies" / "brought.yaml", study)
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
    only = ("--config", "studies=[brought]")
    cpu_seconds(folder, *only, "--until", "source_view", "view")
    (folder / "config" / "zoo" / "brought.yaml").unlink()
    for number in range(MODELS):
        bring(folder, number)
    yield cpu_seconds(folder, *only)
    bring(folder, MODELS)
    yield cpu_seconds(folder, *only)


def default(folder: Path) -> Iterator[float]:
    """The embedded default, and one more model in its study of digits."""
    yield cpu_seconds(folder)
    zoo = folder / "config" / "zoo" / "digits.yaml"
    entries = yaml.safe_load(zoo.read_text())
    key = "resnet-plain"
    entries["one-more"] = {**entries[key], "label": "One more"}
    write_yaml(zoo, entries)
    yield cpu_seconds(folder)


def measure(folder: Path, make: Callable[[Path], Path], study: dict[str, Any]) -> list[float]:
    """The CPU seconds of all four runs of the code that ``make`` puts into a folder."""
    folder.mkdir()
    return [
        *default(make(folder / "default")),
        *brought(make(folder / "brought"), study),
    ]


def work_for_one_more(folder: Path) -> float:
    """CPU seconds of what jobs do for the model that was added last, without starting anything."""
    added = (folder / "config" / "zoo" / "digits.yaml").stat().st_mtime
    logs = [path for path in (folder / "results").rglob("*.log") if path.stat().st_mtime > added]
    found = [progress.WHOLE.search(path.read_text()) for path in logs]
    return sum(float(one[2]) for one in found if one)


def main() -> list[Row]:
    """All four runs, today's and then those of the other code."""
    with TemporaryDirectory() as name:
        now = measure(Path(name) / "now", project, STUDY)
        work = work_for_one_more(Path(name) / "now" / "default")
        then = measure(Path(name) / "then", filed.unpack, FILED_STUDY)
    rows = [
        Row(what, new / old, "of before", f"<= {limit:.2f}", f"{new:.3g} and {old:.3g} CPU s")
        for (what, limit), new, old in zip(LIMITS.items(), now, then, strict=True)
    ]
    what, more = list(LIMITS)[1], now[1]
    rows.insert(2, Row(what, more / work, "of the work", "<= 2.5", f"{work:.3g} CPU s in its jobs"))
    return rows
