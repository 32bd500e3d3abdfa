"""A small study with every kind of stage, faults for it, and what its results must be."""

from __future__ import annotations

import hashlib
import json
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from project import Project, Run, model
from servers import Server

STUDY, USER, SECRET = "faults", "user", "s3cr3t-0f-the-user"
CLASSES = ["circle", "square", "triangle"]
RESNET = {"layers": [1, 1, 1, 1], "channels": [4, 4, 8, 8]}
GRAY = {"mean": [0.5], "std": [0.25]}
ROWS = 16  # of a streamed target that are kept at a time, so that a small one has several parts
DOCUMENT: dict[str, Any] = {
    "title": "Faults",
    "task": "multiclass",
    "classes": CLASSES,
    "source": {"dataset": "home", "train": "train", "val": "val"},
    "preprocessing": {"size": 32, "channels": 1},
    "pairs": {"split": "test", "semantic": "class", "max_pairs": 40},
    "calibration": {"split": "calibration", "n_images": 15, "scale": True},
    "targets": {
        "away": {"dataset": "away", "classes": {"all": CLASSES}},
        "stream": {"dataset": "away", "streamed": True},
    },
    "zoo": ["faults"],
    "analyses": ["baselines", "robustness"],
    "metrics": ["entropy", "tta_flip", "embedding_instability", "fd_target", "aline_d"],
    "show_images": True,
    "optional_metrics": ["projection_norm"],
    "extra_outputs": {"images": 20},
    "stress": {"changes": ["noise", "blur"], "images": 20},
    "statistics": {"permutations": 200, "resamples": 200, "minimum": 3},
}
RECIPE = {"stage1": {"epochs": 1}, "stage2": {"epochs": 2}, "batch": 16}
TARGETS = ("all", "results/datasets/few_uci/index.parquet", "results/audit/claims.csv")


@dataclass(frozen=True)
class Hosts:
    """Two servers: one asks who one is and has the data, the other has weights."""

    data: Server
    weights: Server


@contextmanager
def hosts(folder: Path) -> Iterator[Hosts]:
    """The servers, with what they serve: two archives of images, and a backbone's weights."""
    from stamp.cli.example_data.shapes import write_shapes
    from stamp.models.architectures import build
    from stamp.models.weights import write_weights

    if not folder.is_dir():
        (folder / "data").mkdir(parents=True)
        for seed, (name, each) in enumerate({"home": 60, "away": 24}.items()):
            write_shapes(folder / name, each, 32, seed)
            with tarfile.open(folder / "data" / f"{name}.tar.gz", "w:gz") as tar:
                tar.add(folder / name, ".")
        (folder / "weights").mkdir()
        made = build("resnet18", RESNET, 5, 1, 32)
        write_weights(made, folder / "weights" / "backbone.safetensors", {})
    with (
        Server(folder / "data", auth=(USER, SECRET)) as data,
        Server(folder / "weights") as weights,
    ):
        yield Hosts(data, weights)


def create(folder: Path, hosts: Hosts) -> Project:
    """The study in a folder of its own; its data come from the servers."""
    project = Project.create(folder, {STUDY: DOCUMENT})
    about = {"title": "made for tests", "licence": "none", "citation": "none"}
    shares = {"train": 0.3, "val": 0.2, "calibration": 0.2, "test": 0.3}
    few = {"adapter": "uci_digits", "access": "bundled", "options": {"images": 200}}
    datasets = {"few_uci": {**about, **few}}
    for name in ("home", "away"):
        archive = f"{name}.tar.gz"
        datasets[name] = {
            **about,
            "adapter": "folder",
            "access": "kaggle",
            "download": True,
            "options": {"splits": shares},
            "files": [{"name": archive, "url": hosts.data.url(archive), "unpack": True}],
        }
    project.write("datasets.yaml", datasets)
    project.edit("config.yaml", lambda config: config.update(data="results/data"))
    tuned = {"source": "finetune", "arch": "resnet18", "arch_args": RESNET, "recipe": RECIPE}
    backbone = {"timm": "resnet18", "args": RESNET, **GRAY}
    backbone["url"] = hosts.weights.url("backbone.safetensors")
    zoo = {name: model("linear", name) for name in ("linear", "tuned", "probe")}
    zoo["tuned"]["load"] = {**tuned, "initial": {"none": True}, **GRAY}
    zoo["probe"]["load"] = {"source": "probe", "backbone": backbone}
    files = {"source": "home.csv", "away": "away.csv", "stream": "away.csv"}
    for name in ("home", "away"):
        write_outputs(folder / f"{name}.csv", hosts.data.folder / f"{name}.tar.gz")
    about_given = {"family": "given", "objective": "supervised", "regime": "plain"}
    zoo["given"] = {
        **about_given,
        "label": "given",
        "trained_on": [],
        "load": {"source": "logits", "files": files},
    }
    project.write(f"zoo/{STUDY}.yaml", zoo)
    module = folder / "workflow" / "scripts" / "stamp" / "inference" / "predictions.py"
    text = module.read_text()
    assert text.count("\nPART = 4096\n") == 1
    module.write_text(text.replace("\nPART = 4096\n", f"\nPART = {ROWS}\n"))
    return project


def write_outputs(path: Path, archive: Path) -> None:
    """Made-up outputs of a model, by image, for all images in an archive."""
    with tarfile.open(archive) as tar:
        names = sorted(one.name.removeprefix("./") for one in tar if one.isfile())
    images = [name for name in names if name.endswith(".png")]
    z = np.random.default_rng(0).normal(size=(len(images), len(CLASSES)))
    z += [[2.0 * (Path(name).parts[0] == one) for one in CLASSES] for name in images]
    columns = {one: z[:, at] for at, one in enumerate(CLASSES)}
    pl.DataFrame({"image": images, **columns}).write_csv(path)


@dataclass(frozen=True)
class Fault:
    """Where a job ends: its script and a part of its output's name, and in which write.

    The write is the first of a file that grows beyond ``size`` bytes, after ``times`` files whose
    name ends in ``after`` were finished. With a ``filler`` the job is not killed: when it starts,
    that file takes all of its disk but for ``size`` bytes.
    """

    script: str
    output: str
    size: int
    after: str = ""
    times: int = 1
    filler: str = ""


def place(faults: list[Fault], folder: Path) -> None:
    """Put faults where jobs look for them, in their order."""
    folder.mkdir()
    for number, fault in enumerate(faults):
        (folder / f"{number:02d}.json").write_text(json.dumps(asdict(fault)))


class FaultyProject(Project):
    """A project whose jobs look for faults, and whose user has a secret."""

    def environment(self) -> dict[str, str]:
        return {
            **super().environment(),
            "KAGGLE_USERNAME": USER,
            "KAGGLE_KEY": SECRET,
            "HF_TOKEN": SECRET,
            "NO_PROXY": "127.0.0.1,localhost",
            "TORCH_HOME": str(self.folder / "torch"),
            "PYTHONPATH": str(Path(__file__).parent / "faults"),
            "STAMP_TEST_FAULTS": str(self.folder / "faults"),
        }


def content(project: Project) -> dict[str, str]:
    """Digests of everything that a study leaves, by name, but for what a clock wrote."""
    found = {}
    root = project.folder / "results"
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        name = str(path.relative_to(root))
        if (
            {"benchmarks", "logs", ".downloads"} & set(path.parts)
            or path.name.startswith(".")
            or path.suffix == ".log"
        ):
            continue
        found[name] = hashlib.sha256(without_seconds(path)).hexdigest()
    return found


TIMES = ("seconds", "cpu_seconds")


def without_seconds(path: Path) -> bytes:
    """What a file holds, without the times that epochs and extra outputs took."""
    if path.suffix == ".json":
        return json.dumps(_dropped(json.loads(path.read_text())), sort_keys=True).encode()
    return path.read_bytes()


def _dropped(value: Any) -> Any:
    if isinstance(value, list):
        return [_dropped(each) for each in value]
    if isinstance(value, dict):
        return {key: _dropped(each) for key, each in value.items() if key not in TIMES}
    return value


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[None]:
    """A file system of its own, of so many bytes, mounted at a folder."""
    options = ["-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    subprocess.run(["mount", *options], check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """The file that takes the last byte of a disk."""
    filler = folder / "filler"
    with open(filler, "wb", buffering=0) as file:
        for block in (1 << 16, 1 << 12):
            try:
                while True:
                    file.write(bytes(block))
            except OSError:
                continue
    return filler


def said(run: Run) -> list[str]:
    """The lines of ours in what a run said."""
    return [line.partition("stamp: ")[2] for line in run.text.splitlines() if "stamp: " in line]
