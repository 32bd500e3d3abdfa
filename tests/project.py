"""A copy of the project with two small studies, and real Snakemake runs in it."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import warm
import yaml

if TYPE_CHECKING:
    from pytest import TempPathFactory

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("Snakefile", "rules", "workflow", "profiles", "envs", "resources")

PHANTOM = {
    "title": "Small phantom",
    "task": "multilabel",
    "classes": [
        "Atelectasis",
        "Cardiomegaly",
        "Consolidation",
        "Edema",
        "Effusion",
        "Nodule",
        "Pneumonia",
        "Pneumothorax",
    ],
    "source": {"dataset": "small_phantom", "domains": ["home"], "train": "train"},
    "preprocessing": {"size": 32, "channels": 1},
    "pairs": {
        "split": "test",
        "semantic": "temporal",
        "also": {"labeled": 20},
        "max_pairs": 80,
        "n_pairs": 60,
    },
    "calibration": {"split": "calibration", "n_images": 40, "exclude": "chance"},
    "targets": {
        "external": {
            "dataset": "small_phantom",
            "domains": ["north", "clinic"],
            "classes": {"clinic": ["Pneumonia"]},
        }
    },
    "zoo": ["small_phantom"],
    "statistics": {"permutations": 200, "resamples": 200, "minimum": 3},
}
DIGITS = {
    "title": "Small digits",
    "task": "multiclass",
    "classes": [str(digit) for digit in range(10)],
    "source": {"dataset": "mnist", "train": "train"},
    "preprocessing": {"size": 28, "channels": 1},
    "pairs": {"split": "test", "semantic": "class", "max_pairs": 200},
    "calibration": {
        "split": "calibration",
        "n_images": 100,
        "scale": True,
        "exclude": "temperature",
    },
    "id": {"split": "test"},
    "targets": {"uci": {"dataset": "few_uci", "outcomes": "whole"}},
    "zoo": ["small_digits"],
    "statistics": {"permutations": 200, "resamples": 200},
}
ABOUT = {"title": "made", "licence": "none", "citation": "none", "access": "form"}
DATASETS = {
    "small_phantom": {
        "adapter": "phantom",
        "access": "generated",
        "options": {
            "home_train": 40,
            "home_calibration": 20,
            "home_test": 60,
            "north": 30,
            "south": 1,
            "coast": 1,
            "clinic": 30,
            "size": 32,
        },
    },
    "mnist": {"adapter": "mnist", "access": "bundled"},
    "few_uci": {"adapter": "uci_digits", "access": "bundled", "options": {"images": 200}},
}


def checkout(folder: Path, *more: str) -> Path:
    """A new folder with the workflow, and with more parts of the project."""
    folder.mkdir(parents=True)
    for part in (*PARTS, *more):
        source = ROOT / part
        if source.is_dir():
            ignore = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, folder / part, ignore=ignore)
        else:
            shutil.copy2(source, folder / part)
    plain(folder)
    return folder


def plain(folder: Path) -> None:
    """Let Snakemake print every job, which the tests read, instead of a live display."""
    profile = folder / "profiles" / "default" / "config.yaml"
    lines = profile.read_text().splitlines(keepends=True)
    profile.write_text("".join(line for line in lines if not line.startswith("logger:")))


def model(arch: str, label: str, arch_args: dict[str, Any] | None = None, **recipe: Any) -> dict:
    """A zoo entry of a network that a rule trains."""
    load = {"source": "train", "arch": arch, "epochs": 1, **recipe}
    if arch_args:
        load["arch_args"] = arch_args
    return {
        "label": label,
        "family": "small",
        "objective": "supervised",
        "regime": "plain",
        "trained_on": ["train"],
        "load": load,
    }


MIXER = {"img_size": 32, "patch_size": 8, "embed_dim": 16, "num_blocks": 1}
ZOOS = {
    "small_phantom": {
        "linear": model("linear", "Linear", epochs=3),
        "mixer": model("mlp_mixer:MlpMixer", "Mixer", MIXER, epochs=2),
        "noisy": model("linear", "Linear, noisy", label_noise=0.3),
        "few": model("linear", "Linear, few", fraction=0.5),
    },
    "small_digits": {
        "linear": model("linear", "Linear"),
        "few": model("linear", "Linear, few", fraction=0.05),
    },
}


@dataclass(frozen=True)
class Run:
    """What a Snakemake run said and how it ended."""

    code: int
    text: str

    @property
    def jobs(self) -> Counter[str]:
        """The jobs of a dry run: rule names with their wildcards, without ``all``."""
        found: Counter[str] = Counter()
        rule = None
        for line in self.text.splitlines():
            if started := re.match(r"(?:local)?rule (\w+):$", line):
                rule = started[1]
                if rule != "all":
                    found[rule] += 1
            elif rule and (wild := re.match(r" +wildcards: (.*)$", line)):
                values = [part.partition("=")[2] for part in wild[1].split(", ")]
                found[rule] -= 1
                found[" ".join([rule, *values])] += 1
                rule = None
        return +found


class Project:
    """A folder with the workflow, its configuration, and its results."""

    def __init__(self, folder: Path):
        self.folder = folder

    @classmethod
    def create(cls, folder: Path, studies: dict[str, dict] | None = None) -> Project:
        project = cls(checkout(folder))
        studies = studies or {"small_phantom": PHANTOM, "small_digits": DIGITS}
        project.write("config.yaml", {"studies": list(studies), "seed": 3, "device": "cpu"})
        texts = {"title": "made for tests", "licence": "none", "citation": "none"}
        project.write("datasets.yaml", {key: {**texts, **each} for key, each in DATASETS.items()})
        for name, study in studies.items():
            project.write(f"studies/{name}.yaml", study)
        for name, zoo in ZOOS.items():
            project.write(f"zoo/{name}.yaml", zoo)
        return project

    def copy(self, folder: Path) -> Project:
        """The whole folder with its results, times kept; the many images are links to its own."""
        shutil.copytree(self.folder, folder, symlinks=True, copy_function=link_or_copy)
        return Project(folder)

    def write(self, name: str, document: Any) -> None:
        path = self.folder / "config" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(document, sort_keys=False))

    def read(self, name: str) -> Any:
        return yaml.safe_load((self.folder / "config" / name).read_text())

    def edit(self, name: str, change: Any) -> None:
        """Change a configuration file: ``change`` gets the document and alters it."""
        document = self.read(name)
        change(document)
        self.write(name, document)

    def command(self, *arguments: str) -> list[str]:
        """Snakemake as a warm process, and so are its jobs."""
        return [warm.python(), "-m", "snakemake", "--cores", "2", *arguments]

    def environment(self) -> dict[str, str]:
        # a user's own profile or Python path must not reach the run
        dropped = ("SNAKEMAKE_PROFILE", "PYTHONPATH")
        kept = {key: value for key, value in os.environ.items() if key not in dropped}
        return {**kept, "XDG_CACHE_HOME": str(self.folder / "cache")}

    def run(self, *arguments: str) -> Run:
        done = subprocess.run(
            self.command(*arguments),
            cwd=self.folder,
            env=self.environment(),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=900,
        )
        return Run(done.returncode, done.stdout)

    def finish(self, *arguments: str) -> Run:
        """A run that must succeed."""
        done = self.run(*arguments)
        assert done.code == 0, done.text
        return done

    def stamp(self, *arguments: str) -> Run:
        """What ``python -m stamp`` says in the folder."""
        done = subprocess.run(
            [warm.python(), "-m", "stamp", *arguments],
            cwd=self.folder,
            env={**self.environment(), "PYTHONPATH": str(self.folder / "workflow" / "scripts")},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert "Traceback" not in done.stdout, done.stdout
        return Run(done.returncode, done.stdout)

    def plan(self, *arguments: str) -> Counter[str]:
        """The exact set of jobs that a run would do."""
        return self.finish("--dry-run", *arguments).jobs

    def result(self, name: str) -> Path:
        return self.folder / "results" / name

    def change_code(self, name: str) -> None:
        """Add a statement to every function of a module of the project's own library."""
        path = self.folder / "workflow" / "scripts" / "stamp" / name
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                node.body.insert(-1, ast.parse("edited = True").body[0])
        path.write_text(ast.unparse(tree))


def jobs(*names: str | list[str]) -> Counter[str]:
    """The jobs of a plan, from names and lists of names."""
    return Counter(one for name in names for one in ([name] if isinstance(name, str) else name))


def link_or_copy(source: str, target: str) -> None:
    """An image of a data set is linked: a test that changes one removes it first."""
    if "/results/datasets/" in source and source.endswith(".png"):
        os.link(source, target)
    else:
        shutil.copy2(source, target)


def made_once(
    factory: TempPathFactory, worker_id: str, name: str, create: Callable[[Path], Project]
) -> Project:
    """A project that the first of all workers creates and runs; the others wait for it."""
    from filelock import FileLock

    base = factory.getbasetemp()
    shared = base if worker_id == "master" else base.parent
    with FileLock(shared / f"{name}.lock"):
        project = Project(shared / name)
        if not (shared / f"{name}.done").exists():
            project = create(shared / name)
            project.finish()
            (shared / f"{name}.done").touch()
    return project
